/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Forces: against Ewald in every box, as gradients, by engine, by thread.
 */
#include <cmath>

#include <map>
#include <utility>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

/*! \brief RMS force on an atom of liquid water with TIP3P charges, kJ/mol/nm.
 *
 *  The Coulomb part and the total differ by less than 1 % (1118 and 1115 for the 216 molecules that
 *  come with GROMACS). Options::accuracy is relative to it; randomly oriented molecules have half
 *  of it, with the same charges and hence the same errors. */
constexpr double c_waterForce = 1.1e3;

template<class Config>
class Forces : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Forces, Configurations);

//! Water and random charges in turn; the long form has both in each box, and all cases.
TYPED_TEST(Forces, MatchEwaldInEveryBox)
{
    using Real       = typename TypeParam::Real;
    const auto boxes = allBoxes(9.0);
    unsigned seed    = 100;
    for (size_t k = 0; k < boxes.size(); ++k)
    {
        const auto& named = boxes[k];
        for (const bool water : { false, true })
        {
            ++seed;
            if (water == (k % 2 == 0) && !isLong())
            {
                continue;
            }
            const System system        = rounded<Real>(water ? pseudoWater(named.box, seed)
                                                             : randomCharges(named.box, 500, seed));
            const Evaluation reference = ewald(system);
            struct Case
            {
                int directRange;
                M2lEngine engine;
                bool leastSquares;
            };
            size_t number = 0;
            for (const Case& c : { Case{ 1, M2lEngine::Fft, true },
                                   Case{ 1, M2lEngine::Fft, false },
                                   Case{ 2, M2lEngine::Fft, true },
                                   Case{ 1, M2lEngine::Hierarchy, true },
                                   Case{ 2, M2lEngine::Hierarchy, false } })
            {
                if (!isTurnOf<Real>(k + number++))
                {
                    continue;
                }
                const bool hasLongLists = c.directRange == 2 && c.engine == M2lEngine::Hierarchy;
                if (hasLongLists && k / 2 % 2 == 1 && !isLong())
                {
                    continue; // of 875 cells; both kinds of systems are in two boxes without this
                }
                Options options      = TypeParam::options();
                options.directRange  = c.directRange;
                options.m2l          = c.engine;
                options.leastSquares = c.leastSquares;
                Solver<Real> solver(options);
                load(solver, system);
                const Evaluation result = evaluate(solver, system);
                SCOPED_TRACE(named.name + ": " + describe(system, solver.setup()));
                EXPECT_EQ(solver.setup().directRange, c.directRange);
                EXPECT_EQ(solver.setup().m2l, c.engine);
                expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
            }
        }
    }
}

TYPED_TEST(Forces, MatchEwaldWithEverythingLeftToTheSolver)
{
    using Real          = typename TypeParam::Real;
    const double wanted = TypeParam::options().accuracy * c_waterForce;
    double squares      = 0;
    for (const auto& named : allBoxes(20.0))
    {
        const System water         = rounded<Real>(pseudoWater(named.box, 7));
        const Evaluation reference = ewald(water);
        Solver<Real> solver(TypeParam::options());
        load(solver, water);
        const Evaluation result = evaluate(solver, water);
        SCOPED_TRACE(named.name + ": " + describe(water, solver.setup()));
        expectClose(result, reference, boundsFor<Real>(water, solver.setup(), reference));
        const double error =
                relativeError(result.forces, reference.forces) * rootMeanSquare(reference.forces);
        squares += error * error / 8;
        // What is asked for is a mean; one configuration of a few hundred molecules may be worse.
        EXPECT_LE(error, slack(water.size()) * wanted);
        // At most 2e-4 kJ/mol per atom in a box of 23 262 atoms; errors of pairs have random signs,
        // so the sum grows with the root of the number.
        EXPECT_LE(std::abs(result.energy - reference.energy),
                  2e-4 * std::sqrt(23262.0 * water.size()));
        EXPECT_GT(solver.setup().estimatedError, 0);
    }
    EXPECT_LE(std::sqrt(squares), wanted);
}

TYPED_TEST(Forces, FollowTheAccuracyAskedFor)
{
    using Real             = typename TypeParam::Real;
    constexpr int c_shifts = 4;
    const System water     = pseudoWater(namedBox("cube", 16.0), 8);
    std::vector<System> shiftedWater;
    std::vector<Evaluation> references;
    for (int k = 0; k < c_shifts; ++k)
    {
        shiftedWater.push_back(rounded<Real>(shifted(water, { 0.13 * k, 0.29 * k, -0.17 * k })));
        references.push_back(ewald(shiftedWater.back()));
    }
    for (const double accuracy : { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8 })
    {
        if (accuracy < 2 * roundingFloor<Real>())
        {
            break;
        }
        Options options  = TypeParam::options();
        options.accuracy = accuracy;
        Solver<Real> solver(options);
        load(solver, water);
        // Most of the error depends on where the cells lie: a mean over that is what is asked for.
        double squares = 0;
        for (int k = 0; k < c_shifts; ++k)
        {
            const Evaluation result = evaluate(solver, shiftedWater[k], { false, false });
            const double rms        = rootMeanSquare(references[k].forces);
            squares += std::pow(relativeError(result.forces, references[k].forces) * rms, 2)
                       / c_shifts;
        }
        SCOPED_TRACE(describe(water, solver.setup()));
        EXPECT_LE(std::sqrt(squares), accuracy * c_waterForce);
        EXPECT_LE(solver.setup().estimatedError, accuracy);
    }
}

TYPED_TEST(Forces, SeeAGridOffsetAsAShiftOfEverything)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options  = TypeParam::options();
        options.m2l      = engine;
        options.order    = 6;
        options.cellSize = 0.4;
        // A net charge, whose background must move along.
        const System system = rounded<Real>(randomCharges(namedBox("cube", 8.0), 400, 18, 5.0));
        Solver<Real> solver(options);
        load(solver, system);
        const Evaluation reference = ewald(system);
        const Evaluation start     = evaluate(solver, system);
        for (const std::array<double, 3>& offset :
             { std::array<double, 3>{ 0.5, 0.25, 0.75 }, std::array<double, 3>{ 0.1, 0.9, 0 } })
        {
            Request request;
            request.gridOffset     = offset;
            const Evaluation moved = evaluate(solver, system, request);
            SCOPED_TRACE(describe(system, solver.setup()));
            expectClose(moved, reference, boundsFor<Real>(system, solver.setup(), reference));
            Vector back;
            for (int k = 0; k < 3; ++k)
            {
                back[k] = -offset[k] * system.box[k][k] / solver.setup().cells[k][k];
            }
            // The same cells around the same particles; in single precision the shifted positions
            // are rounded once more, by half a unit of up to 3 nm.
            const Evaluation same = evaluate(solver, shifted(system, back));
            const double extra    = std::numeric_limits<Real>::epsilon() * 3 / 0.1;
            EXPECT_LE(relativeError(moved.forces, same.forces), roundingFloor<Real>() + extra);
            // ... and not those without the offset: the truncation error is another one.
            EXPECT_GT(relativeError(moved.forces, start.forces), 1e-5);
        }
    }
}

//! They have no direction between them; all other forces are what they are.
TYPED_TEST(Forces, OfChargesAtOnePlaceAreThoseWithoutTheirPair)
{
    using Real     = typename TypeParam::Real;
    System charges = rounded<Real>(randomCharges(namedBox("triclinic", 8.0), 100, 9));
    System apart   = charges;
    for (const auto& [i, j] : { std::pair(0, 1), std::pair(10, 12) })
    {
        charges.positions[i] = charges.positions[j];
        apart.positions      = charges.positions;
        apart.exclusions.emplace_back(i, j);
    }
    const Evaluation exact = ewald(apart);
    Solver<Real> solver(TypeParam::options());
    load(solver, charges);
    const Evaluation result = evaluate(solver, charges);
    EXPECT_LE(relativeError(result.forces, exact.forces), TypeParam::options().accuracy);
    EXPECT_TRUE(std::isfinite(result.energy));
}

TYPED_TEST(Forces, AreAdded)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(randomCharges(namedBox("cube", 4.0), 60, 10));
    // close pairs have large forces, which add up to others in another order
    Options options      = TypeParam::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, system);
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> f(x.size()), g(x.size(), Real(1000));
    solver.evaluate(x.data(), Box(system.box).rows, f.data());
    solver.evaluate(x.data(), Box(system.box).rows, g.data());
    for (size_t i = 0; i < f.size(); ++i)
    {
        EXPECT_NEAR(g[i],
                    f[i] + 1000,
                    4 * std::numeric_limits<Real>::epsilon() * (std::abs(f[i]) + 1000));
    }
}

template<class Config>
class DoubleForces : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DoubleForces, DoubleConfigurations);

TYPED_TEST(DoubleForces, AreMinusGradient)
{
    using Real = typename TypeParam::Real;
    for (const bool leastSquares : { false, true })
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Options options      = TypeParam::options();
            options.order        = 6;
            options.cellSize     = 0.4;
            options.leastSquares = leastSquares;
            options.m2l          = engine;
            System system        = pseudoWater(namedBox("octahedron", 5.0), 12);
            Solver<Real> solver(options);
            load(solver, system);
            const Evaluation result = evaluate(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            // As long as no particle changes its cell the energy is a smooth function, whatever the
            // order: the forces are its gradient to rounding if M2L operators are symmetric.
            // Central difference: step^2/6 times third derivatives (6 k q^2/r^4, r >= 0.15) plus
            // rounding of the energy.
            const double step = 1e-5;
            const double bound =
                    step * step * c_coulomb / std::pow(0.15, 4)
                    + 1e-14 * std::abs(result.energy) * std::sqrt(system.size()) / step;
            for (const int i : { 0, 50, 101, 304 })
            {
                for (int k = 0; k < 3; ++k)
                {
                    const double x         = system.positions[i][k];
                    system.positions[i][k] = x + step;
                    const double up        = evaluate(solver, system, { true, false }).energy;
                    system.positions[i][k] = x - step;
                    const double down      = evaluate(solver, system, { true, false }).energy;
                    system.positions[i][k] = x;
                    EXPECT_NEAR(result.forces[i][k], -(up - down) / (2 * step), bound)
                            << "particle " << i << ", component " << k;
                }
            }
        }
    }
}

//! The best accuracy that can be asked for: engines that may round do not.
template<class Real>
constexpr double c_finest = sizeof(Real) == 4 ? 2e-6 : 1e-11;

template<class Config>
class M2lEngines : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(M2lEngines, Configurations);

TYPED_TEST(M2lEngines, Agree)
{
    using Real = typename TypeParam::Real;
    int number = 0;
    for (const auto& named : allBoxes(8.0))
    {
        if (named.name == "rectangular" || named.name == "dodecahedron_square"
            || named.name == "flat")
        {
            continue; // Forces.MatchEwaldInEveryBox has them
        }
        number++;
        const System system        = rounded<Real>(randomCharges(named.box, 500, 15));
        const Evaluation reference = ewald(system);
        for (const int order : { 3, 9 })
        {
            // GPUs have engines that this test alone has in these boxes, at either order
            const bool isTurn = (number + (order == 3 ? 0 : 1)) % 2 == 0;
            if (TypeParam::device == Device::Cpu && !isTurn && !isLong())
            {
                continue;
            }
            SCOPED_TRACE(named.name + ", p = " + std::to_string(order));
            std::map<M2lEngine, Evaluation> results;
            for (const M2lEngine engine : enginesOf(TypeParam::device))
            {
                SCOPED_TRACE(nameOf(engine));
                Options options  = TypeParam::options();
                options.accuracy = c_finest<Real>;
                options.order    = order;
                options.cellSize = 0.33;
                options.m2l      = engine;
                Solver<Real> solver(options);
                load(solver, system);
                results[engine] = evaluate(solver, system);
                EXPECT_EQ(solver.setup().m2l, engine);
                if (engine == M2lEngine::Hierarchy)
                {
                    const Bounds bounds = boundsFor<Real>(system, solver.setup(), reference);
                    // The hierarchy sees far sources through coarser cells: both are off by the
                    // truncation error, and no further apart.
                    expectClose(results[engine], results[M2lEngine::Fft], bounds);
                }
                else if (engine == M2lEngine::Fft)
                {
                    EXPECT_EQ(solver.setup().levels, 1);
                }
                else
                {
                    const Evaluation& first = results[M2lEngine::Hierarchy];
                    EXPECT_LE(relativeError(results[engine].forces, first.forces),
                              roundingFloor<Real>());
                    EXPECT_NEAR(results[engine].energy / first.energy, 1, roundingFloor<Real>());
                    EXPECT_LE(largestDifference(results[engine].virial, first.virial),
                              roundingFloor<Real>() * std::abs(first.energy));
                }
            }
        }
    }
}

template<class Config>
class Threads : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Threads, Configurations);

TYPED_TEST(Threads, Agree)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("dodecahedron_square", 8.0), 16));
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Evaluation first;
        for (const int threads : { 1, 2, 3 })
        {
            Options options      = TypeParam::options();
            options.threads      = threads;
            options.m2l          = engine;
            options.order        = 6;
            options.cellSize     = 0.4;
            options.reproducible = true;
            Solver<Real> solver(options);
            load(solver, water);
            const Evaluation result = evaluate(solver, water);
            EXPECT_EQ(solver.setup().threads, threads);
            if (threads == 1)
            {
                first = result;
            }
            EXPECT_LE(relativeError(result.forces, first.forces), roundingFloor<Real>());
            EXPECT_NEAR(result.energy / first.energy, 1, roundingFloor<Real>());
            EXPECT_LE(largestDifference(result.virial, first.virial),
                      roundingFloor<Real>() * std::abs(first.energy));
            // Bitwise on repetition, in the same solver and in a new one.
            Solver<Real> other(options);
            load(other, water);
            for (Solver<Real>* again : { &solver, &other })
            {
                if (again == &other && threads != 2)
                {
                    continue;
                }
                const Evaluation repeated = evaluate(*again, water);
                EXPECT_EQ(repeated.forces, result.forces) << threads << " threads";
                EXPECT_EQ(repeated.energy, result.energy);
                EXPECT_EQ(repeated.virial, result.virial);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
