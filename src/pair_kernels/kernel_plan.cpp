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
#include "cells/morton.h"
#include "pair_kernels/legendre_basis.h"

namespace farfield
{
namespace
{

//! A convolution takes at most this much memory, and this long to set up, in multiply-adds.
constexpr double c_mostBytes = 3e8, c_longestSetUp = 3e9;
//! Terms of the sums of an operator of a convolution, and calls that share them.
constexpr double c_setUpTerms = 150, c_callsOfSetUp = 100;

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

const std::vector<LevelCount>& KernelCosts::levels(const KernelPlan& plan)
{
    std::vector<LevelCount>& result =
            counted_[{ plan.coarse[0], plan.coarse[1], plan.coarse[2], plan.levels, plan.ws }];
    if (result.empty())
    {
        result = count_(plan);
    }
    return result;
}

double KernelCosts::ofPairs(const LevelCount& leaves) const
{
    const double perCharge = static_cast<double>(results_) / std::max(n_, 1);
    return leaves.pairs * perCharge * unit_.perPair[static_cast<int>(kernel_.kind())]
           + leaves.nearCells * unit_.perNearCell;
}

double KernelCosts::ofExchanges(double exchanges, int ws, double coefficients) const
{
    const double operators = std::pow(4 * ws + 3, 3) - std::pow(2 * ws + 1, 3);
    const double padded    = exchanges + 0.5 * unit_.together * std::min(operators, exchanges);
    return padded * (coefficients * coefficients * unit_.perExchange + coefficients * unit_.perCopy)
           + exchanges * unit_.perLookup + unit_.perLevel;
}

double KernelCosts::ofPolynomials(double coefficients) const
{
    return 0.5 * (static_cast<double>(n_) + results_) * coefficients * unit_.perPolynomial;
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
        const std::vector<LevelCount>& counted = levels(plan);
        if (n_ < points * counted.back().cells)
        {
            return best;
        }
        double total = ofPairs(counted.back()) + ofPolynomials(coefficients)
                       + product(plan.coarse) * squared * unit_.perWave
                       + waves() * squared * c_setUpTerms / c_callsOfSetUp;
        for (const LevelCount& level : counted)
        {
            total += ofExchanges(level.exchanges, ws, coefficients);
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
    const std::vector<LevelCount>& counted = this->levels(plan);
    KernelPlan best;
    *cost        = std::numeric_limits<double>::infinity();
    double above = 0; // exchanges of this level and those above
    for (int l = 0; l < c_deepest && counted[l].pairs >= 0; l++)
    {
        above += l > 0 ? ofExchanges(counted[l].exchanges, ws, coefficients) : 0;
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
