/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/links.h"

#include <algorithm>

#include "expansions/force_output.cuh"
#include "runtime/load.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = 128, c_fetchThreads = 256;
//! Most blocks that move data between devices: enough to fill a link.
constexpr int c_mostBlocks = 256;
//! Loads of a thread under way at a time.
constexpr int c_underway = 4;

__device__ __forceinline__ unsigned long long globalTime()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__global__ void stampKernel(unsigned long long* time)
{
    *time = globalTime();
}

__global__ void adjustKernel(ShareState* state, int helpers)
{
    followTimes(state, helpers);
}

__global__ void beginKernel(ShareState* state, int* inUse)
{
    const int k = static_cast<int>(threadIdx.x);
    if (k < c_maxHelperDevices + 2)
    {
        inUse[k] = state->bounds[k];
    }
    if (k == 0)
    {
        state->begin = globalTime();
    }
}

/*! \brief The layers of cells that pairs of a share can have met: cells of a layer follow one another
 *         in storage order, and neighbours are at most ws layers away. */
struct MetLayers
{
    int layers; //!< of the grid
    int first, count;

    template<class Real>
    __device__ void find(const DeviceNearTask<Real>& task, const OccupiedCells& share)
    {
        const CellGrid& grid = task.grid;
        layers               = grid.H[2][2];
        first = count = 0;
        int begin, end;
        share.findShare(&begin, &end);
        if (begin >= end)
        {
            return;
        }
        const int ofLayer = grid.H[0][0] * grid.H[1][1];
        const auto layer  = [&](int entry)
        { return (share.cells != nullptr ? share.cells[entry] : entry) / ofLayer; };
        // with the third law a cell meets none of a layer before its own
        first = layer(begin) - (task.reproducible ? task.ws : 0);
        count = layer(end - 1) + task.ws - first + 1;
        first += first < 0 ? layers : 0;
        if (count >= layers)
        {
            first = 0;
            count = layers;
        }
    }
    __device__ bool has(int layer) const
    {
        const int after = layer - first + (layer < first ? layers : 0);
        return after < count;
    }
    //! The layers as at most two ranges that do not wrap. \param[in] part  0 or 1
    __device__ void range(int part, int* begin, int* end) const
    {
        *begin = part == 0 ? first : 0;
        *end   = part == 0 ? min(first + count, layers) : max(0, first + count - layers);
    }
};

/*! \brief Does something for every index of a range, some under way at a time.
 *  \param[in] get  reads number i
 *  \param[in] put  takes it */
template<class Get, class Put>
__device__ __forceinline__ void forRange(int begin, int end, const Get& get, const Put& put)
{
    const int stride = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = begin + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < end;
         i += c_underway * stride)
    {
        decltype(get(i)) read[c_underway];
#pragma unroll
        for (int k = 0; k < c_underway; k++)
        {
            if (i + k * stride < end)
            {
                read[k] = get(i + k * stride);
            }
        }
#pragma unroll
        for (int k = 0; k < c_underway; k++)
        {
            if (i + k * stride < end)
            {
                put(i + k * stride, read[k]);
            }
        }
    }
}

//! What a share has, in ranges: found by one thread, as it may lie in the memory of another device.
struct MetRanges
{
    int firstCell[2], endCell[2];         //!< in storage order
    int firstParticle[2], endParticle[2]; //!< sorted
    int firstEntry, endEntry;             //!< of the list of cells, or cells

    template<class Real>
    __device__ void find(const DeviceNearTask<Real>& task)
    {
        MetLayers layers;
        layers.find(task, task.occupied);
        const int ofLayer = task.grid.H[0][0] * task.grid.H[1][1];
        task.occupied.findShare(&firstEntry, &endEntry);
        for (int part = 0; part < 2; part++)
        {
            layers.range(part, firstCell + part, endCell + part);
            firstCell[part] *= ofLayer;
            endCell[part] *= ofLayer;
            firstParticle[part] = task.particles.start[firstCell[part]];
            endParticle[part]   = task.particles.start[endCell[part]];
        }
    }
};

//! Of all threads of a block.
template<class Real>
__device__ __forceinline__ void findRanges(const DeviceNearTask<Real>& task, MetRanges* ranges)
{
    if (threadIdx.x == 0)
    {
        ranges->find(task);
    }
    __syncthreads();
}

template<class Real>
__global__ void __launch_bounds__(c_fetchThreads)
        fetchKernel(const __grid_constant__ DeviceNearTask<Real> home,
                    const __grid_constant__ HelperInput<Real> to)
{
    __shared__ MetRanges ranges;
    findRanges(home, &ranges);
    for (int part = 0; part < 2; part++)
    {
        const bool any = ranges.firstCell[part] < ranges.endCell[part];
        forRange(
                ranges.firstCell[part],
                ranges.endCell[part] + (any ? 1 : 0),
                [&](int i) { return home.particles.start[i]; },
                [&](int i, int value) { to.start[i] = value; });
        forRange(
                ranges.firstParticle[part],
                ranges.endParticle[part],
                [&](int i) { return home.particles.xq[i]; },
                [&](int i, const Real4<Real>& value)
                {
                    to.xq[i]     = value;
                    to.forces[i] = { 0, 0, 0, 0 };
                });
    }
    if (home.occupied.cells != nullptr)
    {
        forRange(
                ranges.firstEntry,
                ranges.endEntry,
                [&](int i) { return home.occupied.cells[i]; },
                [&](int i, int cell) { to.listed[i] = cell; });
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
    {
        to.bounds[0] = home.occupied.share.bounds[0];
        to.bounds[1] = home.occupied.share.bounds[1];
        *to.count    = home.occupied.cells != nullptr ? *home.occupied.count : 0;
        *to.totals   = NearTotals{};
    }
}

template<class Real>
__global__ void __launch_bounds__(c_fetchThreads)
        fetchCloseKernel(const __grid_constant__ DeviceNearTask<Real> cells,
                         const int* anyAtHome,
                         const int4* closeAtHome,
                         int* anyClose,
                         int4* closeOf)
{
    __shared__ MetRanges ranges;
    const bool any = *anyAtHome != 0;
    if (blockIdx.x == 0 && threadIdx.x == 0)
    {
        *anyClose = any ? 1 : 0;
    }
    if (!any)
    {
        return;
    }
    findRanges(cells, &ranges);
    for (int part = 0; part < 2; part++)
    {
        forRange(
                ranges.firstParticle[part],
                ranges.endParticle[part],
                [&](int i) { return closeAtHome[i]; },
                [&](int i, const int4& close) { closeOf[i] = close; });
    }
}

template<class Real>
__global__ void __launch_bounds__(c_fetchThreads)
        fetchTermsKernel(const __grid_constant__ DeviceNearTask<Real> cells,
                         const Real* home,
                         Real* terms)
{
    __shared__ MetRanges ranges;
    findRanges(cells, &ranges);
    for (int part = 0; part < 2; part++)
    {
        forRange(
                ranges.firstParticle[part],
                ranges.endParticle[part],
                [&](int i) { return home[i]; },
                [&](int i, Real term) { terms[i] = term; });
    }
}

template<class Real>
__global__ void __launch_bounds__(c_fetchThreads)
        deliverKernel(const __grid_constant__ DeviceNearTask<Real> done,
                      const Real4<Real>* forces,
                      const __grid_constant__ HelperOutput<Real> to)
{
    __shared__ MetRanges ranges;
    findRanges(done, &ranges);
    for (int part = 0; part < 2; part++)
    {
        forRange(
                ranges.firstParticle[part],
                ranges.endParticle[part],
                [&](int i) { return load(forces + i); },
                [&](int i, const Real4<Real>& force) { to.forces[i] = force; });
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
    {
        *to.totals = *done.results.totals;
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        combineKernel(const __grid_constant__ DeviceNearTask<Real> all,
                      const __grid_constant__ HelperOutputs<Real> from,
                      const __grid_constant__ ForceArrays<Real> out)
{
    __shared__ MetLayers met[c_maxHelperDevices];
    const int thread = static_cast<int>(threadIdx.x);
    const int i      = static_cast<int>(blockIdx.x) * c_threads + thread;
    if (thread < from.count)
    {
        met[thread].find(all, from.shares[thread]);
    }
    if (i == 0 && all.results.wanted != NearSums::None)
    {
        NearTotals& totals = *all.results.totals;
        for (int h = 0; h < from.count; h++)
        {
            const NearTotals& part = *from.of[h].totals;
            totals.energy += part.energy;
            totals.excess += part.excess;
            for (int k = 0; k < 6; k++)
            {
                totals.virial[k] += part.virial[k];
            }
        }
    }
    __syncthreads();
    Real square = 0;
    if (i < all.particles.n)
    {
        const int layer  = all.particles.cell[i] / (all.grid.H[0][0] * all.grid.H[1][1]);
        const int atom   = all.particles.atom[i];
        Real4<Real> near = load(out.near + i);
        for (int h = 0; h < from.count; h++)
        {
            if (met[h].has(layer))
            {
                const Real4<Real> part = load(from.of[h].forces + i);
                near.x += part.x;
                near.y += part.y;
                near.z += part.z;
            }
        }
        ForceOutput<Real> output;
        output.begin(out, atom, near);
        square = output.finish(out, all.particles.xq[i].w, load(out.far + i));
    }
    if (out.fields != nullptr)
    {
        addField(square, i == 0, out.fields);
    }
}

int blocksThatMove(int particles)
{
    return std::clamp(blocksFor(particles, c_fetchThreads * c_underway), 1, c_mostBlocks);
}

} // namespace

void stamp(unsigned long long* time, cudaStream_t stream)
{
    stampKernel<<<1, 1, 0, stream>>>(time);
    checkLaunch("taking a time");
}

void adjustShares(ShareState* state, int helpers, cudaStream_t stream)
{
    adjustKernel<<<1, 1, 0, stream>>>(state, helpers);
    checkLaunch("sharing the near field");
}

void beginShares(ShareState* state, int* inUse, cudaStream_t stream)
{
    beginKernel<<<1, c_warp, 0, stream>>>(state, inUse);
    checkLaunch("sharing the near field");
}

template<class Real>
void fetchCells(const DeviceNearTask<Real>& home, const HelperInput<Real>& to, cudaStream_t stream)
{
    fetchKernel<Real><<<blocksThatMove(home.particles.n), c_fetchThreads, 0, stream>>>(home, to);
    checkLaunch("fetching particles from another GPU");
}

template<class Real>
void fetchClose(const DeviceNearTask<Real>& cells,
                const typename DeviceExclusions<Real>::View& home,
                int* anyClose,
                int4* closeOf,
                cudaStream_t stream)
{
    fetchCloseKernel<Real><<<blocksThatMove(cells.particles.n), c_fetchThreads, 0, stream>>>(
            cells, home.anyClose, home.closeOf, anyClose, closeOf);
    checkLaunch("fetching excluded pairs from another GPU");
}

template<class Real>
void fetchTerms(const DeviceNearTask<Real>& cells,
                const Real* home,
                Real* terms,
                cudaStream_t stream)
{
    fetchTermsKernel<Real>
            <<<blocksThatMove(cells.particles.n), c_fetchThreads, 0, stream>>>(cells, home, terms);
    checkLaunch("fetching widths from another GPU");
}

template<class Real>
void deliver(const DeviceNearTask<Real>& done,
             const Real4<Real>* forces,
             const HelperOutput<Real>& to,
             cudaStream_t stream)
{
    deliverKernel<Real>
            <<<blocksThatMove(done.particles.n), c_fetchThreads, 0, stream>>>(done, forces, to);
    checkLaunch("sending forces to another GPU");
}

template<class Real>
void combineForces(const DeviceNearTask<Real>& all,
                   const HelperOutputs<Real>& from,
                   const ForceArrays<Real>& out,
                   cudaStream_t stream)
{
    combineKernel<Real>
            <<<std::max(1, blocksFor(all.particles.n, c_threads)), c_threads, 0, stream>>>(
                    all, from, out);
    checkLaunch("adding forces of other GPUs");
}

template decltype(fetchCells<float>) fetchCells<float>;
template decltype(fetchCells<double>) fetchCells<double>;
template decltype(fetchClose<float>) fetchClose<float>;
template decltype(fetchClose<double>) fetchClose<double>;
template decltype(fetchTerms<float>) fetchTerms<float>;
template decltype(fetchTerms<double>) fetchTerms<double>;
template decltype(deliver<float>) deliver<float>;
template decltype(deliver<double>) deliver<double>;
template decltype(combineForces<float>) combineForces<float>;
template decltype(combineForces<double>) combineForces<double>;

} // namespace farfield
