/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/points_in_leaves.h"

#include <climits>

#include <algorithm>

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "pair_kernels/cell_keys.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;
//! Threads of a block that goes through all leaves.
constexpr int c_scanThreads = 1024;
//! More levels than a tree has.
constexpr int c_mostLevels  = 32;
constexpr double c_farthest = 1e9; // cells

//! Where the leaves are, for kernels.
struct FrameOnDevice
{
    double origin[3], toCells[3][3], scaled[3][3];
    CellsOfBox box;

    explicit FrameOnDevice(const LeafFrame& frame)
    {
        const Mat3 inverse = frame.edges.inverse();
        const Mat3 edges   = frame.edges / frame.unit();
        for (int i = 0; i < 3; i++)
        {
            origin[i]     = frame.origin[i];
            box.counts[i] = frame.counts[i];
            for (int j = 0; j < 3; j++)
            {
                toCells[i][j] = inverse(i, j);
                scaled[i][j]  = edges(i, j);
            }
        }
        box.isPeriodic = frame.isPeriodic;
    }
};

//! Whether an element is the first of a run of a level.
struct IsHead
{
    int above;
    __device__ bool operator()(unsigned char heads) const { return heads > above; }
};

//! The cell of a position, and where it is from its centre, in edges. \returns false: it has none
__device__ bool
findCell(const FrameOnDevice& frame, const double* __restrict__ x, int* cell, double* inCell)
{
    const double d[3] = { x[0] - frame.origin[0], x[1] - frame.origin[1], x[2] - frame.origin[2] };
    bool isFound      = true;
#pragma unroll
    for (int k = 0; k < 3; k++)
    {
        const double at = d[0] * frame.toCells[0][k] + d[1] * frame.toCells[1][k]
                          + d[2] * frame.toCells[2][k];
        isFound            = isFound && fabs(at) < c_farthest; // NaN, too
        const double whole = isFound ? floor(at) : 0;
        inCell[k]          = isFound ? at - whole - 0.5 : 0;
        cell[k]            = static_cast<int>(whole);
        // without images nothing is outside, but for rounding
        moveInside(frame.box.counts[k], frame.box.isPeriodic, cell + k);
        cell[k] = min(max(cell[k], 0), frame.box.counts[k] - 1);
    }
    return isFound;
}

__global__ void __launch_bounds__(c_threads) keyKernel(const __grid_constant__ FrameOnDevice frame,
                                                       const double* __restrict__ x,
                                                       int n,
                                                       std::uint64_t* __restrict__ keys,
                                                       int* __restrict__ index,
                                                       int* invalid)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= n)
    {
        return;
    }
    int cell[3];
    double inCell[3];
    if (!findCell(frame, x + 3 * static_cast<size_t>(i), cell, inCell))
    {
        atomicMax(invalid, n - i); // the first: 0 is none
    }
    keys[i]  = mortonKey(cell[0], cell[1], cell[2]);
    index[i] = i;
}

//! The leaf of each point, and how many each has. \param[in,out] counts  [leaves] zeros before
__global__ void __launch_bounds__(c_threads)
        countKernel(const __grid_constant__ FrameOnDevice frame,
                    const double* __restrict__ x,
                    int n,
                    CellHashView hash,
                    int* __restrict__ leafOf,
                    int* counts)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        int cell[3];
        double inCell[3];
        findCell(frame, x + 3 * static_cast<size_t>(i), cell, inCell);
        const int leaf = hash.find(mortonKey(cell[0], cell[1], cell[2]));
        leafOf[i]      = leaf;
        atomicAdd(counts + leaf, 1);
    }
}

/*! \brief One block: where leaves begin, and how many groups there are up to each.
 *
 *  Leaves zeros for the next countKernel(), and for orderKernel(). */
__global__ void __launch_bounds__(c_scanThreads) startKernel(int* __restrict__ counts,
                                                             int leaves,
                                                             int* __restrict__ start,
                                                             int* __restrict__ next,
                                                             int* __restrict__ groupsEnd,
                                                             int* __restrict__ invalid)
{
    using Scan = cub::BlockScan<int2, c_scanThreads>;
    __shared__ typename Scan::TempStorage space;
    const auto add = [](int2 a, int2 b) { return int2{ a.x + b.x, a.y + b.y }; };
    int2 before    = { 0, 0 };
    for (int first = 0; first < leaves; first += c_scanThreads)
    {
        const int leaf  = first + static_cast<int>(threadIdx.x);
        const int count = leaf < leaves ? counts[leaf] : 0;
        int2 upTo, all;
        Scan(space).InclusiveScan(
                int2{ count, (count + c_pointsTogether - 1) / c_pointsTogether }, upTo, add, all);
        if (leaf < leaves)
        {
            counts[leaf]    = 0;
            start[leaf]     = before.x + upTo.x - count;
            next[leaf]      = before.x + upTo.x - count;
            groupsEnd[leaf] = before.y + upTo.y;
        }
        before = add(before, all);
        __syncthreads();
    }
    if (threadIdx.x == 0)
    {
        start[leaves] = before.x;
        *invalid      = 0;
    }
}

//! Gives points places in their leaves, in any order.
__global__ void __launch_bounds__(c_threads)
        scatterKernel(const int* __restrict__ leafOf, int n, int* next, int* __restrict__ index)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        index[atomicAdd(next + leafOf[i], 1)] = i;
    }
}

//! A point relative to the centre of its leaf. \returns false: it is in none
template<class Real>
__device__ __forceinline__ bool place(const FrameOnDevice& frame,
                                      const double* __restrict__ x,
                                      const Real* __restrict__ q,
                                      int point,
                                      Real4<Real>* at)
{
    int cell[3];
    double d[3];
    const bool isFound = findCell(frame, x + 3 * static_cast<size_t>(point), cell, d);
    const auto along   = [&](int k)
    {
        return static_cast<Real>(d[0] * frame.scaled[0][k] + d[1] * frame.scaled[1][k]
                                 + d[2] * frame.scaled[2][k]);
    };
    *at = { along(0), along(1), along(2), q != nullptr ? q[point] : Real(0) };
    return isFound;
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        placeKernel(const __grid_constant__ FrameOnDevice frame,
                    const double* __restrict__ x,
                    const Real* __restrict__ q,
                    const int* __restrict__ order,
                    int n,
                    Real4<Real>* __restrict__ at)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        place(frame, x, q, order[i], at + i);
    }
}

//! The same, and the order of points in each leaf. \param[in] index  those of each leaf, in any order
template<class Real>
__global__ void __launch_bounds__(c_threads)
        orderKernel(const __grid_constant__ FrameOnDevice frame,
                    const double* __restrict__ x,
                    const Real* __restrict__ q,
                    const int* __restrict__ index,
                    const int* __restrict__ leafOf,
                    const int* __restrict__ start,
                    int n,
                    int* __restrict__ order,
                    Real4<Real>* __restrict__ at,
                    int* invalid)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= n)
    {
        return;
    }
    const int point = index[i];
    const int leaf  = leafOf[point];
    const int end   = start[leaf + 1];
    int to          = start[leaf];
    for (int k = start[leaf]; k < end; k++)
    {
        to += index[k] < point ? 1 : 0;
    }
    order[to] = point;
    if (!place(frame, x, q, point, at + to))
    {
        atomicMax(invalid, n - point); // the first: 0 is none
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads) chargeKernel(const Real* __restrict__ q,
                                                          int sets,
                                                          int set,
                                                          const int* __restrict__ order,
                                                          int n,
                                                          Real4<Real>* __restrict__ at)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        at[i].w = q[static_cast<size_t>(order[i]) * sets + set];
    }
}

//! For each key, of how many levels it is the first of a run; and how many keys there are of each such number.
__global__ void __launch_bounds__(c_threads) headKernel(const std::uint64_t* __restrict__ keys,
                                                        int n,
                                                        int levels,
                                                        unsigned char* __restrict__ heads,
                                                        int* histogram)
{
    __shared__ int ofBlock[c_mostLevels + 1];
    for (int k = threadIdx.x; k <= levels; k += c_threads)
    {
        ofBlock[k] = 0;
    }
    __syncthreads();
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        const std::uint64_t differing = i == 0 ? ~std::uint64_t(0) : keys[i] ^ keys[i - 1];
        const int bits                = 64 - __clzll(static_cast<long long>(differing));
        const int levelsHere          = min(levels, (bits + 2) / 3);
        heads[i]                      = static_cast<unsigned char>(levelsHere);
        atomicAdd(ofBlock + levelsHere, 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k <= levels; k += c_threads)
    {
        if (ofBlock[k] > 0)
        {
            atomicAdd(histogram + k, ofBlock[k]);
        }
    }
}

__global__ void __launch_bounds__(c_threads) leafKernel(const std::uint64_t* __restrict__ keys,
                                                        int* __restrict__ start,
                                                        int leaves,
                                                        int n,
                                                        std::uint64_t* __restrict__ leafKeys,
                                                        int* __restrict__ groups)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < leaves)
    {
        const int count = (i + 1 < leaves ? start[i + 1] : n) - start[i];
        leafKeys[i]     = keys[start[i]];
        groups[i]       = (count + c_pointsTogether - 1) / c_pointsTogether;
    }
    if (i == leaves)
    {
        start[leaves] = n;
    }
}

__global__ void __launch_bounds__(c_threads)
        hashKernel(const std::uint64_t* __restrict__ keys, int count, CellHashView hash)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= count)
    {
        return;
    }
    const unsigned long long key = keys[i];
    unsigned int at              = hash.begin(key);
    while (atomicCAS(hash.keys + at, CellHashView::c_free, key) != CellHashView::c_free)
    {
        at = (at + 1) & hash.mask;
    }
    hash.places[at] = i;
}

} // namespace

void CellHashOnDevice::set(const std::uint64_t* keys, int count, cudaStream_t stream)
{
    size_t size = 32;
    while (size < 2 * static_cast<size_t>(count))
    {
        size *= 2;
    }
    keys_.resize(size);
    places_.resize(size);
    mask_ = static_cast<unsigned int>(size - 1);
    check(cudaMemsetAsync(keys_.data(), 0xff, size * sizeof(unsigned long long), stream),
          "clearing memory");
    if (count > 0)
    {
        hashKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(keys, count, view());
        checkLaunch("taking cells");
    }
}

void KeyRuns::find(const std::uint64_t* keys, int n, int levels, cudaStream_t stream)
{
    n_ = n;
    heads_.resize(n);
    histogram_.resize(levels + 1);
    histogram_.clear(stream);
    if (n > 0)
    {
        headKernel<<<blocksFor(n, c_threads), c_threads, 0, stream>>>(
                keys, n, levels, heads_.data(), histogram_.data());
        checkLaunch("looking for cells");
    }
    std::vector<int> histogram(levels + 1);
    histogram_.download(histogram.data(), histogram.size(), stream);
    // of one level: the first elements of it and of coarser ones
    counts_.assign(levels, 0);
    int above = 0;
    for (int l = 0; l < levels; l++)
    {
        above += histogram[levels - l];
        counts_[l] = above;
    }
}

void KeyRuns::writeStarts(int above, int* starts, CubRoom* room, cudaStream_t stream)
{
    selected_.resize(1);
    if (n_ == 0)
    {
        return;
    }
    room->run("selecting cells",
              [&](void* space, size_t& bytes)
              {
                  return cub::DeviceSelect::FlaggedIf(space,
                                                      bytes,
                                                      thrust::counting_iterator<int>(0),
                                                      heads_.data(),
                                                      starts,
                                                      selected_.data(),
                                                      n_,
                                                      IsHead{ above },
                                                      stream);
              });
}

template<class Real>
void PointsInLeaves<Real>::sort(const double* x,
                                const Real* q,
                                int n,
                                const LeafFrame& frame,
                                int levels,
                                bool all,
                                cudaStream_t stream)
{
    index_.resize(n);
    order_.resize(n);
    at_.resize(n);
    invalid_.resize(1);
    if (all)
    {
        listAll(frame, levels, stream);
        sortIntoAll(x, q, frame, stream);
    }
    else
    {
        sortByKeys(x, q, frame, levels, stream);
    }
}

template<class Real>
void PointsInLeaves<Real>::sortIntoAll(const double* x,
                                       const Real* q,
                                       const LeafFrame& frame,
                                       cudaStream_t stream)
{
    const FrameOnDevice onDevice(frame);
    const int n = static_cast<int>(order_.size()), leaves = cells_.back();
    leafOf_.resize(n);
    const int blocks = blocksFor(n, c_threads);
    if (n > 0)
    {
        countKernel<<<blocks, c_threads, 0, stream>>>(
                onDevice, x, n, hash_.view(), leafOf_.data(), counts_.data());
        checkLaunch("finding cells");
    }
    startKernel<<<1, c_scanThreads, 0, stream>>>(counts_.data(),
                                                 leaves,
                                                 start_.data(),
                                                 next_.data(),
                                                 groupsEnd_.data(),
                                                 invalid_.data());
    checkLaunch("counting points of leaves");
    if (n > 0)
    {
        scatterKernel<<<blocks, c_threads, 0, stream>>>(
                leafOf_.data(), n, next_.data(), index_.data());
        checkLaunch("sorting");
        orderKernel<Real><<<blocks, c_threads, 0, stream>>>(onDevice,
                                                            x,
                                                            q,
                                                            index_.data(),
                                                            leafOf_.data(),
                                                            start_.data(),
                                                            n,
                                                            order_.data(),
                                                            at_.data(),
                                                            invalid_.data());
        checkLaunch("placing points");
    }
}

template<class Real>
void PointsInLeaves<Real>::sortByKeys(const double* x,
                                      const Real* q,
                                      const LeafFrame& frame,
                                      int levels,
                                      cudaStream_t stream)
{
    const FrameOnDevice onDevice(frame);
    const int n = static_cast<int>(order_.size());
    keys_.resize(n);
    sortedKeys_.resize(n);
    invalid_.clear(stream);
    if (n > 0)
    {
        keyKernel<<<blocksFor(n, c_threads), c_threads, 0, stream>>>(
                onDevice, x, n, keys_.data(), index_.data(), invalid_.data());
        checkLaunch("finding cells");
        int bits = 1;
        for (const int count : frame.counts)
        {
            while ((1LL << bits / 3) < count)
            {
                bits += 3;
            }
        }
        room_.run("sorting",
                  [&](void* space, size_t& bytes)
                  {
                      return cub::DeviceRadixSort::SortPairs(space,
                                                             bytes,
                                                             keys_.data(),
                                                             sortedKeys_.data(),
                                                             index_.data(),
                                                             order_.data(),
                                                             n,
                                                             0,
                                                             std::min(bits, 64),
                                                             stream);
                  });
        placeKernel<Real><<<blocksFor(n, c_threads), c_threads, 0, stream>>>(
                onDevice, x, q, order_.data(), n, at_.data());
        checkLaunch("placing points");
    }
    runs_.find(sortedKeys_.data(), n, levels, stream);
    cells_           = runs_.counts();
    areAll_          = false;
    const int leaves = cells_.back();
    start_.resize(leaves + 1);
    leafKeys_.resize(leaves);
    writeStarts(0, start_.data(), stream);
    groups_.resize(leaves);
    groupsEnd_.resize(leaves);
    leafKernel<<<blocksFor(leaves + 1, c_threads), c_threads, 0, stream>>>(
            sortedKeys_.data(), start_.data(), leaves, n, leafKeys_.data(), groups_.data());
    checkLaunch("listing leaves");
    if (leaves > 0)
    {
        room_.run("counting groups",
                  [&](void* space, size_t& bytes)
                  {
                      return cub::DeviceScan::InclusiveSum(
                              space, bytes, groups_.data(), groupsEnd_.data(), leaves, stream);
                  });
    }
    hash_.set(leafKeys_.data(), leaves, stream);
}

template<class Real>
void PointsInLeaves<Real>::listAll(const LeafFrame& frame, int levels, cudaStream_t stream)
{
    const Int3& counts = frame.counts;
    if (!areAll_ || allOf_ != counts || static_cast<int>(cells_.size()) != levels)
    {
        std::vector<std::uint64_t> keys;
        for (int x = 0; x < counts[0]; x++)
        {
            for (int y = 0; y < counts[1]; y++)
            {
                for (int z = 0; z < counts[2]; z++)
                {
                    keys.push_back(mortonKey(x, y, z));
                }
            }
        }
        std::sort(keys.begin(), keys.end());
        areAll_ = false; // until all is there
        leafKeys_.upload(keys.data(), keys.size(), stream);
        hash_.set(leafKeys_.data(), static_cast<int>(keys.size()), stream);
        start_.resize(keys.size() + 1);
        counts_.resize(keys.size());
        counts_.clear(stream);
        next_.resize(keys.size());
        groupsEnd_.resize(keys.size());
        cells_.resize(levels);
        for (int l = 0; l < levels; l++)
        {
            cells_[l] = static_cast<int>(keys.size() >> 3 * (levels - 1 - l));
        }
        allOf_  = counts;
        areAll_ = true;
        generation_++;
    }
}

template<class Real>
int PointsInLeaves<Real>::firstInvalid(cudaStream_t stream)
{
    int fromEnd = 0;
    invalid_.download(&fromEnd, 1, stream);
    return static_cast<int>(order_.size()) - fromEnd;
}

template<class Real>
void PointsInLeaves<Real>::setCharges(const Real* q, int sets, int set, cudaStream_t stream)
{
    const int n = static_cast<int>(order_.size());
    if (n > 0)
    {
        chargeKernel<<<blocksFor(n, c_threads), c_threads, 0, stream>>>(
                q, sets, set, order_.data(), n, at_.data());
        checkLaunch("taking charges");
    }
}

template<class Real>
LeavesView<Real> PointsInLeaves<Real>::view()
{
    return { static_cast<int>(order_.size()),
             cells().back(),
             at_.data(),
             order_.data(),
             start_.data(),
             leafKeys_.data(),
             hash_.view(),
             groupsEnd_.data() };
}

template class PointsInLeaves<float>;
template class PointsInLeaves<double>;

} // namespace farfield
