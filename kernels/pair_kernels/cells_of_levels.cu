/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/cells_of_levels.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "pair_kernels/cell_keys.cuh"
#include "runtime/search.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

__global__ void __launch_bounds__(c_threads)
        headKernel(const std::uint64_t* __restrict__ keys, int count, int* __restrict__ heads)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        heads[i] = i == 0 || keys[i] >> 3 != keys[i - 1] >> 3 ? 1 : 0;
    }
}

//! Parents from how many there are up to each child. \param[in,out] parent  this number; then the parent
__global__ void __launch_bounds__(c_threads) parentKernel(const std::uint64_t* __restrict__ keys,
                                                          const int* __restrict__ heads,
                                                          int count,
                                                          int* __restrict__ parent,
                                                          std::uint64_t* __restrict__ parentKeys,
                                                          int* __restrict__ firstChild,
                                                          unsigned char* __restrict__ children)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= count)
    {
        return;
    }
    const int own = parent[i] - 1;
    parent[i]     = own;
    if (heads[i] == 0)
    {
        return;
    }
    const std::uint64_t ofParent = keys[i] >> 3;
    unsigned int mask            = 0;
    for (int k = i; k < count && keys[k] >> 3 == ofParent; k++)
    {
        mask |= 1U << (keys[k] & 7);
    }
    parentKeys[own] = ofParent;
    firstChild[own] = i;
    children[own]   = static_cast<unsigned char>(mask);
}

__global__ void __launch_bounds__(c_threads) nearKernel(const std::uint64_t* __restrict__ keys,
                                                        int count,
                                                        CellHashView hash,
                                                        CellsOfBox box,
                                                        int ws,
                                                        int* __restrict__ near)
{
    const int width     = 2 * ws + 1;
    const int places    = width * width * width;
    const long long all = static_cast<long long>(count) * places;
    const long long i   = static_cast<long long>(blockIdx.x) * c_threads + threadIdx.x;
    if (i >= all)
    {
        return;
    }
    const int place = static_cast<int>(i % places);
    const int3 cell = cellOfKey(keys[i / places]);
    near[i]         = findDisplaced(hash,
                            box,
                            cell,
                            place / (width * width) - ws,
                            place / width % width - ws,
                            place % width - ws);
}

__global__ void __launch_bounds__(c_threads) octantKernel(const std::uint64_t* __restrict__ keys,
                                                          int count,
                                                          unsigned char* __restrict__ octants,
                                                          int* __restrict__ cells)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        octants[i] = static_cast<unsigned char>(keys[i] & 7);
        cells[i]   = i;
    }
}

//! Where each octant begins among the sorted ones; one thread each.
__global__ void octantStartKernel(const unsigned char* __restrict__ sorted, int count, int* start)
{
    const unsigned int octant = threadIdx.x;
    start[octant]             = partitionPoint(count, [&](int k) { return sorted[k] < octant; });
}

} // namespace

void CellsOfLevels::setCoarser(Buffers* fine, Buffers* coarse, cudaStream_t stream)
{
    const int count = fine->count;
    fine->heads.resize(count);
    fine->parent.resize(count);
    coarse->ownKeys.resize(coarse->count);
    coarse->firstChild.resize(coarse->count);
    coarse->children.resize(coarse->count);
    coarse->keys = coarse->ownKeys.data();
    if (count == 0)
    {
        return;
    }
    headKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(
            fine->keys, count, fine->heads.data());
    checkLaunch("looking for parents");
    room_.run("counting parents",
              [&](void* space, size_t& bytes)
              {
                  return cub::DeviceScan::InclusiveSum(
                          space, bytes, fine->heads.data(), fine->parent.data(), count, stream);
              });
    parentKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(fine->keys,
                                                                        fine->heads.data(),
                                                                        count,
                                                                        fine->parent.data(),
                                                                        coarse->ownKeys.data(),
                                                                        coarse->firstChild.data(),
                                                                        coarse->children.data());
    checkLaunch("listing parents");
}

void CellsOfLevels::sortByOctant(Buffers* level, cudaStream_t stream)
{
    const int count = level->count;
    level->octants.resize(count);
    level->sortedOctants.resize(count);
    level->cells.resize(count);
    level->ofOctant.resize(count);
    level->octantStart.resize(9);
    if (count > 0)
    {
        octantKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(
                level->keys, count, level->octants.data(), level->cells.data());
        checkLaunch("finding octants");
        room_.run("sorting by octants",
                  [&](void* space, size_t& bytes)
                  {
                      return cub::DeviceRadixSort::SortPairs(space,
                                                             bytes,
                                                             level->octants.data(),
                                                             level->sortedOctants.data(),
                                                             level->cells.data(),
                                                             level->ofOctant.data(),
                                                             count,
                                                             0,
                                                             3,
                                                             stream);
                  });
    }
    octantStartKernel<<<1, 9, 0, stream>>>(
            level->sortedOctants.data(), count, level->octantStart.data());
    checkLaunch("counting octants");
}

void CellsOfLevels::set(const std::uint64_t* leaves,
                        const std::vector<int>& counts,
                        const CellsOfBox& box,
                        int ws,
                        cudaStream_t stream)
{
    const int levels = static_cast<int>(counts.size());
    if (static_cast<int>(levels_.size()) != levels)
    {
        levels_ = std::vector<Buffers>(levels);
    }
    for (int l = 0; l < levels; l++)
    {
        levels_[l].count = counts[l];
    }
    levels_.back().keys = leaves;
    const int places    = (2 * ws + 1) * (2 * ws + 1) * (2 * ws + 1);
    for (int l = levels - 1; l > 0; l--)
    {
        Buffers &fine = levels_[l], &coarse = levels_[l - 1];
        setCoarser(&fine, &coarse, stream);
        sortByOctant(&fine, stream);
        coarse.hash.set(coarse.keys, coarse.count, stream);
        coarse.near.resize(static_cast<size_t>(coarse.count) * places);
        CellsOfBox ofLevel = box;
        for (int& count : ofLevel.counts)
        {
            count >>= levels - l;
        }
        if (coarse.count > 0)
        {
            nearKernel<<<blocksFor(static_cast<long long>(coarse.count) * places, c_threads),
                         c_threads,
                         0,
                         stream>>>(
                    coarse.keys, coarse.count, coarse.hash.view(), ofLevel, ws, coarse.near.data());
            checkLaunch("looking for near cells");
        }
    }
}

CellsOfLevel CellsOfLevels::view(int level) const
{
    const Buffers& of = levels_[level];
    return { of.count,           of.keys,        of.parent.data(),   of.firstChild.data(),
             of.children.data(), of.near.data(), of.ofOctant.data(), of.octantStart.data() };
}

} // namespace farfield
