/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/counted_levels.h"

#include <algorithm>
#include <array>

#include "pair_kernels/cell_keys.cuh"
#include "pair_kernels/far_field_kernels.h"
#include "runtime/ordered_sums.h"
#include "runtime/search.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! Cells of a level by their first points.
struct CountedCells
{
    const std::uint64_t* keys;
    const int *starts, *finerStarts;
    int cells, finerCells, points;

    __device__ double pointsOf(int cell) const
    {
        return (cell + 1 < cells ? starts[cell + 1] : points) - starts[cell];
    }
    //! Cells of the finer level before a point.
    __device__ int finerBefore(int point) const
    {
        return partitionPoint(finerCells, [&](int k) { return finerStarts[k] < point; });
    }
    __device__ double childrenOf(int cell) const
    {
        return finerBefore(cell + 1 < cells ? starts[cell + 1] : points)
               - finerBefore(starts[cell]);
    }
};

//! Adds up pairs of near cells, of their points, and of their children: whole numbers, in any order.
__global__ void __launch_bounds__(c_threads)
        nearKernel(CountedCells cells, CellHashView hash, CellsOfBox box, int ws, double* sums)
{
    const int width     = 2 * ws + 1;
    const int places    = width * width * width;
    const long long all = static_cast<long long>(cells.cells) * places;
    const long long i   = static_cast<long long>(blockIdx.x) * c_threads + threadIdx.x;
    double own[3]       = { 0, 0, 0 };
    if (i < all)
    {
        const int place = static_cast<int>(i % places);
        const int cell  = static_cast<int>(i / places);
        const int other = findDisplaced(hash,
                                        box,
                                        cellOfKey(cells.keys[cell]),
                                        place / (width * width) - ws,
                                        place / width % width - ws,
                                        place % width - ws);
        if (other >= 0)
        {
            own[0] = 1;
            own[1] = cells.pointsOf(cell) * cells.pointsOf(other);
            own[2] = cells.childrenOf(cell) * cells.childrenOf(other);
        }
    }
    for (int k = 0; k < 3; k++)
    {
        const double sum = blockSum(own[k]);
        if (threadIdx.x == 0)
        {
            atomicAdd(sums + k, sum);
        }
    }
}

} // namespace

std::vector<LevelCount> CountedLevels::count(const Region& region,
                                             const KernelPlan& plan,
                                             const double* x,
                                             int n,
                                             cudaStream_t stream)
{
    const LeafFrame frame = region.leaves(plan);
    points_.sort(x, nullptr, n, frame, plan.levels, false, stream);
    const std::vector<int>& cells = points_.cells();
    std::vector<LevelCount> result(plan.levels);
    sums_.resize(3 * static_cast<size_t>(plan.levels));
    sums_.clear(stream);
    const int places = static_cast<int>(nearDisplacements(plan.ws).size());
    std::vector<char> isCounted(plan.levels, 0);
    for (int l = plan.levels - 1; l >= 0; l--)
    {
        result[l].cells = std::max(1, cells[l]);
        isCounted[l]    = isWorthCounting(region, l, cells[l], n) ? 1 : 0;
        if (isCounted[l] == 0 || cells[l] == 0)
        {
            continue;
        }
        const bool hasFiner = l + 1 < plan.levels && isCounted[l + 1] != 0;
        std::swap(starts_, finerStarts_);
        starts_.resize(cells[l]);
        keys_.resize(cells[l]);
        const int shift = plan.levels - 1 - l;
        points_.writeStarts(shift, starts_.data(), stream);
        selectKeys(points_.sortedKeys(), starts_.data(), cells[l], 3 * shift, keys_.data(), stream);
        hash_.set(keys_.data(), cells[l], stream);
        const CellsOfBox box{
            { frame.counts[0] >> shift, frame.counts[1] >> shift, frame.counts[2] >> shift },
            frame.isPeriodic
        };
        nearKernel<<<blocksFor(static_cast<long long>(cells[l]) * places, c_threads),
                     c_threads,
                     0,
                     stream>>>({ keys_.data(),
                                 starts_.data(),
                                 finerStarts_.data(),
                                 cells[l],
                                 hasFiner ? cells[l + 1] : 0,
                                 n },
                               hash_.view(),
                               box,
                               plan.ws,
                               sums_.data() + 3 * static_cast<size_t>(l));
        checkLaunch("counting near cells");
    }
    std::vector<std::array<double, 3>> sums(plan.levels);
    sums_.download(sums[0].data(), 3 * sums.size(), stream);
    for (int l = 0; l < plan.levels; l++)
    {
        if (isCounted[l] != 0)
        {
            result[l].nearCells = sums[l][0];
            result[l].pairs     = sums[l][1];
            if (l + 1 < plan.levels && isCounted[l + 1] != 0)
            {
                result[l + 1].exchanges = sums[l][2] - sums[l + 1][0];
            }
        }
    }
    return result;
}

} // namespace farfield
