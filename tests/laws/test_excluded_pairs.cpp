/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs: how they are given, how close, how far, and through the boundary.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Exclusions : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Exclusions, Configurations);

TYPED_TEST(Exclusions, MayBeListedOneWayOrBothWays)
{
    using Real   = typename TypeParam::Real;
    System water = rounded<Real>(pseudoWater(namedBox("triclinic", 5.0), 31));
    Solver<Real> solver(TypeParam::options());
    load(solver, water, true);
    const Evaluation both = evaluate(solver, water);
    load(solver, water, false);
    const Evaluation oneWay = evaluate(solver, water);
    // Repetitions and i-i entries change nothing either; nor does the direction.
    for (int i = 0; i < water.size(); ++i)
    {
        water.exclusions.emplace_back(i, i);
    }
    for (auto& pair : water.exclusions)
    {
        std::swap(pair.first, pair.second);
    }
    load(solver, water, false);
    const Evaluation reversed = evaluate(solver, water);
    // a pair that is left in would be 1e4 times as much
    const double rounding = pairRounding<Real>(water);
    for (const Evaluation* other : { &oneWay, &reversed })
    {
        EXPECT_LE(relativeError(other->forces, both.forces), roundingFloor<Real>());
        EXPECT_NEAR(other->energy, both.energy, rounding);
        EXPECT_LE(largestDifference(other->virial, both.virial), rounding);
    }
}

TYPED_TEST(Exclusions, CanBeReplacedAndCleared)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 3.0), 32));
    System bare        = water;
    bare.exclusions.clear();
    Solver<Real> solver(TypeParam::options());
    for (const System* system : std::vector<const System*>{ &water, &bare, &water })
    {
        load(solver, *system);
        const Evaluation result    = evaluate(solver, *system);
        const Evaluation reference = ewald(*system);
        expectClose(result, reference, boundsFor<Real>(*system, solver.setup(), reference));
    }
    // Another number of particles clears them: the first molecule without its last site.
    const std::vector<Real> q(water.charges.begin(), water.charges.end());
    bare.positions.pop_back();
    bare.charges.pop_back();
    solver.setCharges(q.data(), bare.size());
    const Evaluation reference = ewald(bare);
    expectClose(
            evaluate(solver, bare), reference, boundsFor<Real>(bare, solver.setup(), reference));
}

//! Random charges, each with a shell of opposite large charge at the given distance.
System shells(const Matrix& box, double distance, unsigned seed)
{
    System cores  = randomCharges(box, 150, seed);
    System system = cores;
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int i = 0; i < cores.size(); ++i)
    {
        Vector u            = { normal(random), normal(random), normal(random) };
        const double length = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
        Vector x            = cores.positions[i];
        for (int k = 0; k < 3; ++k)
        {
            x[k] += length == 0 ? 0 : distance * u[k] / length;
        }
        system.charges[i] += 2.5;
        system.positions.push_back(x);
        system.charges.push_back(-2.5);
        system.exclusions.emplace_back(i, cores.size() + i);
    }
    return system;
}

TYPED_TEST(Exclusions, OfCloseShellsKeepAccuracy)
{
    using Real = typename TypeParam::Real;
    for (const double distance : { 0.0, 1e-4, 1e-3, 1e-2 })
    {
        const System system        = rounded<Real>(shells(namedBox("cube", 6.0), distance, 33));
        const Evaluation reference = ewald(system);
        Options options            = TypeParam::options();
        options.order              = 12;
        options.directRange        = 2;
        options.cellSize           = 0.4;
        Solver<Real> solver(options);
        load(solver, system);
        const Evaluation result = evaluate(solver, system);
        SCOPED_TRACE(describe(system, solver.setup()) + ", distance " + std::to_string(distance));
        // A pair at 1e-4 nm has 1e6 times the force of any other: it must be skipped, not
        // subtracted. What is left is the ordinary rounding of single precision.
        const double truncation = slack(system.size())
                                  * boundsFor<Real>(system, solver.setup(), reference).predicted
                                  / rootMeanSquare(reference.forces);
        EXPECT_LE(relativeError(result.forces, reference.forces), truncation + 1e-5);
        EXPECT_TRUE(std::isfinite(result.energy));
        expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
    }
}

TYPED_TEST(Exclusions, WorkThroughTheBoundary)
{
    using Real = typename TypeParam::Real;
    for (const auto& named : allBoxes(6.0))
    {
        // Molecules on every face, half of whose sites are given at another image.
        System system = pseudoWater(named.box, 34);
        system        = shifted(system, { 0.155, 0.155, 0.155 });
        for (int i = 1; i < system.size(); i += 3)
        {
            const int image = (i / 3) % 3;
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i][k] += system.box[image][k] * ((i / 9) % 2 == 0 ? 1 : -1);
            }
        }
        Options options  = TypeParam::options();
        options.order    = 12;
        options.cellSize = 0.4;
        SCOPED_TRACE(named.name);
        expectMatchesEwald<Real>(system, options);
    }
}

TYPED_TEST(Exclusions, MayReachBeyondTheDirectRange)
{
    // A chain of excluded pairs up to 0.9 nm long, further than the near cells at 0.25 nm.
    using Real    = typename TypeParam::Real;
    System system = randomCharges(namedBox("rectangular", 8.0), 150, 35);
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = 0; j < i; ++j)
        {
            double r2 = 0;
            for (int k = 0; k < 3; ++k)
            {
                const double length = system.box[k][k];
                double d            = system.positions[i][k] - system.positions[j][k];
                d -= length * std::round(d / length);
                r2 += d * d;
            }
            if (r2 < 0.9 * 0.9 && (i + j) % 7 == 0)
            {
                system.exclusions.emplace_back(i, j);
            }
        }
    }
    ASSERT_GT(system.exclusions.size(), 100U);
    Options options     = TypeParam::options();
    options.order       = 12;
    options.directRange = 1;
    options.cellSize    = 0.25;
    expectMatchesEwald<Real>(system, options);
}

//! Pairs of ions with bound partners, which are as near as that each.
template<class Real>
System boundPairs(double distance)
{
    System system;
    system.name = "bound pairs";
    for (int k = 0; k < 3; ++k)
    {
        system.box[k][k] = 20;
    }
    for (int i = 0; i < 6; ++i)
    {
        const double x = 1.7 + 3.1 * i, y = 2.9 + 2.3 * (i % 2), z = 9.1 - 1.1 * i;
        system.positions.push_back({ x, y, z });
        system.positions.push_back({ x, y + 0.6 * distance, z + 0.8 * distance });
        system.charges.push_back(i % 2 ? 1 : -1);
        system.charges.push_back(i % 2 ? -1.5 : 1.5);
        system.exclusions.emplace_back(2 * i, 2 * i + 1);
    }
    return rounded<Real>(system);
}

//! Rounding of a pair that is subtracted counts where all other forces are weak.
TYPED_TEST(Exclusions, MayStretchInAThinGas)
{
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.accuracy = 3e-4;
    Solver<Real> solver(options);
    load(solver, boundPairs<Real>(0.03));
    for (const double distance : { 0.03, 0.042, 0.05, 0.08 })
    {
        const System system        = boundPairs<Real>(distance);
        const Evaluation reference = ewald(system);
        const Evaluation result    = evaluate(solver, system);
        SCOPED_TRACE(describe(system, solver.setup()) + ", distance " + std::to_string(distance));
        EXPECT_LE(relativeError(result.forces, reference.forces), options.accuracy);
    }
}

//! A molecule that begins with its atoms far apart gets bonds of the usual length later.
TYPED_TEST(Exclusions, MayComeAsNearAsABondInAThinGas)
{
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.accuracy = 3e-4;
    options.threads  = 1;
    Solver<Real> solver(options);
    load(solver, boundPairs<Real>(1.2));
    for (const double distance : { 1.2, 0.2, 0.1 })
    {
        const System system        = boundPairs<Real>(distance);
        const Evaluation reference = ewald(system);
        const Evaluation result    = evaluate(solver, system);
        SCOPED_TRACE(describe(system, solver.setup()) + ", distance " + std::to_string(distance));
        EXPECT_LE(relativeError(result.forces, reference.forces), options.accuracy);
    }
}

//! An order that misses the accuracy has an error of its own, which rounding must not exceed.
TYPED_TEST(Exclusions, MayStretchInAThinGasWhereTheOrderIsGiven)
{
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.accuracy = 1e-5;
    options.order    = 6;
    Solver<Real> solver(options);
    load(solver, boundPairs<Real>(0.03));
    for (const double distance : { 0.03, 0.042 })
    {
        const System system        = boundPairs<Real>(distance);
        const Evaluation reference = ewald(system);
        const Evaluation result    = evaluate(solver, system);
        const Setup setup          = solver.setup();
        SCOPED_TRACE(describe(system, setup) + ", distance " + std::to_string(distance));
        EXPECT_GT(setup.estimatedError, options.accuracy);
        EXPECT_LE(relativeError(result.forces, reference.forces), 2 * setup.estimatedError);
    }
}

} // namespace
} // namespace test
} // namespace farfield
