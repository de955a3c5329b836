/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A counting sort. Ranks within cells come from the atomics that count, so they differ from run to
// run unless a further kernel orders the members of each cell. Particles are binned in the order of
// the sort before, where that need not be reproducible: those of a cell then come one after the
// other, wherever they are in the caller's arrays.
#include "sort/cell_list.h"

#include <climits>

#include <algorithm>
#include <vector>

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "cells/grid.h"
#include "sort/occupied.cuh"

namespace farfield
{
namespace
{

//! Elements of DeviceCells::View::state.
enum CellState
{
    StateWorst,  //!< INT_MAX - index of the first invalid particle, 0 for none; 0 between steps
    StateTicket, //!< blocks that have read the counts; 0 between steps
    StateCount
};

constexpr int c_threads = 128;
//! Threads of the kernel that sums the counts by itself.
constexpr int c_scanThreads = 512;
//! Counts per thread there: odd, so that stretches of shared memory do not share banks.
constexpr int c_fewItems = 9, c_moreItems = 17;
//! More blocks than this should not each sum all counts.
constexpr int c_maxScanBlocks = 320;

//! Offset of the grid; next is the step after the last one.
__device__ __forceinline__ void findOrigin(const GridPosition& where, double next, double* origin)
{
#pragma unroll
    for (int k = 0; k < 3; k++)
    {
        const double product = where.increments[k] * next;
        origin[k]            = where.advance ? product - floor(product) : where.offset[k];
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads) bin(CellGrid grid,
                                                 BinFrame frame,
                                                 GridPosition where,
                                                 const Real* __restrict__ x,
                                                 const Real* __restrict__ q,
                                                 Real4<Real>* __restrict__ cleared,
                                                 typename DeviceCells<Real>::View v)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= v.n)
    {
        return;
    }
    double origin[3];
    findOrigin(where, v.evaluation->step + 1, origin);
    const int particle     = v.reproducible ? v.particles[i] : v.atom[i];
    const Real* own        = x + 3 * static_cast<size_t>(particle);
    const Real position[3] = { own[0], own[1], own[2] };
    Real relative[3]       = { 0, 0, 0 };
    Real charge            = q[particle];
    int cell               = 0;
    if (!binPosition(grid, frame, origin, position, &cell, relative))
    {
        atomicMax(v.state + StateWorst, INT_MAX - particle);
        charge = 0;
    }
    const int bin = (cell << v.logBins) + (particle < v.own ? 0 : 1);
    v.walk[i]     = particle;
    v.place[i]    = make_int2(bin, atomicAdd(v.counts + bin, 1));
    v.binned[i]   = { relative[0], relative[1], relative[2], charge };
    if (cleared != nullptr)
    {
        cleared[i] = { 0, 0, 0, 0 };
    }
}

//! A particle that has been binned.
template<class Real>
struct Binned
{
    Real4<Real> xq;
    int2 place; //!< bin and rank within it
    int index;  //!< of the caller

    //! Reads number i of the walk.
    __device__ void get(const typename DeviceCells<Real>::View& v, int i)
    {
        xq    = v.binned[i];
        place = v.place[i];
        index = v.walk[i];
    }
    //! Writes it to its position after sorting.
    __device__ void put(const typename DeviceCells<Real>::View& v, int to) const
    {
        v.xq[to]          = xq;
        v.atom[to]        = index;
        v.cell[to]        = place.x >> v.logBins;
        v.position[index] = to;
        if (v.given != nullptr)
        {
            const Real* x = v.x + 3 * static_cast<size_t>(index);
            v.given[to]   = { x[0], x[1], x[2], xq.w };
        }
    }
};

//! One thread tells whether a position was invalid and makes ready for the next step.
template<class Real>
__device__ void finishBinning(const GridPosition& where,
                              const Sums& sums,
                              const typename DeviceCells<Real>::View& v)
{
    auto& evaluation    = *v.evaluation;
    evaluation.invalid  = INT_MAX - v.state[StateWorst];
    v.state[StateWorst] = 0;
    const double next   = evaluation.step + 1;
    findOrigin(where, next, evaluation.origin);
    evaluation.step   = where.advance ? next : where.step;
    evaluation.number = evaluation.number + 1;
    evaluation.sums   = sums;
}

//! Moves the particles once the first position of every cell is known.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        scatter(const __grid_constant__ GridPosition where,
                const __grid_constant__ Sums sums,
                const __grid_constant__ typename DeviceCells<Real>::View v)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i == 0)
    {
        finishBinning<Real>(where, sums, v);
    }
    if (i >= v.n)
    {
        return;
    }
    Binned<Real> particle;
    particle.get(v, i);
    const int to = v.start[particle.place.x] + particle.place.y;
    if (particle.place.y == 0)
    {
        v.counts[particle.place.x] = 0;
    }
    if (v.reproducible)
    {
        v.unordered[to] = i;
    }
    else
    {
        particle.put(v, to);
    }
}

/*! \brief The same for few cells, where every block sums all counts for itself: a launch less.
 *
 *  The block that comes last clears the counts. */
template<int Items, class Real>
__global__ void __launch_bounds__(c_scanThreads)
        scanAndScatter(const __grid_constant__ GridPosition where,
                       const __grid_constant__ Sums sums,
                       const __grid_constant__ typename DeviceCells<Real>::View v)
{
    using Scan = cub::BlockScan<int, c_scanThreads>;
    __shared__ typename Scan::TempStorage space;
    __shared__ int start[c_scanThreads * Items];
    __shared__ bool last;
    const int thread = threadIdx.x;
#pragma unroll
    for (int k = 0; k < Items; k++)
    {
        const int cell = k * c_scanThreads + thread;
        start[cell]    = (cell < v.bins) ? v.counts[cell] : 0;
    }
    const int i = blockIdx.x * c_scanThreads + thread;
    Binned<Real> particle;
    if (i < v.n) // read while other reads are under way
    {
        particle.get(v, i);
    }
    __syncthreads();
    int ticket = 0; // looked at late: nobody should wait for it
    if (thread == 0)
    {
        __threadfence();
        ticket = atomicAdd(v.state + StateTicket, 1);
        if (blockIdx.x == 0)
        {
            finishBinning<Real>(where, sums, v);
        }
    }
    int own[Items];
    int sum = 0;
#pragma unroll
    for (int k = 0; k < Items; k++)
    {
        own[k] = start[thread * Items + k];
        sum += own[k];
    }
    Scan(space).ExclusiveSum(sum, sum);
#pragma unroll
    for (int k = 0; k < Items; k++)
    {
        start[thread * Items + k] = sum;
        sum += own[k];
    }
    if (thread == 0)
    {
        last = ticket == static_cast<int>(gridDim.x) - 1;
    }
    __syncthreads();
    if (blockIdx.x == 0)
    {
        for (int cell = thread; cell <= v.bins; cell += c_scanThreads)
        {
            v.start[cell] = start[cell];
        }
    }
    if (last)
    {
        for (int cell = thread; cell < v.bins; cell += c_scanThreads)
        {
            v.counts[cell] = 0;
        }
        if (thread == 0)
        {
            v.state[StateTicket] = 0;
        }
    }
    if (i >= v.n)
    {
        return;
    }
    const int to = start[particle.place.x] + particle.place.y;
    if (v.reproducible)
    {
        v.unordered[to] = i;
    }
    else
    {
        particle.put(v, to);
    }
}

//! Moves the particles in their original order within cells.
template<class Real>
__global__ void __launch_bounds__(c_threads) order(typename DeviceCells<Real>::View v)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= v.n)
    {
        return;
    }
    Binned<Real> particle;
    particle.get(v, i);
    const int begin = v.start[particle.place.x];
    const int end   = v.start[particle.place.x + 1];
    int to          = begin;
    for (int k = begin; k < end; k++)
    {
        to += (v.unordered[k] < i) ? 1 : 0;
    }
    particle.put(v, to);
}

} // namespace

GridPosition gridPosition(const std::array<double, 3>& offset, long long step, cudaStream_t stream)
{
    return { { offset[0], offset[1], offset[2] },
             static_cast<double>(step),
             step >= 0 && isCapturing(stream),
             { c_offsetSteps[0], c_offsetSteps[1], c_offsetSteps[2] } };
}

template<class Real>
void DeviceCells<Real>::resize(int n, int all, int own, int cells, bool hasGhosts)
{
    const int logBins = hasGhosts ? 1 : 0;
    const int bins    = cells << logBins;
    binned_.resize(n);
    xq_.resize(n);
    given_.resize(keepsGiven_ ? n : 0);
    place_.resize(n);
    walk_.resize(n);
    unordered_.resize(n);
    atom_.resize(n);
    cell_.resize(n);
    position_.resize(all);
    counts_.resize(static_cast<size_t>(bins) + 1);
    start_.resize(static_cast<size_t>(bins) + 1);
    size_t space = 0;
    check(cub::DeviceScan::ExclusiveSum(nullptr, space, counts_.data(), start_.data(), bins + 1),
          "sizing a prefix sum");
    scanSpace_.resize(space);
    state_.resize(StateCount);
    evaluation_.resize(1);
    n_       = n;
    cells_   = cells;
    bins_    = bins;
    logBins_ = logBins;
    own_     = own;
    state_.clear(cudaStreamPerThread);
    counts_.clear(cudaStreamPerThread);
    evaluation_.clear(cudaStreamPerThread);
    check(cudaStreamSynchronize(cudaStreamPerThread), "clearing memory");
}

template<class Real>
void DeviceCells<Real>::setParticles(const int* particles, cudaStream_t stream)
{
    particles_ = particles;
    copyAsync(atom_.data(), particles, n_, stream, "copying indices of particles");
    check(cudaStreamSynchronize(stream), "copying indices of particles");
}

template<class Real>
typename DeviceCells<Real>::View DeviceCells<Real>::view(const Real* x, bool reproducible)
{
    return { n_,
             bins_,
             logBins_,
             own_,
             reproducible,
             particles_,
             walk_.data(),
             binned_.data(),
             place_.data(),
             counts_.data(),
             state_.data(),
             evaluation_.data(),
             unordered_.data(),
             xq_.data(),
             start_.data(),
             atom_.data(),
             cell_.data(),
             position_.data(),
             x,
             keepsGiven_ ? given_.data() : nullptr };
}

template<class Real>
void DeviceCells<Real>::sort(const CellGrid& grid,
                             const BinFrame& frame,
                             const GridPosition& where,
                             const Sums& sums,
                             const Real* x,
                             const Real* q,
                             Real4<Real>* cleared,
                             bool reproducible,
                             cudaStream_t stream)
{
    const View v     = view(x, reproducible);
    const int blocks = std::max(1, blocksFor(n_, c_threads));
    bin<Real><<<blocks, c_threads, 0, stream>>>(grid, frame, where, x, q, cleared, v);
    checkLaunch("binning particles");
    const int scanBlocks = std::max(1, blocksFor(n_, c_scanThreads));
    if (bins_ < c_scanThreads * c_moreItems && scanBlocks <= c_maxScanBlocks)
    {
        if (bins_ < c_scanThreads * c_fewItems)
        {
            scanAndScatter<c_fewItems, Real>
                    <<<scanBlocks, c_scanThreads, 0, stream>>>(where, sums, v);
        }
        else
        {
            scanAndScatter<c_moreItems, Real>
                    <<<scanBlocks, c_scanThreads, 0, stream>>>(where, sums, v);
        }
        checkLaunch("sorting particles");
    }
    else
    {
        size_t space = scanSpace_.size();
        check(cub::DeviceScan::ExclusiveSum(
                      scanSpace_.data(), space, v.counts, v.start, bins_ + 1, stream),
              "summing the particles per cell");
        scatter<Real><<<blocks, c_threads, 0, stream>>>(where, sums, v);
        checkLaunch("sorting particles");
    }
    if (reproducible)
    {
        order<Real><<<blocks, c_threads, 0, stream>>>(v);
        checkLaunch("ordering particles within cells");
    }
}

template<class Real>
SortedParticles<Real> DeviceCells<Real>::particles() const
{
    return {
        n_, xq_.data(), start_.data(), atom_.data(), cell_.data(), position_.data(), logBins_
    };
}

template<class Real>
SortedParticles<Real> DeviceCells<Real>::ofPairs() const
{
    SortedParticles<Real> result = particles();
    result.xq                    = keepsGiven_ ? given_.data() : result.xq;
    return result;
}

template<class Real>
typename DeviceCells<Real>::Occupancy DeviceCells<Real>::occupancy(cudaStream_t stream) const
{
    std::vector<int> start(static_cast<size_t>(bins_) + 1);
    start_.download(start.data(), start.size(), stream);
    Occupancy result = { 0, 0 };
    double squares   = 0;
    const int step   = 1 << logBins_;
    for (int bin = 0; bin < bins_; bin += step)
    {
        const int count = start[bin + step] - start[bin];
        result.cells += count > 0 ? 1 : 0;
        squares += static_cast<double>(count) * count;
    }
    result.usual = static_cast<int>(squares / std::max(n_, 1));
    return result;
}

template<class Real>
void DeviceCells<Real>::selectMarked(void* space, size_t* bytes, cudaStream_t stream)
{
    check(cub::DeviceSelect::Flagged(space,
                                     *bytes,
                                     thrust::counting_iterator<int>(0),
                                     marks_.data(),
                                     occupied_.data(),
                                     occupiedCount_.data(),
                                     cells_,
                                     stream),
          "listing the cells that hold particles");
}

template<class Real>
void DeviceCells<Real>::makeRoomForList()
{
    occupied_.resize(cells_);
    occupiedCount_.resize(1);
    marks_.resize(cells_);
    size_t bytes = 0;
    selectMarked(nullptr, &bytes, nullptr);
    selectSpace_.resize(bytes);
}

template<class Real>
void DeviceCells<Real>::listOccupied(const CellGrid& grid, int ws, cudaStream_t stream)
{
    const IsOccupied isOccupied = { start_.data(), logBins_, ws, NeighbourFinder(grid) };
    markOccupied<<<blocksFor(cells_, c_occupiedThreads), c_occupiedThreads, 0, stream>>>(
            isOccupied, cells_, marks_.data());
    checkLaunch("marking the cells that hold particles");
    size_t bytes = selectSpace_.size();
    selectMarked(selectSpace_.data(), &bytes, stream);
}

template class DeviceCells<float>;
template class DeviceCells<double>;

} // namespace farfield
