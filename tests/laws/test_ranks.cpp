/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems on several ranks: the results of one.
 */
#include <cmath>

#include <limits>
#include <random>

#include "in_process_ranks.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Neighbours on different ranks, none on the last one if there are several.
Division scattered(const System& system, int ranks)
{
    Division rankOf;
    for (int i = 0; i < system.size(); i++)
    {
        rankOf.push_back(i % std::max(1, ranks - 1));
    }
    return rankOf;
}

//! Slabs, bricks that divide all three axes where there are enough ranks, and once no domains at all.
std::vector<Division> divisionsOf(const System& system, int ranks)
{
    switch (ranks)
    {
        case 3:
            return { domains(system, ranks), scattered(system, ranks) };
        case 8:
            return { bricks(system, { 2, 2, 2 }) };
        case 12:
            return { bricks(system, { 3, 2, 2 }) };
        default:
            return { domains(system, ranks) };
    }
}

Options optionsFor(M2lEngine engine, Device device = Device::Cpu)
{
    Options options;
    options.device  = device;
    options.threads = 1;
    options.m2l     = engine;
    return options;
}

//! What several ranks may use: GPUs of theirs have no tree.
std::vector<M2lEngine> enginesOfRanks(Device device)
{
    return device == Device::Gpu ? std::vector<M2lEngine>{ M2lEngine::Fft }
                                 : std::vector<M2lEngine>{ M2lEngine::Fft, M2lEngine::Hierarchy };
}

//! Water with a site without charge in every molecule, and all pairs of far ions excluded.
System withoutSomeCharges()
{
    System system = pseudoWater(namedBox("dodecahedron_square", 12), 6);
    const int n   = system.size();
    for (int i = 0; i < n; i += 3)
    {
        system.positions.push_back(system.positions[i]);
        system.charges.push_back(0);
        system.exclusions.emplace_back(i, system.size() - 1);
        system.exclusions.emplace_back(i + 1, system.size() - 1);
    }
    for (int i = 0; i < 12; i++)
    {
        for (int j = i + 1; j < 12; j++)
        {
            system.exclusions.emplace_back(i * (n / 12), j * (n / 12));
        }
    }
    return system;
}

//! What is left to the solver, as far as ranks of the device have it.
M2lEngine anyEngine(Device device)
{
    return device == Device::Gpu ? M2lEngine::Fft : M2lEngine::Auto;
}

//! Eight kinds of systems.
std::vector<System> systems()
{
    System pair;
    pair.box                = namedBox("cube", 27);
    pair.positions          = { { 0.1, 0.2, 2.9 }, { 2.8, 0.1, 0.2 } };
    pair.charges            = { 1, -0.5 };
    std::vector<System> all = {
        pseudoWater(namedBox("cube", 16), 1),
        pseudoWater(namedBox("triclinic", 10), 2),
        randomCharges(namedBox("long", 20), 700, 3, 5.0),
        inVacuum(namedBox("flat", 10), { 1, 1, 4 }),
        inVacuum(namedBox("cube", 8), { 4, 4, 4 }),
        rockSalt(3, 0.28),
        withoutSomeCharges(),
        pair,
    };
    const char* names[] = { "water",   "water, triclinic", "charged, long",        "film",
                            "droplet", "rock salt",        "without some charges", "two ions" };
    for (size_t k = 0; k < all.size(); k++)
    {
        all[k].name = names[k];
    }
    return all;
}

//! What the ranks have found, together.
struct Together
{
    Evaluation evaluation;
    Setup setup;
    Traffic traffic; //!< of the first rank
};

//! Evaluates states of a system that differ in positions and box, one after the other, with cells
//! of a saved state if there is one.
template<class Real>
std::vector<Together> evaluateOnRanks(const std::vector<System>& states,
                                      const Division& rankOf,
                                      int ranks,
                                      const Options& options,
                                      const Request& first             = {},
                                      const std::vector<double>& state = {})
{
    std::vector<Together> all(states.size());
    for (size_t k = 0; k < states.size(); k++)
    {
        all[k].evaluation.forces.resize(states[k].size());
    }
    std::mutex mutex;
    onRanks(ranks,
            [&](Communicator& communicator)
            {
                DistributedSolver<Real> solver(options, &communicator);
                const Portion<Real> portion(states[0], rankOf, communicator.rank());
                portion.giveTo(&solver);
                if (!state.empty())
                {
                    solver.restore(state);
                }
                Request request = first;
                for (size_t k = 0; k < states.size(); k++)
                {
                    const std::vector<Real> x = portion.positions(states[k]);
                    std::vector<Real> f(x.size(), Real(1));
                    const Totals totals =
                            solver.evaluate(x.data(), Box(states[k].box).rows, f.data(), request);
                    request.step += request.step >= 0 ? 1 : 0;
                    const std::lock_guard<std::mutex> lock(mutex);
                    Evaluation& result    = all[k].evaluation;
                    const Evaluation part = evaluationOf(totals, f);
                    result.energy += part.energy;
                    for (size_t i = 0; i < portion.index.size(); i++)
                    {
                        for (int c = 0; c < 3; c++)
                        {
                            // were added to ones
                            result.forces[portion.index[i]][c] = part.forces[i][c] - 1;
                        }
                    }
                    for (int i = 0; i < 9; i++)
                    {
                        result.virial[i / 3][i % 3] += part.virial[i / 3][i % 3];
                    }
                    if (communicator.rank() == 0)
                    {
                        all[k].setup   = solver.setup();
                        all[k].traffic = solver.traffic();
                    }
                }
            });
    return all;
}

//! Expects the forces of a rank's particles. \param[in] f  [particles][3]
template<class Real>
void expectForcesOf(const Portion<Real>& portion,
                    const std::vector<Real>& f,
                    const std::vector<Vector>& expected)
{
    const double rounding = 1e3 * roundingFloor<Real>() * rootMeanSquare(expected);
    for (size_t i = 0; i < portion.index.size(); i++)
    {
        for (int c = 0; c < 3; c++)
        {
            EXPECT_NEAR(f[3 * i + c], expected[portion.index[i]][c], rounding);
        }
    }
}

template<class Config>
class Ranks : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Ranks, Configurations);

/*! \brief Of the k-th system with the n-th of several engines.
 *
 *  Each system has domains, particles at random and bricks along all axes, which its engines share; the
 *  long form has all numbers for each. */
std::vector<int> numbersOfRanks(size_t k, size_t n, size_t engines)
{
    if (isLong())
    {
        return { 1, 2, 3, 4, 5, 8, 12 };
    }
    const int c_all[2][4] = { { 1, 3, 4, 8 }, { 2, 3, 5, 12 } };
    std::vector<int> numbers;
    for (size_t i = 0; i < 4; i++)
    {
        if ((i + n + k / 2) % engines == 0)
        {
            numbers.push_back(c_all[k % 2][i]);
        }
    }
    return numbers;
}

TYPED_TEST(Ranks, AnyNumberGivesWhatOneGives)
{
    using Real                      = typename TypeParam::Real;
    const std::vector<System> kinds = systems();
    for (size_t k = 0; k < kinds.size(); k++)
    {
        if (!isTurnOf<Real>(k / 2))
        {
            continue;
        }
        const System system                  = rounded<Real>(kinds[k]);
        const std::vector<M2lEngine> engines = enginesOfRanks(TypeParam::device);
        for (size_t n = 0; n < engines.size(); n++)
        {
            const Options options = optionsFor(engines[n], TypeParam::device);
            Solver<Real> single(options);
            load(single, system);
            const Evaluation expected = evaluate(single, system);
            for (const int ranks : numbersOfRanks(k, n, engines.size()))
            {
                for (const Division& rankOf : divisionsOf(system, ranks))
                {
                    const Together all = evaluateOnRanks<Real>(
                            { system }, rankOf, ranks, options, {}, single.state())[0];
                    SCOPED_TRACE(describe(system, all.setup) + ", ranks " + std::to_string(ranks));
                    expectEqualToRounding<Real>(all.evaluation, expected, system);
                }
            }
        }
    }
}

TYPED_TEST(Ranks, FollowMotionByPlanningAnewWhereParticlesHaveMovedFar)
{
    using Real = typename TypeParam::Real;
    std::mt19937 random(11);
    std::normal_distribution<double> kick(0, 0.02);
    std::vector<System> states = { rounded<Real>(pseudoWater(namedBox("triclinic", 12), 7)) };
    for (int step = 1; step < 16; step++)
    {
        states.push_back(states.back());
        for (Vector& x : states.back().positions)
        {
            for (double& component : x)
            {
                component += kick(random);
            }
        }
        if (step == 9) // as GROMACS does between pair searches: into the box
        {
            states.back().positions[3][0] += states[0].box[0][0];
        }
        states.back() = rounded<Real>(states.back());
    }
    for (const M2lEngine engine : enginesOfRanks(TypeParam::device))
    {
        const Options options = optionsFor(engine, TypeParam::device);
        Request request;
        request.step = 100;
        Solver<Real> single(options);
        load(single, states[0]);
        evaluate(single, states[0], request);
        const auto all = evaluateOnRanks<Real>(
                states, domains(states[0], 4), 4, options, request, single.state());
        for (size_t k = 0; k < states.size(); k++)
        {
            SCOPED_TRACE("step " + std::to_string(k) + " with " + nameOf(all[k].setup.m2l));
            expectEqualToRounding<Real>(
                    all[k].evaluation, evaluate(single, states[k], request), states[k]);
            request.step++;
        }
        EXPECT_GT(all.back().traffic.plans, TypeParam::device == Device::Gpu ? 0 : 2);
        EXPECT_LT(all.back().traffic.plans, static_cast<long long>(states.size()));
    }
}

TYPED_TEST(Ranks, FollowTheBox)
{
    using Real                 = typename TypeParam::Real;
    const System start         = rounded<Real>(pseudoWater(namedBox("cube", 12), 8));
    std::vector<System> states = { start };
    for (const double strain : { 0.002, 0.02, 0.2, 1.0, 0.0 })
    {
        Matrix deformation = unitMatrix();
        deformation[0][0] += strain;
        deformation[1][0] = 0.3 * strain;
        states.push_back(rounded<Real>(deformed(start, deformation)));
    }
    // nothing is left to choose, as several ranks may choose other cells than one
    Options options     = optionsFor(M2lEngine::Fft, TypeParam::device);
    options.order       = 8;
    options.directRange = 1;
    options.cellSize    = 0.45;
    const auto all      = evaluateOnRanks<Real>(states, domains(start, 3), 3, options);
    Solver<Real> single(options);
    load(single, start);
    for (size_t k = 0; k < states.size(); k++)
    {
        SCOPED_TRACE(describe(states[k], all[k].setup));
        const Evaluation expected = evaluate(single, states[k]);
        EXPECT_EQ(all[k].setup.cells, single.setup().cells);
        expectEqualToRounding<Real>(all[k].evaluation, expected, states[k]);
    }
}

//! Choices depend on the number of ranks, not on where particles are among them.
TYPED_TEST(Ranks, ChooseWhatMeetsTheAccuracy)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(withoutSomeCharges());
    Options options     = optionsFor(anyEngine(TypeParam::device), TypeParam::device);
    options.accuracy    = 1e-4;
    options.tune        = false; // messages are not timed
    const Together all  = evaluateOnRanks<Real>({ system }, scattered(system, 3), 3, options)[0];
    EXPECT_LE(all.setup.estimatedError, options.accuracy);
    EXPECT_LE(relativeError(all.evaluation.forces, ewald(system).forces), options.accuracy);
    const Together others = evaluateOnRanks<Real>({ system }, domains(system, 3), 3, options)[0];
    EXPECT_EQ(others.setup.cells, all.setup.cells);
    EXPECT_LE(relativeError(others.evaluation.forces, all.evaluation.forces), 2 * options.accuracy);
}

TYPED_TEST(Ranks, ContinueFromTheStateOfAnotherNumber)
{
    using Real            = typename TypeParam::Real;
    const System system   = rounded<Real>(pseudoWater(namedBox("cube", 10), 9));
    const Options options = optionsFor(anyEngine(TypeParam::device), TypeParam::device);
    Solver<Real> single(options);
    load(single, system);
    const Evaluation expected = evaluate(single, system);
    onRanks(3,
            [&](Communicator& communicator)
            {
                DistributedSolver<Real> solver(options, &communicator);
                solver.restore(single.state());
                const Portion<Real> portion(system, domains(system, 3), communicator.rank());
                portion.giveTo(&solver);
                const std::vector<Real> x = portion.positions(system);
                std::vector<Real> f(x.size());
                solver.evaluate(x.data(), Box(system.box).rows, f.data());
                EXPECT_EQ(solver.state(), single.state());
                expectForcesOf(portion, f, expected.forces);
            });
}

//! Those without a charge have no forces, where they are with others and where they are alone.
TYPED_TEST(Ranks, MayHaveNoCharges)
{
    using Real            = typename TypeParam::Real;
    const System system   = rounded<Real>(withoutSomeCharges());
    const Options options = optionsFor(anyEngine(TypeParam::device), TypeParam::device);
    Solver<Real> single(options);
    load(single, system);
    const Evaluation expected = evaluate(single, system);
    Division together(system.size(), 0), apart;
    for (const double q : system.charges)
    {
        apart.push_back(q != 0 ? 1 : 0);
    }
    onRanks(2,
            [&](Communicator& communicator)
            {
                DistributedSolver<Real> solver(options, &communicator);
                solver.restore(single.state());
                Request request;
                request.replaceForces = true;
                for (const Division& rankOf : { together, apart })
                {
                    const Portion<Real> portion(system, rankOf, communicator.rank());
                    portion.giveTo(&solver);
                    const std::vector<Real> x = portion.positions(system);
                    std::vector<Real> f(x.size(), Real(1));
                    solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
                    expectForcesOf(portion, f, expected.forces);
                }
            });
}

TYPED_TEST(Ranks, GiveTheSameBitsAgain)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("cube", 4), 10));
    for (const M2lEngine engine : enginesOfRanks(TypeParam::device))
    {
        Options options      = optionsFor(engine, TypeParam::device);
        options.reproducible = true;
        const auto run       = [&] {
            return evaluateOnRanks<Real>({ system }, domains(system, 4), 4, options)[0]
                    .evaluation.forces;
        };
        EXPECT_EQ(run(), run());
    }
}

} // namespace
} // namespace test
} // namespace farfield
