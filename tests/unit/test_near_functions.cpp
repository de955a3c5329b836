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
#include <limits>
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

//! An accuracy with which ranges end where forces are equal to rounding.
constexpr double c_toRounding = 1e-14;

//! Calls a function for the particles that parts of the forces are on.
template<class Real, class Function>
void forParts(const NearFunctions<Real>& stage, int n, const Function& function)
{
    for (const NearForces<Real>& part : stage.parts())
    {
        for (int k = 0; k < n; ++k)
        {
            if (part.touched[k / NearForces<Real>::c_chunk] != 0)
            {
                function(part, k);
            }
        }
    }
}

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
    ExcludedPairs rows = { { 0 }, {} };
    for (int i = 0; i < n; ++i)
    {
        for (const auto& [first, second] : excluded)
        {
            if (first == i)
            {
                rows.partners.push_back(second);
            }
        }
        rows.offsets.push_back(static_cast<int>(rows.partners.size()));
    }
    Exclusions<double> exclusions;
    exclusions.set(rows.offsets.data(), rows.partners.data(), n, n, threads);
    NearFunctions<double> stage(&team);
    const NearFunction function = { PairFunction::Gaussian, WidthRule::Larger };
    stage.set(NearPairs<double>(function, widths.data(), n, c_toRounding));
    Request request;
    request.energy = request.virial = true;
    stage.compute(list, grid, boundary, ws, exclusions, request, true);
    StageSums sums;
    stage.addSums(&sums);
    Outcome result;
    result.sums.energy = sums.energyOfFunctions;
    const double* v    = sums.virialOfFunctions;
    result.sums.virial = { { { v[0], v[3], v[4] }, { v[3], v[1], v[5] }, { v[4], v[5], v[2] } } };
    result.sums.forces.resize(n);
    result.potentials.resize(n);
    forParts(stage,
             n,
             [&](const NearForces<double>& part, int k)
             {
                 Vector& force = result.sums.forces[list.atom()[k]];
                 force = { force[0] + part.x[k], force[1] + part.y[k], force[2] + part.z[k] };
                 result.potentials[list.atom()[k]] += part.potential[k];
             });
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

//! A particle and others around it, at many distances from 0.3 to 30 widths.
template<class Real>
void expectRoundingOfCoulomb()
{
    constexpr double b = 0.1;
    constexpr int most = 800;
    const double eps   = std::numeric_limits<Real>::epsilon();
    const Mat3 box     = 8 * Mat3::Identity();
    const Grid grid    = { { { { 8, 0, 0 }, { 0, 8, 0 }, { 0, 0, 8 } } }, box };
    Team team(1);
    const std::pair<PairFunction, NearLaw> laws[] = { { PairFunction::Gaussian, smearedPair },
                                                      { PairFunction::Thole, tholePair },
                                                      { PairFunction::SoftCore, softCorePair } };
    for (const auto& [function, law] : laws)
    {
        for (const WidthRule rule :
             { WidthRule::RootSumSquare, WidthRule::GeometricMean, WidthRule::Larger })
        {
            // the others have another width, but no charge to speak of
            const Real w = b, v = rule == WidthRule::GeometricMean ? 1.5 * b : 0;
            const double width =
                    rule == WidthRule::GeometricMean
                            ? std::sqrt(static_cast<double>(w) * static_cast<double>(v))
                            : static_cast<double>(w);
            std::vector<Real> x = { 4, 4, 4 }, q = { 1 }, widths = { w };
            for (int k = 0; k < most; ++k)
            {
                const double r = 0.3 * b * std::pow(100.0, k / (most - 1.0));
                for (const double e : { 0.6, -0.48, 0.64 })
                {
                    x.push_back(static_cast<Real>(4 + e * r));
                }
                q.push_back(sizeof(Real) == 4 ? Real(1e-18) : Real(1e-30));
                widths.push_back(v);
            }
            const int n = most + 1;
            const ScaledCharges<Real> charges(q.data(), n, 1.0);
            CellList<Real> list;
            list.keepGiven(true);
            list.sort(grid, { 0, 0, 0 }, Mat3::Identity(), x.data(), charges, &team);
            NearFunctions<Real> stage(&team);
            stage.set(NearPairs<Real>({ function, rule }, widths.data(), n, c_toRounding));
            stage.compute(list, grid, Boundary::Open, 1, Exclusions<Real>(), Request{}, true);
            Pairs whole(stage.wholePairs().begin(), stage.wholePairs().end());
            std::vector<double> potentials(n, 0.0), forces(n, 0.0);
            forParts(stage,
                     n,
                     [&](const NearForces<Real>& part, int k)
                     {
                         const int i = list.atom()[k];
                         potentials[i] += static_cast<double>(part.potential[k]);
                         forces[i] += static_cast<double>(part.x[k]);
                     });
            for (int i = 1; i < n; ++i)
            {
                long double r2 = 0;
                for (int k = 0; k < 3; ++k)
                {
                    r2 += std::pow(static_cast<long double>(x[3 * i + k]) - x[k], 2);
                }
                const long double r   = std::sqrt(r2);
                const NearTerms terms = law(r, width);
                const long double one = whole.count({ 0, i }) > 0 ? 0 : 1;
                const auto value      = static_cast<double>(terms.value - one / r);
                const auto slope      = static_cast<double>(terms.slope - one / (r * r2));
                const auto d          = static_cast<double>(x[3 * i]) - static_cast<double>(x[0]);
                const auto bound      = static_cast<double>(8 * eps / r);
                EXPECT_NEAR(potentials[i], value, bound) << static_cast<double>(r / width);
                EXPECT_NEAR(forces[i] / static_cast<double>(q[i]),
                            slope * d,
                            bound * static_cast<double>(1 / r))
                        << static_cast<double>(r / width);
            }
        }
    }
}

TEST(NearFunctionStage, IsOffByRoundingOfCoulomb)
{
    expectRoundingOfCoulomb<float>();
    expectRoundingOfCoulomb<double>();
}

} // namespace
} // namespace test
} // namespace farfield
