/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "farfield/farfield.h"

#include "base/text.h"
#include "cells/interaction_list.h"
#include "cpu/particle_views.h"
#include "pair_kernels/legendre_basis.h"

namespace farfield
{
namespace
{

//! \name Costs in multiply-adds of a lane
//!@{
constexpr double c_perPair[]     = { 34, 21, 60 }; // in the order of PairLawKind
constexpr double c_perExchange   = 1.1;            // a pair of coefficients
constexpr double c_perCopy       = 12;             // a coefficient of an exchange
constexpr double c_perLookup     = 60;             // an exchange
constexpr double c_perWave       = 2.5;            // a pair of coefficients at a wave vector
constexpr double c_perPolynomial = 5;              // a coefficient at a point
constexpr double c_perNearCell   = 2200;           // a cell near another: its points are staged
//!@}
//! A convolution takes at most this much memory, and this long to set up, in multiply-adds.
constexpr double c_mostBytes = 3e8, c_longestSetUp = 3e9;
//! Terms of the sums of an operator of a convolution, and calls that share them.
constexpr double c_setUpTerms = 150, c_callsOfSetUp = 100;

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

//! Of so many exchanges of expansions over the interaction lists of a level.
double costOfExchanges(double exchanges, int ws, double coefficients)
{
    const double operators = std::pow(4 * ws + 3, 3) - std::pow(2 * ws + 1, 3);
    // each operator takes columns in multiples of c_slotPadding
    const double padded = exchanges + 0.5 * c_slotPadding * std::min(operators, exchanges);
    return padded * (coefficients * coefficients * c_perExchange + coefficients * c_perCopy)
           + exchanges * c_perLookup;
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

//! Cells of a grid of about cubic cells, so many along the shortest edge of the box.
Int3 cellsAlong(const Mat3& box, int shortest)
{
    const double edge = box.rowwise().norm().minCoeff() / shortest;
    Int3 counts;
    for (int k = 0; k < 3; k++)
    {
        counts[k] = std::max(1, static_cast<int>(std::lround(box.row(k).norm() / edge)));
    }
    return counts;
}

double product(const Int3& counts)
{
    return static_cast<double>(counts[0]) * counts[1] * counts[2];
}

} // namespace

LeafFrame Region::leaves(const KernelPlan& plan) const
{
    LeafFrame frame{ origin, box, plan.coarse, isPeriodic };
    for (int k = 0; k < 3; k++)
    {
        frame.counts[k] <<= plan.levels - 1;
        frame.edges.row(k) /= frame.counts[k];
    }
    return frame;
}

Grid Region::grid(const KernelPlan& plan, int level) const
{
    const int images = isPeriodic ? 1 : 2;
    IntMat H         = {};
    for (int k = 0; k < 3; k++)
    {
        H[k][k] = images * plan.coarse[k] << level;
    }
    return { H, images * box };
}

const std::vector<KernelCosts::Level>& KernelCosts::levels(const KernelPlan& plan)
{
    std::vector<Level>& result =
            counted_[{ plan.coarse[0], plan.coarse[1], plan.coarse[2], plan.levels, plan.ws }];
    if (!result.empty())
    {
        return result;
    }
    result.resize(plan.levels);
    CountedCells cells = countedLeaves(region_, plan, x_, n_, &team_);
    double nearBelow   = -1;
    for (int l = plan.levels - 1; l >= 0; l--)
    {
        result[l].cells = std::max(1.0, static_cast<double>(cells.cells.size()));
        // in an open box leaves that hold few points are not considered
        constexpr double c_fewest = 2.5;
        if (region_.isPeriodic || c_fewest * static_cast<double>(cells.cells.size()) <= n_
            || l == 0)
        {
            const NearSums sums = nearSums(cells, plan.ws, &team_);
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

double KernelCosts::ofPairs(const Level& leaves) const
{
    const double perCharge = static_cast<double>(results_) / std::max(n_, 1);
    return leaves.pairs * perCharge * c_perPair[static_cast<int>(kernel_.kind())]
           + leaves.nearCells * c_perNearCell;
}

double KernelCosts::ofPolynomials(double coefficients) const
{
    return 0.5 * (static_cast<double>(n_) + results_) * coefficients * c_perPolynomial;
}

KernelPlan KernelCosts::cheapest(int degree, int ws, int levels, double points, double* cost)
{
    return region_.isPeriodic ? cheapestPeriodic(degree, ws, points, cost)
                              : cheapestOpen(degree, ws, levels, points, cost);
}

KernelPlan KernelCosts::cheapestPeriodic(int degree, int ws, double points, double* cost)
{
    const double coefficients = polynomialCount(degree);
    const double squared      = coefficients * coefficients;
    const double bytes        = 0.5 * squared * 8;
    // of wave vectors in a rectangular box four share an operator
    const double perCell = areRectangular(region_.box) ? 0.17 : 0.6;
    KernelPlan best;
    *cost = std::numeric_limits<double>::infinity();
    for (int shortest = 1;; shortest += std::max(1, shortest / 4))
    {
        KernelPlan plan{ degree, ws, cellsAlong(region_.box, shortest), 1 };
        const auto waves      = [&] { return product(plan.coarse) * perCell + 4; };
        const auto isTooLarge = [&] {
            return waves() * bytes > c_mostBytes
                   || waves() * squared * c_setUpTerms > c_longestSetUp;
        };
        // cells of a level are halves along all axes
        while (isTooLarge() && *std::min_element(plan.coarse.begin(), plan.coarse.end()) > 1)
        {
            for (int& count : plan.coarse)
            {
                count = (count + 1) / 2;
            }
            plan.levels++;
        }
        // a table that ends is summed over all cells within its reach
        constexpr double c_mostCells = 12;
        const double cell            = region_.grid(plan, 0).unit();
        if (!kernel_.isSplit() && kernel_.last() > c_mostCells / 2 * cell)
        {
            if (shortest == 1)
            {
                throw Error(ErrorCode::Unsupported,
                            "The kernel " + kernel_.name() + " ends at " + text(kernel_.last())
                                    + ", which is too far for a box with an edge of "
                                    + text(region_.box.rowwise().norm().minCoeff())
                                    + ": let the table end earlier.",
                            "kernel");
            }
            return best;
        }
        const std::vector<Level>& counted = levels(plan);
        if (n_ < points * counted.back().cells)
        {
            return best;
        }
        double total = ofPairs(counted.back()) + ofPolynomials(coefficients)
                       + product(plan.coarse) * squared * c_perWave
                       + waves() * squared * c_setUpTerms / c_callsOfSetUp;
        for (const Level& level : counted)
        {
            total += costOfExchanges(level.exchanges, ws, coefficients);
        }
        if (total < *cost)
        {
            *cost = total;
            best  = plan;
        }
        // finer cells cost more
        if (product(plan.coarse) * std::pow(8, plan.levels - 1) > n_ || total > 8 * *cost)
        {
            return best;
        }
    }
}

KernelPlan KernelCosts::cheapestOpen(int degree, int ws, int levels, double points, double* cost)
{
    const double coefficients = polynomialCount(degree);
    constexpr int c_deepest   = c_keyBits - 2;
    KernelPlan plan{ degree, ws, { 2, 2, 2 }, c_deepest };
    const std::vector<Level>& counted = this->levels(plan);
    KernelPlan best;
    *cost        = std::numeric_limits<double>::infinity();
    double above = 0; // exchanges of this level and those above
    for (int l = 0; l < c_deepest && counted[l].pairs >= 0; l++)
    {
        above += costOfExchanges(counted[l].exchanges, ws, coefficients);
        const double total =
                ofPairs(counted[l]) + (above > 0 ? above + ofPolynomials(coefficients) : 0);
        if ((total < *cost && n_ >= points * counted[l].cells) || l < levels)
        {
            *cost       = total;
            best        = plan;
            best.levels = l + 1;
        }
    }
    return best;
}

} // namespace farfield
