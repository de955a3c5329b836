/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The stage of near functions on the CPU, against sums over nearest images.
 */
#include "cpu/near_functions.h"

#include <cmath>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cells/cell_shape.h"
#include "cells/excluded_pairs.h"

#include "box_matrix.h"
#include "near_sum.h"
#include "solver_input.h"

namespace farfield
{
namespace test
{
namespace
{

using Pairs = std::set<std::pair<int, int>>;

//! What the stage leaves behind, of particles before sorting.
struct Outcome
{
    Evaluation sums;
    std::vector<double> potentials;
    Pairs whole;
};

//! The stage. Widths follow WidthRule::Larger.
Outcome computed(const System& system,
                 const std::vector<double>& widths,
                 const Pairs& excluded,
                 const Grid& grid,
                 int ws,
                 Boundary boundary,
                 int threads)
{
    const int n = system.size();
    Team team(threads);
    const std::vector<double> x = flatPositions<double>(system);
    const ScaledCharges<double> charges(system.charges.data(), n, 1.0);
    CellList<double> list;
    list.keepGiven(boundary == Boundary::Open);
    list.sort(grid, { 0.3, 0.75, 0.1 }, Mat3::Identity(), x.data(), charges, &team);
    NearFunctions<double> stage(&team);
    const NearFunction function = { PairFunction::Gaussian, WidthRule::Larger };
    stage.set(NearPairs<double>(function, widths.data(), n, 1e-3));
    stage.compute(
            list,
            grid,
            boundary,
            ws,
            [&](int i, int j) {
                return excluded.count({ std::min(i, j), std::max(i, j) }) > 0;
            },
            true);
    StageSums sums;
    stage.addSums(&sums);
    std::vector<double> fx(n, 0.0), fy(n, 0.0), fz(n, 0.0), potentials(n, 0.0);
    stage.addTo(0, n, fx.data(), fy.data(), fz.data(), potentials.data());
    Outcome result;
    result.sums.energy = sums.energyOfFunctions;
    const double* v    = sums.virialOfFunctions;
    result.sums.virial = { { { v[0], v[3], v[4] }, { v[3], v[1], v[5] }, { v[4], v[5], v[2] } } };
    result.sums.forces.resize(n);
    result.potentials.resize(n);
    for (int k = 0; k < n; ++k)
    {
        result.sums.forces[list.atom()[k]] = { fx[k], fy[k], fz[k] };
        result.potentials[list.atom()[k]]  = potentials[k];
    }
    result.whole = Pairs(stage.wholePairs().begin(), stage.wholePairs().end());
    EXPECT_EQ(result.whole.size(), stage.wholePairs().size()) << "a pair is listed twice";
    return result;
}

//! The same by a sum over pairs, without a range.
Outcome expected(const System& system,
                 const std::vector<double>& widths,
                 const Pairs& excluded,
                 int images,
                 double near)
{
    Outcome result;
    result.sums.forces.resize(system.size());
    result.potentials.resize(system.size());
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = i + 1; j < system.size(); ++j)
        {
            const double b = std::max(widths[i], widths[j]);
            if (b == 0 || excluded.count({ i, j }) > 0)
            {
                continue;
            }
            const Vector d  = nearestImage(system, images, i, j);
            const double r  = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            NearTerms terms = smearedPair(r, b);
            if (r < near && terms.slope * r * r * r < 0.1L)
            {
                result.whole.emplace(i, j);
            }
            else
            {
                terms.value -= 1 / static_cast<long double>(r);
                terms.slope -= 1 / (static_cast<long double>(r) * r * r);
            }
            const double qq = system.charges[i] * system.charges[j];
            result.potentials[i] += system.charges[j] * static_cast<double>(terms.value);
            result.potentials[j] += system.charges[i] * static_cast<double>(terms.value);
            result.sums.energy += qq * static_cast<double>(terms.value);
            for (int k = 0; k < 3; ++k)
            {
                const double force = qq * static_cast<double>(terms.slope) * d[k];
                result.sums.forces[i][k] += force;
                result.sums.forces[j][k] -= force;
                for (int l = 0; l < 3; ++l)
                {
                    result.sums.virial[k][l] -= 0.5 * force * d[l];
                }
            }
        }
    }
    return result;
}

void expectSame(const Outcome& result, const Outcome& reference)
{
    EXPECT_EQ(result.whole, reference.whole);
    EXPECT_LE(relativeError(result.sums.forces, reference.sums.forces), 1e-12);
    EXPECT_NEAR(result.sums.energy, reference.sums.energy, 1e-10);
    EXPECT_LE(largestDifference(result.sums.virial, reference.sums.virial), 1e-10);
    for (size_t i = 0; i < reference.potentials.size(); ++i)
    {
        EXPECT_NEAR(result.potentials[i], reference.potentials[i], 1e-9) << i;
    }
}

//! Particle 2 k + 1 at a distance from particle 2 k, and a third of all without a width.
void overlap(System* system, double width, std::vector<double>* widths)
{
    const double distances[] = { 0, 1e-5, 0.1, 0.9, 0.54, 0.52 };
    for (int k = 0; k < 6; ++k)
    {
        system->positions[2 * k + 1] = system->positions[2 * k];
        system->positions[2 * k + 1][k % 3] += distances[k] * width;
    }
    for (int i = 0; i < system->size(); ++i)
    {
        widths->push_back(i % 3 == 0 ? 0 : width / (1 + i % 2));
    }
}

TEST(NearFunctionStage, AddsWhatNearestImagesDifferFromCoulomb)
{
    const Pairs excluded = { { 4, 5 }, { 6, 77 }, { 14, 15 } };
    for (const NamedBox& named : allBoxes(8))
    {
        const Mat3 box     = matrixOf(named.box);
        const double width = 0.49 * smallestWidth(box.inverse()) / 6.4; // just below what is legal
        System system      = randomCharges(named.box, 120, 5, 0, 0.05);
        std::vector<double> widths;
        overlap(&system, width, &widths);
        for (const double edge : { 0.25, 0.7, 2.0 })
        {
            for (const int ws : { 1, 2 })
            {
                const Grid grid(chooseCells(box, edge, ws, 1), box);
                SCOPED_TRACE(named.name + ", edge " + std::to_string(edge) + ", ws "
                             + std::to_string(ws));
                const Outcome reference =
                        expected(system, widths, excluded, 3, surelyNear(grid, ws));
                for (const int threads : { 1, 3 })
                {
                    expectSame(computed(system,
                                        widths,
                                        excluded,
                                        grid,
                                        ws,
                                        Boundary::Periodic,
                                        threads),
                               reference);
                }
            }
        }
    }
}

TEST(NearFunctionStage, OfOpenBoxesMeetsNoImages)
{
    // within 3 of 8 cells in each dimension, across the boundary of the box
    const double edge = 0.25;
    const Mat3 box    = 8 * edge * Mat3::Identity();
    const Grid grid({ { { 8, 0, 0 }, { 0, 8, 0 }, { 0, 0, 8 } } }, box);
    System system = randomCharges(namedBox("cube", 0.36 * 0.36 * 0.36), 60, 6, 0, 0.02);
    for (Vector& x : system.positions)
    {
        for (int k = 0; k < 3; ++k)
        {
            x[k] += 1.7; // randomCharges() has them in twice its box
        }
    }
    std::vector<double> widths;
    overlap(&system, 0.25, &widths); // images are 1.3 nm away, the range is 1.6 nm
    const Outcome reference = expected(system, widths, {}, 0, surelyNear(grid, 1));
    expectSame(computed(system, widths, {}, grid, 1, Boundary::Open, 1), reference);
    // no box bounds the range
    std::vector<double> wide = widths;
    std::transform(wide.begin(), wide.end(), wide.begin(), [](double w) { return 1e4 * w; });
    expectSame(computed(system, wide, {}, grid, 1, Boundary::Open, 1),
               expected(system, wide, {}, 0, surelyNear(grid, 1)));
    // those of a slab are along x and y
    system.box = namedBox("cube", 8.0);
    std::transform(widths.begin(), widths.end(), widths.begin(), [](double w) { return 0.6 * w; });
    const Outcome ofSlab = expected(system, widths, {}, 2, surelyNear(grid, 1));
    expectSame(computed(system, widths, {}, grid, 1, Boundary::Slab, 1), ofSlab);
}

} // namespace
} // namespace test
} // namespace farfield
