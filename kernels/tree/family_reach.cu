/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tree/family_reach.h"

#include <algorithm>

#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;
//! Blocks take several particles per thread: most launches have nothing to do.
constexpr int c_maxBlocks       = 512;
constexpr unsigned c_offsetBits = 0xffU;
//! Counts are told apart by so many bits: a mark older than all of them is long gone.
constexpr unsigned c_stampBits = 0xffffffU;

//! Inverse of the edges of a leaf cell.
struct Inverse
{
    double edges[3][3];
};

//! Marks a cell; returns the offsets that it was not marked for.
__device__ unsigned markCell(unsigned* mark, unsigned stamp, unsigned offsets)
{
    unsigned seen = *mark;
    while (true)
    {
        const unsigned before = (seen >> 8) == stamp ? seen & c_offsetBits : 0U;
        if ((offsets & ~before) == 0)
        {
            return 0;
        }
        const unsigned found = atomicCAS(mark, seen, (stamp << 8) | before | offsets);
        if (found == seen)
        {
            return offsets & ~before;
        }
        seen = found;
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        countReached(const __grid_constant__ typename FamilyReach<Real>::View v,
                     SortedParticles<Real> particles,
                     const __grid_constant__ Inverse inverse,
                     double margin,
                     const double* __restrict__ origin,
                     const int* __restrict__ evaluation)
{
    if (evaluation != nullptr && particles.n > FamilyReach<Real>::c_many
        && *evaluation % FamilyReach<Real>::c_interval != 0)
    {
        return;
    }
    __shared__ int found[c_maxLevels][c_reachOffsets];
    for (int k = threadIdx.x; k < c_maxLevels * c_reachOffsets; k += c_threads)
    {
        found[k / c_reachOffsets][k % c_reachOffsets] = 0;
    }
    __syncthreads();
    const unsigned stamp = (*v.stamp + 1) & c_stampBits;
    const int leaf       = v.levels - 1;
    for (int i = blockIdx.x * c_threads + threadIdx.x; i < particles.n; i += gridDim.x * c_threads)
    {
        int c[3];
        v.grid[leaf].cell(particles.cell[i], c);
        const Real4<Real> r      = particles.xq[i];
        const double relative[3] = { static_cast<double>(r.x),
                                     static_cast<double>(r.y),
                                     static_cast<double>(r.z) };
        double position[3];
        for (int k = 0; k < 3; k++)
        {
            position[k] = c[k] + 0.5 + relative[0] * inverse.edges[0][k]
                          + relative[1] * inverse.edges[1][k] + relative[2] * inverse.edges[2][k]
                          + origin[k];
        }
        for (int level = 0; level < leaf; level++)
        {
            forReachedCells(v.grid[level],
                            position,
                            margin,
                            leaf - level,
                            [&](int cell, unsigned offsets)
                            {
                                unsigned added =
                                        markCell(v.marks + v.first[level] + cell, stamp, offsets);
                                for (; added != 0; added &= added - 1)
                                {
                                    atomicAdd(&found[level][__ffs(added) - 1], 1);
                                }
                            });
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < leaf * c_reachOffsets; k += c_threads)
    {
        const int number = found[k / c_reachOffsets][k % c_reachOffsets];
        if (number > 0)
        {
            atomicAdd(v.running + k, number);
        }
    }
    if (lastBlock(v.done, gridDim.x) && threadIdx.x == 0)
    {
        for (int level = 0; level < leaf; level++)
        {
            int most = 0;
            for (int s = 0; s < c_reachOffsets; s++)
            {
                most = max(most, atomicExch(v.running + level * c_reachOffsets + s, 0));
            }
            v.result[level + 1] = most;
        }
        *v.stamp = stamp;
        __threadfence_system();
    }
}

} // namespace

template<class Real>
void FamilyReach<Real>::resize(const std::vector<CellGrid>& grids)
{
    View next   = {};
    next.levels = static_cast<int>(grids.size());
    int marks   = 0;
    for (int level = 0; level < next.levels; level++)
    {
        next.grid[level]  = grids[level];
        next.first[level] = marks;
        marks += (level + 1 < next.levels) ? grids[level].cells : 0;
    }
    constexpr int c_counters = c_maxLevels * c_reachOffsets;
    marks_.resize(static_cast<size_t>(marks) + c_counters + 2);
    marks_.clear(cudaStreamPerThread);
    check(cudaStreamSynchronize(cudaStreamPerThread), "clearing memory");
    result_.resize(1);
    result_.data()->fill(0);
    next.running = reinterpret_cast<int*>(marks_.data());
    next.done    = marks_.data() + c_counters;
    next.stamp   = next.done + 1;
    next.marks   = next.stamp + 1;
    next.result  = result_.data()->data();
    view_        = next;
}

template<class Real>
void FamilyReach<Real>::count(const SortedParticles<Real>& particles,
                              const double inverseEdges[3][3],
                              double margin,
                              const double* origin,
                              const int* evaluation,
                              cudaStream_t stream)
{
    const int blocks = std::clamp(blocksFor(particles.n, c_threads), 1, c_maxBlocks);
    Inverse inverse;
    std::copy_n(&inverseEdges[0][0], 9, &inverse.edges[0][0]);
    countReached<Real><<<blocks, c_threads, 0, stream>>>(
            view_, particles, inverse, margin, origin, evaluation);
    checkLaunch("counting the cells that particles may come to");
}

template<class Real>
int FamilyReach<Real>::families(int level) const
{
    return static_cast<const volatile int*>(view_.result)[level];
}

template class FamilyReach<float>;
template class FamilyReach<double>;

} // namespace farfield
