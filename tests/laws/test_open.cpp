/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boundary::Open: particles without images, against sums over all pairs.
 */
#include <cmath>

#include <limits>
#include <string>
#include <vector>

#include "evaporation.h"
#include "open_systems.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

System together(const std::string& name, const System& a, const System& b)
{
    System both = a;
    both.name   = name;
    both.positions.insert(both.positions.end(), b.positions.begin(), b.positions.end());
    both.charges.insert(both.charges.end(), b.charges.begin(), b.charges.end());
    for (const auto& [i, j] : b.exclusions)
    {
        both.exclusions.push_back({ a.size() + i, a.size() + j });
    }
    return both;
}

System ions(const std::vector<Vector>& positions, const std::vector<double>& charges)
{
    System system;
    system.name      = std::to_string(charges.size()) + " ions";
    system.positions = positions;
    system.charges   = charges;
    return system;
}

std::vector<System> systems()
{
    const System block = molecules("block", { 0, 0, 0 }, { 11, 10, 9 });
    return { block,
             molecules("charged block", { 3, -200, 1 }, { 10, 10, 8 }, 0.05),
             molecules("sheet", { 0, 0, 0 }, { 30, 30, 1 }),
             molecules("line", { 0, 0, 0 }, { 700, 1, 1 }),
             together("two far blocks", block, molecules("", { 40, 3, 1 }, { 6, 6, 6 }, 0.1)),
             molecules("a few", { 0, 0, 0 }, { 3, 2, 2 }) };
}

template<class Config>
class Open : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options options()
    {
        Options options  = Config::options();
        options.boundary = Boundary::Open;
        return options;
    }
    //! That a result has the error that was asked for, relative to the forces of all pairs.
    static void expectAccurate(const Evaluation& result,
                               const System& system,
                               const Evaluation& exact,
                               double accuracy)
    {
        EXPECT_LE(relativeError(result.forces, exact.forces), accuracy);
        EXPECT_NEAR(
                result.energy, exact.energy, c_deviations * energyError(exact.forces, accuracy));
        // of errors of forces, each with its lever
        double squares = 0;
        for (const Vector& r : system.positions)
        {
            for (int k = 0; k < 3; ++k)
            {
                squares += std::pow(r[k] - system.positions[0][k], 2);
            }
        }
        const double virial = accuracy * rootMeanSquare(exact.forces) * std::sqrt(squares);
        EXPECT_LE(largestDifference(result.virial, exact.virial), c_deviations * virial);
    }
};
TYPED_TEST_SUITE(Open, Configurations);

TYPED_TEST(Open, HasTheForcesOfAllPairs)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const System& exact : systems())
    {
        if (!isTurnOf<Real>(number++))
        {
            continue;
        }
        const System system    = rounded<Real>(exact);
        const Evaluation pairs = allPairs(system);
        evaluateWithEachEngine<Real>(
                TestFixture::options(),
                system,
                [&](const Evaluation& result, double accuracy)
                { TestFixture::expectAccurate(result, system, pairs, accuracy); });
    }
}

//! The box is not read, where the particles are has no meaning, and what they do is followed.
TYPED_TEST(Open, FollowsTheParticles)
{
    using Real         = typename TypeParam::Real;
    const double nan   = std::numeric_limits<double>::quiet_NaN();
    const System block = molecules("block", { 0, 0, 0 }, { 9, 9, 9 });
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options = TestFixture::options();
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, block);
        // spreads, falls together, and goes away
        const struct
        {
            double scale;
            Vector shift;
        } motions[] = { { 1, { 0, 0, 0 } },    { 1.03, { 1, 0, 0 } }, { 1.2, { 5, 5, 5 } },
                        { 1.6, { 5, 5, 50 } }, { 3, { -50, 0, 0 } },  { 12, { 0, 0, 0 } },
                        { 1, { 3, 3, 3 } } };
        for (const auto& motion : motions)
        {
            System moved            = rounded<Real>(spread(block, motion.scale, motion.shift));
            moved.box               = { { { nan, 0, nan }, { 0, -1, 0 }, { 0, 0, 0 } } };
            const Evaluation result = evaluate(solver, moved);
            SCOPED_TRACE(describe(moved, solver.setup()) + ", times "
                         + std::to_string(motion.scale));
            TestFixture::expectAccurate(result, moved, allPairs(moved), 3e-4);
        }
    }
}

/*! Ions that repel each other, and a pair that dissociates: first all of them are near each other, and
 *  no part of what is measured then is that of expansions. */
TYPED_TEST(Open, KeepsTheAccuracyOfWhatExpands)
{
    using Real         = typename TypeParam::Real;
    constexpr int edge = 7;
    System ball        = ions({}, {});
    for (int i = 0; i < edge * edge * edge; ++i)
    {
        // no two distances are the same
        const double x = i % edge, y = i / edge % edge, z = i / (edge * edge);
        ball.positions.push_back({ 0.30 * x + 0.011 * y, 0.31 * y + 0.013 * z, 0.32 * z });
        ball.charges.push_back(1);
    }
    const System pair = ions({ { 0, 0, 0 }, { 0.2, 0.15, 0.1 } }, { 1, -1 });
    for (const System& start : { ball, pair })
    {
        for (const double accuracy : { 1e-3, 1e-5 })
        {
            Options options  = TestFixture::options();
            options.accuracy = accuracy;
            options.threads  = 1;
            Solver<Real> solver(options);
            load(solver, start);
            long long step = 0;
            for (double scale = 1; scale < 8; scale *= 1.06, ++step)
            {
                const Matrix stretch = { { { scale, 0, 0 }, { 0, scale, 0 }, { 0, 0, scale } } };
                const System moved   = rounded<Real>(deformed(start, stretch));
                Request request;
                request.step            = step;
                const Evaluation result = evaluate(solver, moved, request);
                ASSERT_LE(relativeError(result.forces, allPairs(moved).forces), accuracy)
                        << describe(moved, solver.setup()) << ", times " << scale;
            }
        }
    }
}

//! What evaporates costs other cells as often as its distance doubles, not at every step.
TYPED_TEST(Open, SeldomHasOtherCellsForWhatEvaporates)
{
    using Real           = typename TypeParam::Real;
    const System rest    = molecules("block", { 0, 0, 0 }, { 9, 9, 9 });
    const double doubled = 6;
    for (const M2lEngine engine : { M2lEngine::Auto, M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options = TestFixture::options();
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, rest);
        expectFewChoices(solver,
                         rest,
                         doubled,
                         [](const System& moved, const Evaluation& result)
                         { TestFixture::expectAccurate(result, moved, allPairs(moved), 3e-4); });
    }
}

/*! \brief Charges in a cube, and some far from it: cells are for the particles, not for what is in
 *         between, in any precision.
 *
 *  The near field of the CPU takes positions as they are given: large cells round none. */
TYPED_TEST(Open, HasFewCellsForWhatIsFarAway)
{
    using Real            = typename TypeParam::Real;
    const Options options = TestFixture::options();
    constexpr double edge = 3;
    const Matrix box      = { { { edge, 0, 0 }, { 0, edge, 0 }, { 0, 0, edge } } };
    // at random places some are in contact, which shows rounding most
    const System cube = randomCharges(box, 600, 3, 0, 0);
    const auto away   = [&](int every, const Vector& first, double turn)
    {
        System system = cube;
        for (int i = 0; i < system.size(); i += every)
        {
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i][k] += first[k] * std::cos(turn * i + k);
            }
        }
        return system;
    };
    for (const System& exact : { away(600, { 12000, 0, 0 }, 0),
                                 away(120, { 1e4, 9e3, 8e3 }, 0.02),
                                 away(150, { 1e6, 0, 7e5 }, 0.01),
                                 away(2, { 40, 3, 0 }, 0) })
    {
        System system = rounded<Real>(exact);
        Solver<Real> solver(options);
        load(solver, system);
        evaluate(solver, system);
        const Setup setup = solver.setup();
        SCOPED_TRACE(describe(system, setup));
        // a GPU takes more of them: where nobody is they cost little
        EXPECT_LE(setup.leafCells, (options.device == Device::Gpu ? 4 : 1) * system.size());
        EXPECT_FALSE(setup.isBestEffort);
        for (int step = 0; step < 20; ++step)
        {
            for (int i = 0; i < system.size(); ++i)
            {
                system.positions[i][step % 3] += 1e-3 * std::sin(step + i);
            }
            system = rounded<Real>(system);
            Request request;
            request.step            = step;
            const Evaluation result = evaluate(solver, system, request);
            if (step % 10 == 0)
            {
                TestFixture::expectAccurate(result, system, allPairs(system), options.accuracy);
            }
            EXPECT_EQ(solver.setup().cells, setup.cells);
        }
    }
}

//! A few particles need no far field: all pairs are in near cells. Any number of threads shares them.
TYPED_TEST(Open, FewParticlesAreAllNear)
{
    using Real             = typename TypeParam::Real;
    const System block     = rounded<Real>(molecules("block", { 0, 0, 0 }, { 7, 8, 6 }));
    const Evaluation exact = allPairs(block);
    std::vector<Vector> ofOneThread;
    for (const int threads : { 1, 2, 5 })
    {
        Options options = TestFixture::options();
        options.threads = threads;
        Solver<Real> solver(options);
        load(solver, block);
        const Evaluation result = evaluate(solver, block);
        const bool isAllNear    = solver.setup().order == 1;
        EXPECT_TRUE(isAllNear || options.device == Device::Gpu); // where cells cost other times
        TestFixture::expectAccurate(result, block, exact, isAllNear ? 3e-6 : options.accuracy);
        if (threads == 1)
        {
            ofOneThread = result.forces;
        }
        EXPECT_LE(relativeError(result.forces, ofOneThread), roundingFloor<Real>());
    }
}

//! A run that is continued has the bits of one that is not, however far particles have spread.
TYPED_TEST(Open, ContinuesExactly)
{
    using Real         = typename TypeParam::Real;
    const System block = rounded<Real>(molecules("block", { 0, 0, 0 }, { 9, 8, 9 }));
    System spread      = block;
    for (Vector& r : spread.positions)
    {
        r[1] *= 1.12;
    }
    spread               = rounded<Real>(spread);
    Options options      = TestFixture::options();
    options.threads      = 2;
    options.reproducible = true;
    Solver<Real> solver(options), continued(options);
    load(solver, block);
    load(continued, block);
    evaluate(solver, block);
    evaluate(solver, spread);
    continued.restore(solver.state());
    expectSameBits(evaluate(continued, spread), evaluate(solver, spread));
    expectSameBits(evaluate(continued, block), evaluate(solver, block));
    // what was saved is for these boundaries
    Options periodic  = options;
    periodic.boundary = Boundary::Periodic;
    Solver<Real> other(periodic);
    load(other, block);
    expectError(ErrorCode::InvalidArgument,
                { "boundary", "open", "periodic" },
                [&] { other.restore(solver.state()); });
}

TYPED_TEST(Open, HasPotentialsAndEnergiesOfGroups)
{
    using Real          = typename TypeParam::Real;
    const System exact  = molecules("block", { 0, 0, 0 }, { 8, 8, 8 }, 0.02);
    const System system = rounded<Real>(exact);
    Options options     = TestFixture::options();
    options.accuracy    = 1e-5;
    Solver<Real> solver(options);
    load(solver, system);
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> forces(x.size()), potentials(system.size());
    const Totals totals = solver.evaluate(
            x.data(), Box(system.box).rows, forces.data(), Request(), potentials.data());
    double twice = 0, scale = 0;
    for (int i = 0; i < system.size(); ++i)
    {
        twice += system.charges[i] * static_cast<double>(potentials[i]);
        scale += std::abs(system.charges[i] * static_cast<double>(potentials[i]));
    }
    EXPECT_NEAR(twice, 2 * totals.energy, roundingFloor<Real>() * scale);
    // of a molecule, against the rest
    std::vector<int> group(system.size(), 1);
    System one = system, others = system;
    for (int i = 0; i < system.size(); ++i)
    {
        group[i]                           = i < 30 ? 0 : 1;
        (i < 30 ? others : one).charges[i] = 0;
    }
    const auto energies = solver.groupEnergies(x.data(), Box(system.box).rows, group.data(), 2);
    const double all = allPairs(system).energy, ofOne = allPairs(one).energy,
                 ofOthers  = allPairs(others).energy;
    const double tolerance = c_deviations * energyError(allPairs(system).forces, 1e-5);
    EXPECT_NEAR(energies[0], ofOne, tolerance);
    EXPECT_NEAR(energies[1], all - ofOne - ofOthers, tolerance);
    EXPECT_NEAR(energies[3], ofOthers, tolerance);
}

TYPED_TEST(Open, HasChargesOfTwoStates)
{
    using Real             = typename TypeParam::Real;
    System exact           = molecules("block", { 0, 0, 0 }, { 8, 8, 8 });
    exact.box              = {};
    const TwoStates states = discharged<Real>(exact, 9);
    Solver<Real> solver(TestFixture::options());
    load(solver, states);
    const Evaluation a = allPairs(states.a), b = allPairs(states.b);
    Request request;
    request.lambda            = 0.3;
    request.dEnergyDLambda    = true;
    const std::vector<Real> x = flatPositions<Real>(states.a);
    std::vector<Real> forces(x.size());
    const Totals totals = solver.evaluate(x.data(), Box(exact.box).rows, forces.data(), request);
    TestFixture::expectAccurate(evaluationOf(totals, forces), states.a, mixed(a, b, 0.3), 3e-4);
    EXPECT_NEAR(
            totals.dEnergyDLambda, b.energy - a.energy, c_deviations * energyError(a.forces, 3e-4));
}

//! Few particles, in odd places.
TYPED_TEST(Open, HasFewParticles)
{
    using Real = typename TypeParam::Real;
    for (const System& exact :
         { ions({ { 5, 5, 5 } }, { 2 }),
           ions({ { 0, 0, 0 }, { 0.2, 0, 0 } }, { 1, -1 }),
           ions({ { 1e5, 0, 0 }, { 1e5, 700, 0 } }, { 1, 1 }),
           ions({ { 0, 0, 0 }, { 0.2, 0.1, 0 }, { 300, 1, 1 } }, { 1, -1, 0.5 }),
           ions({ { 0, 0, 0 }, { 0, 0, 0.01 }, { 0, 1e-3, 0 }, { 3e-3, 0, 0 } }, { 1, -1, 1, -1 }),
           ions({ { 0, 0, 0 }, { 7, 8, 9 } }, { 1, 0 }) })
    {
        const System system = rounded<Real>(exact);
        Solver<Real> solver(TestFixture::options());
        load(solver, system);
        const Evaluation result = evaluate(solver, system), pairs = allPairs(system);
        SCOPED_TRACE(describe(system, solver.setup()));
        if (rootMeanSquare(pairs.forces) > 0)
        {
            EXPECT_LE(relativeError(result.forces, pairs.forces), 3e-4);
        }
        else
        {
            EXPECT_EQ(result.forces, pairs.forces);
        }
        EXPECT_NEAR(result.energy, pairs.energy, 1e-3 * std::abs(pairs.energy));
    }
}

TYPED_TEST(Open, HasClearErrors)
{
    using Real           = typename TypeParam::Real;
    System system        = molecules("a few", { 0, 0, 0 }, { 4, 4, 4 });
    Options options      = TestFixture::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation before = evaluate(solver, system);
    System broken           = system;
    for (const double value :
         { std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity() })
    {
        broken.positions[17][1] = value;
        expectError(ErrorCode::InvalidArgument,
                    { "particle 17", "not finite" },
                    [&] { evaluate(solver, broken); });
    }
    broken.positions[17][1] = 1e9;
    expectError(ErrorCode::InvalidArgument,
                { "nm apart", "flown away" },
                [&] { evaluate(solver, broken); });
    expectSameBits(evaluate(solver, system), before);
}

} // namespace
} // namespace test
} // namespace farfield
