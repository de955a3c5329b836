/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/left_out_pairs.h"

#include <algorithm>

#include "evaluation/input_check.h"

namespace farfield
{

ExcludedPairs pairsOnBothSides(const int* offsets, const int* partners, int n)
{
    checkExclusions(offsets, partners, n, n);
    std::vector<std::vector<int>> rows(n);
    for (int i = 0; i < n; i++)
    {
        for (int k = offsets[i]; k < offsets[i + 1]; k++)
        {
            const int j = partners[k];
            if (j != i)
            {
                rows[i].push_back(j);
                rows[j].push_back(i);
            }
        }
    }
    ExcludedPairs result;
    result.offsets.push_back(0);
    for (std::vector<int>& row : rows)
    {
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        result.partners.insert(result.partners.end(), row.begin(), row.end());
        result.offsets.push_back(static_cast<int>(result.partners.size()));
    }
    return result;
}

ShortestImages::ShortestImages(const Mat3& box, bool isPeriodic) : isPeriodic_(isPeriodic)
{
    if (isPeriodic)
    {
        const Mat3 lower = (box * box.transpose()).llt().matrixL();
        turn_            = box.inverse() * lower;
        image_           = MinimumImage::of(lower);
    }
}

Vec3 ShortestImages::operator()(const double* to, const double* from) const
{
    Vec3 d(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
    if (isPeriodic_ && d.squaredNorm() > image_.safe2)
    {
        Vec3 turned = turn_.transpose() * d;
        image_.search(turned.data());
        d = turn_ * turned;
    }
    return d;
}

template<class Real>
void findLeftOut(const ExcludedPairs& pairs,
                 const ShortestImages& shortest,
                 const double* x,
                 const SortedPoints<Real>& sorted,
                 const std::vector<int>& sortedOf,
                 int place,
                 double unit,
                 const std::vector<StagedCell>& cells,
                 const Real* const (&staged)[3],
                 LeftOutOfCell* found)
{
    // rounding of positions in cells; two images of a particle are farther apart
    constexpr double c_same = 1e-2;
    found->awayStart.assign(1, 0);
    found->away.clear();
    found->far.clear();
    const std::vector<int>& start  = sorted.start();
    const CellPoints<Real> targets = sorted.points(place);
    for (int t = 0; t < targets.count; t++)
    {
        const int i = sorted.order()[start[place] + t];
        for (int k = pairs.offsets[i]; k < pairs.offsets[i + 1]; k++)
        {
            const int j      = pairs.partners[k];
            const int source = sortedOf[j];
            const int ofCell = static_cast<int>(std::upper_bound(start.begin(), start.end(), source)
                                                - start.begin() - 1);
            const Vec3 d = shortest(x + 3 * static_cast<size_t>(i), x + 3 * static_cast<size_t>(j));
            const auto isIt = [&](const StagedCell& cell)
            {
                if (cell.place != ofCell)
                {
                    return false;
                }
                const int s = cell.to + source - start[ofCell];
                const Vec3 here(targets.x[t] - staged[0][s],
                                targets.y[t] - staged[1][s],
                                targets.z[t] - staged[2][s]);
                return (here - d / unit).cwiseAbs().maxCoeff() < c_same;
            };
            const auto cell = std::find_if(cells.begin(), cells.end(), isIt);
            if (cell != cells.end())
            {
                found->away.push_back(cell->to + source - start[ofCell]);
            }
            else
            {
                found->far.push_back({ i, j, d });
            }
        }
        found->awayStart.push_back(static_cast<int>(found->away.size()));
    }
}

template void findLeftOut(const ExcludedPairs&,
                          const ShortestImages&,
                          const double*,
                          const SortedPoints<float>&,
                          const std::vector<int>&,
                          int,
                          double,
                          const std::vector<StagedCell>&,
                          const float* const (&)[3],
                          LeftOutOfCell*);
template void findLeftOut(const ExcludedPairs&,
                          const ShortestImages&,
                          const double*,
                          const SortedPoints<double>&,
                          const std::vector<int>&,
                          int,
                          double,
                          const std::vector<StagedCell>&,
                          const double* const (&)[3],
                          LeftOutOfCell*);

} // namespace farfield
