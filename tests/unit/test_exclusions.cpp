/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs: which count, and how they are left out, must not show in the forces.
 */
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "cells/cell_shape.h"
#include "cells/excluded_pairs.h"
#include "cpu/exclusions.h"

#include "box_matrix.h"
#include "reference.h"

namespace farfield
{
namespace test
{
namespace
{

TEST(ExcludedPairs, OfUnchargedParticlesAreNone)
{
    // 0-1, 0-2, 1-2, 2-3, 3-0, with 1 and 3 uncharged: 0-2 is left, in the directions that are
    // listed
    const ExcludedPairs all     = { { 0, 2, 4, 6, 7 }, { 1, 2, 0, 2, 0, 3, 0 } };
    const ExcludedPairs charged = chargedPairs(all, { 1, 0, 1, 0 });
    EXPECT_EQ(charged.offsets, (std::vector<int>{ 0, 1, 1, 2, 2 }));
    EXPECT_EQ(charged.partners, (std::vector<int>{ 2, 0 }));
    const ExcludedPairs same = chargedPairs(all, { 1, 1, 1, 1 });
    EXPECT_EQ(same.offsets, all.offsets);
    EXPECT_EQ(same.partners, all.partners);
    const ExcludedPairs none = chargedPairs(all, { 0, 0, 0, 0 });
    EXPECT_EQ(none.offsets, (std::vector<int>(5, 0)));
    EXPECT_TRUE(none.partners.empty());
}

//! Each pair of particles of a random box that is surely near is in near cells, wherever the grid
//! lies; and the bound is not far below what is possible.
TEST(ExcludedPairs, ThatAreSurelyNearAreInNearCells)
{
    for (const NamedBox& named : allBoxes(30))
    {
        const Mat3 box = matrixOf(named.box);
        for (const int ws : { 1, 2 })
        {
            for (const double edge : { 0.4, 1.0, 3.0 })
            {
                const Grid grid(chooseCells(box, edge, ws, 1), box);
                const double near = surelyNear(grid, ws);
                EXPECT_GT(near, 0);
                EXPECT_LT(near, 0.5 * box.rowwise().norm().minCoeff()) << named.name;
                // displacements of that length along the normals of faces are the critical ones
                for (int k = 0; k < 3; ++k)
                {
                    const Vec3 normal  = grid.inverseEdges().col(k).normalized();
                    const double cells = near * normal.dot(grid.inverseEdges().col(k));
                    EXPECT_LT(cells, ws) << named.name;
                }
            }
        }
    }
}

//! Of one and of many stretches, which list pairs differently.
TEST(ExcludedPairs, AreListedBothWays)
{
    constexpr int n = 4000;
    std::mt19937 random(9);
    std::set<std::pair<int, int>> pairs;
    ExcludedPairs rows = { { 0 }, {} };
    for (int i = 0; i < n; ++i)
    {
        for (const int step : { 1, 2, 900 })
        {
            const int j = i + step;
            if (j < n && random() % 2 == 0)
            {
                rows.partners.push_back(j);
                pairs.emplace(i, j);
            }
        }
        rows.offsets.push_back(static_cast<int>(rows.partners.size()));
    }
    for (const int threads : { 1, 8 })
    {
        Exclusions<double> exclusions;
        exclusions.set(rows.offsets.data(), rows.partners.data(), n, n, threads);
        const ExcludedPairs result = exclusions.bothWays();
        std::set<std::pair<int, int>> found;
        for (int i = 0; i < n; ++i)
        {
            for (int k = result.offsets[i]; k < result.offsets[i + 1]; ++k)
            {
                found.emplace(i, result.partners[k]);
            }
        }
        ASSERT_EQ(result.partners.size(), 2 * pairs.size());
        for (const auto& [i, j] : pairs)
        {
            ASSERT_TRUE(found.count({ i, j }) > 0 && found.count({ j, i }) > 0)
                    << i << " and " << j;
        }
    }
}

struct Result
{
    std::vector<double> forces;
    Totals totals;
};

//! An evaluation by the stages of the CPU backend.
Result evaluate(const System& system, const Discretisation& d, double range)
{
    const int n = system.size();
    std::vector<double> x;
    for (const Vector& position : system.positions)
    {
        x.insert(x.end(), position.begin(), position.end());
    }
    std::vector<int> offsets(n + 1, 0), partners;
    for (int i = 0; i < n; ++i)
    {
        for (const auto& [a, b] : system.exclusions)
        {
            if (a == i)
            {
                partners.push_back(b);
            }
        }
        offsets[i + 1] = static_cast<int>(partners.size());
    }
    const auto backend = makeCpuBackend<double>(c_coulomb, 2);
    backend->setCharges(system.charges.data(), n);
    backend->setExclusions(offsets.data(), partners.data(), n);
    backend->setExclusionRange(range);
    backend->build(d);
    Request request;
    request.gridOffset    = { 0.3, 0.8, 0.1 };
    request.replaceForces = true;
    Result result;
    result.forces.resize(3 * static_cast<size_t>(n));
    backend->setTask({ x.data(), nullptr, result.forces.data(), nullptr, request });
    backend->sort();
    backend->exclusions();
    backend->p2p();
    backend->p2m();
    for (int level = d.levels - 1; level > 0; --level)
    {
        backend->m2m(level);
    }
    backend->m2l(0);
    for (int level = 0; level < d.levels - 1; ++level)
    {
        backend->l2l(level);
        backend->m2l(level + 1);
    }
    backend->l2p();
    result.totals = backend->collect();
    return result;
}

/*! \brief A pair that the near field meets may be left out there, or computed and subtracted.
 *
 *  Each force is a sum over all images in the near field of terms up to the largest pair force:
 *  what differs is their rounding. */
TEST(ExcludedPairs, MayBeLeftOutOrSubtracted)
{
    constexpr double c_closest = 0.1;
    for (const NamedBox& named : allBoxes(8))
    {
        System system = randomCharges(named.box, 60, 372, 0.0, c_closest);
        for (int i = 0; i < system.size(); ++i)
        {
            for (int j = i + 1; j < system.size(); j += 1 + (i + j) % 5)
            {
                system.exclusions.emplace_back(i, j);
            }
        }
        const Mat3 box = matrixOf(named.box);
        for (const double edge : { 0.5, 0.9, 5.0 })
        {
            for (const int ws : { 1, 2 })
            {
                for (const int levels : { 1, 2 })
                {
                    Discretisation d;
                    d.order                 = 3;
                    d.ws                    = ws;
                    d.levels                = levels;
                    d.accuracy              = 1e-3;
                    d.referenceBox          = box;
                    d.leafCells             = chooseCells(box, edge, ws, 1 << (levels - 1));
                    const Result subtracted = evaluate(system, d, 0);
                    const Result leftOut    = evaluate(system, d, 1e9);
                    const double largest    = c_coulomb / (c_closest * c_closest);
                    const double terms      = 125.0 * system.size();
                    const double rounding   = terms * std::numeric_limits<double>::epsilon();
                    double worst            = 0;
                    for (size_t k = 0; k < leftOut.forces.size(); ++k)
                    {
                        worst = std::max(worst, std::abs(leftOut.forces[k] - subtracted.forces[k]));
                    }
                    EXPECT_LT(worst, rounding * largest) << named.name << ", " << edge << " nm, ws "
                                                         << ws << ", levels " << levels;
                    EXPECT_NEAR(leftOut.totals.energy,
                                subtracted.totals.energy,
                                rounding * largest * c_closest * system.size());
                    for (int i = 0; i < 3; ++i)
                    {
                        for (int j = 0; j < 3; ++j)
                        {
                            EXPECT_NEAR(leftOut.totals.virial[i][j],
                                        subtracted.totals.virial[i][j],
                                        rounding * largest * c_closest * system.size());
                        }
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
