/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/cell_counts.h"

#include <algorithm>

#include "pair_kernels/sorted_points.h"

namespace farfield
{
namespace
{

//! Cells of a level with the numbers of their points and of their children.
struct CountedCells
{
    std::vector<Int3> cells; //!< in Morton order
    std::vector<double> points, children;
    Int3 counts;
    bool isPeriodic;

    CountedCells coarser() const
    {
        CountedCells result;
        result.counts     = { counts[0] / 2, counts[1] / 2, counts[2] / 2 };
        result.isPeriodic = isPeriodic;
        for (size_t i = 0; i < cells.size(); i++)
        {
            const Int3 parent = parentOf(cells[i]);
            if (result.cells.empty() || result.cells.back() != parent)
            {
                result.cells.push_back(parent);
                result.points.push_back(0);
                result.children.push_back(0);
            }
            result.points.back() += points[i];
            result.children.back() += 1;
        }
        return result;
    }
};

//! Sums over pairs of near cells.
struct NearSums
{
    double cells = 0, points = 0, children = 0;
};

NearSums nearSums(const CountedCells& level, int ws, Team* team)
{
    CellHash places;
    places.set(level.cells);
    const std::vector<Int3> displacements = nearDisplacements(ws);
    constexpr int c_grain                 = 512;
    const int count                       = static_cast<int>(level.cells.size());
    std::vector<NearSums> partial(count / c_grain + 1);
    team->forTasks(static_cast<int>(partial.size()),
                   [&](int task, int /*thread*/)
                   {
                       NearSums& sums = partial[task];
                       for (int i = task * c_grain; i < std::min(count, (task + 1) * c_grain); i++)
                       {
                           for (const Int3& D : displacements)
                           {
                               Int3 c = level.cells[i];
                               const bool inside =
                                       moveInside(D, level.counts, level.isPeriodic, &c);
                               const int other = inside ? places.find(c) : -1;
                               if (other >= 0)
                               {
                                   sums.cells += 1;
                                   sums.points += level.points[i] * level.points[other];
                                   sums.children += level.children[i] * level.children[other];
                               }
                           }
                       }
                   });
    NearSums all;
    for (const NearSums& sums : partial)
    {
        all.cells += sums.cells;
        all.points += sums.points;
        all.children += sums.children;
    }
    return all;
}

CountedCells
countedLeaves(const Region& region, const KernelPlan& plan, const double* x, int n, Team* team)
{
    SortedPoints<float> sorted;
    const LeafFrame frame = region.leaves(plan);
    sorted.sort(x, n, "particle", frame, team);
    CountedCells result{ sorted.cells(), {}, {}, frame.counts, region.isPeriodic };
    for (size_t i = 0; i < result.cells.size(); i++)
    {
        result.points.push_back(sorted.start()[i + 1] - sorted.start()[i]);
        result.children.push_back(0);
    }
    return result;
}

} // namespace

std::vector<LevelCount>
countLevels(const Region& region, const KernelPlan& plan, const double* x, int n, Team* team)
{
    std::vector<LevelCount> result(plan.levels);
    CountedCells cells = countedLeaves(region, plan, x, n, team);
    double nearBelow   = -1;
    for (int l = plan.levels - 1; l >= 0; l--)
    {
        const auto count = static_cast<double>(cells.cells.size());
        result[l].cells  = std::max(1.0, count);
        if (isWorthCounting(region, l, count, n))
        {
            const NearSums sums = nearSums(cells, plan.ws, team);
            result[l].pairs     = sums.points;
            result[l].nearCells = sums.cells;
            if (nearBelow >= 0)
            {
                result[l + 1].exchanges = sums.children - nearBelow;
            }
            nearBelow = sums.cells;
        }
        cells = cells.coarser();
    }
    return result;
}

} // namespace farfield
