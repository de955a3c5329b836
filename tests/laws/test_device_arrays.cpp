/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_cuda.h: evaluations on arrays in device memory, at once and as CUDA graphs.
 */
#include "farfield/farfield_cuda.h"

#include <limits>
#include <memory>

#include "changing_systems.h"
#include "device_caller.h"

namespace farfield
{
namespace test
{
namespace
{

//! Moves neighbours alike, by up to \p reach nm, and some particles to another image.
System moved(const System& system, double reach, int step)
{
    System result   = system;
    const Matrix& b = system.box;
    for (int i = 0; i < system.size(); ++i)
    {
        Vector& r = result.positions[i];
        // the box is lower triangular
        const double s2 = r[2] / b[2][2];
        const double s1 = (r[1] - s2 * b[2][1]) / b[1][1];
        const double s0 = (r[0] - s2 * b[2][0] - s1 * b[1][0]) / b[0][0];
        const Vector d  = { std::sin(2 * M_PI * (s1 + 0.1 * step)),
                            std::sin(2 * M_PI * (s2 + 0.2 * step)),
                            std::sin(2 * M_PI * (s0 + 0.3 * step)) };
        const int image = ((i + step) % 5 == 0) ? 1 - 2 * (i % 2) : 0;
        for (int k = 0; k < 3; ++k)
        {
            r[k] += reach * d[k] + image * b[i % 3][k];
        }
    }
    return result;
}

template<class Config>
class DeviceArrays : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options optionsWith(M2lEngine engine)
    {
        Options options  = Config::options();
        options.m2l      = engine;
        options.cellSize = 0.5;
        return options;
    }
    static void expectForces(const Caller<Real>& caller, const System& system)
    {
        const Evaluation reference = ewald(system);
        EXPECT_LE(relativeError(caller.forces(), reference.forces)
                          * rootMeanSquare(reference.forces),
                  boundsFor<Real>(system, caller.setup(), reference).force);
    }
};
TYPED_TEST_SUITE(DeviceArrays, GpuConfigurations);

TYPED_TEST(DeviceArrays, GiveWhatHostArraysGive)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("triclinic", 8.0), 90));
    Options options    = TypeParam::options();
    Solver<Real> host(options);
    load(host, water);
    const Evaluation wanted = evaluate(host, water);
    Caller<Real> caller(water, options);
    Request request;
    request.replaceForces = true;
    caller.enqueue(request);
    const Totals totals = caller.wait();
    EXPECT_LE(relativeError(caller.forces(), wanted.forces), roundingFloor<Real>());
    EXPECT_NEAR(totals.energy, wanted.energy, pairRounding<Real>(water));
    // added to what is there
    request.replaceForces = false;
    caller.enqueue(request);
    caller.wait();
    std::vector<Vector> twice = wanted.forces;
    for (Vector& f : twice)
    {
        f = { 2 * f[0], 2 * f[1], 2 * f[2] };
    }
    EXPECT_LE(relativeError(caller.forces(), twice), roundingFloor<Real>());
}

TYPED_TEST(DeviceArrays, ReplaysFollowTheMotion)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const std::string box : { "cube", "triclinic", "octahedron" })
        {
            System water = rounded<Real>(pseudoWater(namedBox(box, 8.0), 91));
            Caller<Real> caller(water, TestFixture::optionsWith(engine));
            caller.enqueue(forcesAt(0));
            // mdrun has two, in turn
            std::unique_ptr<Graph> graphs[2];
            for (int step = 1; step < 7; ++step)
            {
                SCOPED_TRACE(describe(water, caller.setup()) + ", step " + std::to_string(step));
                water = rounded<Real>(moved(water, 0.05, step));
                caller.put(water);
                if (step == 4)
                {
                    // not a graph: energies are wanted
                    Request request = forcesAt(step);
                    request.energy  = true;
                    caller.enqueue(request);
                    const Evaluation reference = ewald(water);
                    EXPECT_NEAR(caller.wait().energy,
                                reference.energy,
                                boundsFor<Real>(water, caller.setup(), reference).energy);
                }
                else
                {
                    auto& graph = graphs[step % 2];
                    if (!graph)
                    {
                        graph = caller.record(forcesAt(step));
                    }
                    caller.launch(*graph);
                }
                TestFixture::expectForces(caller, water);
            }
            EXPECT_NO_THROW(caller.wait());
        }
    }
}

//! New charges and excluded pairs wait for replays that are under way. The next replay has the
//! charges; where other pairs count, or fewer particles take part, it is to be recorded again.
TYPED_TEST(DeviceArrays, ReplaysFollowChargesAndExclusions)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const System water = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 98));
        System weaker      = water;
        for (int i = 0; i < weaker.size(); ++i)
        {
            weaker.charges[i] *= (i / 3 % 7 == 0) ? -0.5 : 0.75; // molecules stay neutral
        }
        weaker              = rounded<Real>(weaker);
        System lessExcluded = weaker;
        lessExcluded.exclusions.resize(water.exclusions.size() / 2);
        System partly = lessExcluded;
        for (int i = 0; i < partly.size(); i += 3)
        {
            partly.charges[i] = 0;
        }
        Caller<Real> caller(water, TestFixture::optionsWith(engine));
        Solver<Real>& solver = caller.solver();
        caller.enqueue(forcesAt(0));
        auto graph = caller.record(forcesAt(1));
        // many at once: the last is still to come when something is set
        const auto startMany = [&]
        {
            for (int k = 0; k < 20; ++k)
            {
                caller.start(*graph);
            }
        };
        const auto recordAgain = [&](long long step)
        {
            EXPECT_TRUE(mustRecordAgain(solver)) << "step " << step;
            caller.enqueue(forcesAt(step));
            graph = caller.record(forcesAt(step + 1));
            EXPECT_FALSE(mustRecordAgain(solver)) << "step " << step;
        };
        startMany();
        loadCharges(solver, weaker);
        TestFixture::expectForces(caller, water);
        EXPECT_FALSE(mustRecordAgain(solver));
        startMany();
        load(solver, lessExcluded);
        TestFixture::expectForces(caller, weaker);
        recordAgain(100);
        startMany();
        loadCharges(solver, partly);
        TestFixture::expectForces(caller, lessExcluded);
        recordAgain(200);
        startMany();
        load(solver, water);
        TestFixture::expectForces(caller, partly);
        for (int i = 0; i < partly.size(); i += 3)
        {
            EXPECT_EQ(caller.forces()[i], (Vector{ 0, 0, 0 }));
        }
        recordAgain(300);
        startMany();
        TestFixture::expectForces(caller, water);
    }
}

//! A net charge is part of what is recorded.
TYPED_TEST(DeviceArrays, ReplaysFollowTheNetCharge)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const System water = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 98));
        System charged     = water;
        for (int i = 0; i < charged.size(); ++i)
        {
            charged.charges[i] += 0.1;
        }
        charged = rounded<Real>(charged);
        Caller<Real> caller(water, TestFixture::optionsWith(engine));
        caller.enqueue(forcesAt(0));
        const auto before = caller.record(forcesAt(1));
        loadCharges(caller.solver(), charged);
        EXPECT_TRUE(mustRecordAgain(caller.solver()));
        caller.enqueue(forcesAt(2));
        const auto graph = caller.record(forcesAt(3));
        EXPECT_FALSE(mustRecordAgain(caller.solver()));
        caller.launch(*graph);
        TestFixture::expectForces(caller, charged);
    }
}

/*! \brief Evaluations that are put into a stream one after the other, each with what changed before
 *         it: the second like another becomes a graph, which must not outlive what it holds. */
TYPED_TEST(DeviceArrays, RepeatedEvaluationsFollowWhatChanges)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        System water    = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 99));
        Options options = TestFixture::optionsWith(engine);
        Caller<Real> caller(water, options);
        Solver<Real> host(options);
        load(host, water);
        long long step          = 0;
        const auto evaluateSome = [&](const std::string& changed, int count)
        {
            for (int k = 0; k < count; ++k)
            {
                SCOPED_TRACE(changed + ", step " + std::to_string(step));
                water = rounded<Real>(moved(water, 0.02, static_cast<int>(step)));
                caller.put(water);
                Request request = forcesAt(step);
                caller.enqueue(request);
                const std::vector<Vector> found = caller.forces();
                request.energy                  = true;
                const Evaluation wanted         = evaluate(host, water, request);
                EXPECT_LE(relativeError(found, wanted.forces), roundingFloor<Real>());
                ++step;
            }
        };
        evaluateSome("nothing", 5);
        for (const double factor : { 1.001, 1.002, 1.004 })
        {
            for (auto& row : water.box)
            {
                for (double& element : row)
                {
                    element *= 1 + 0.1 * (factor - 1);
                }
            }
            water = rounded<Real>(water);
            evaluateSome("box", 3);
        }
        water.box[0][0] *= 1.002;
        evaluateSome("shape of the box", 3);
        for (Solver<Real>* solver : { &caller.solver(), &host })
        {
            System charged = water;
            for (int i = 0; i < charged.size(); ++i)
            {
                charged.charges[i] += (i % 2 == 0) ? 0.1 : 0.05;
            }
            loadCharges(*solver, rounded<Real>(charged));
        }
        evaluateSome("net charge", 3);
        System lessExcluded = water;
        lessExcluded.exclusions.resize(water.exclusions.size() / 2);
        for (Solver<Real>* solver : { &caller.solver(), &host })
        {
            load(*solver, lessExcluded);
        }
        evaluateSome("excluded pairs", 3);
        Request energies = forcesAt(step);
        energies.energy = energies.virial = true;
        caller.enqueue(energies);
        const Totals totals     = caller.wait();
        const Evaluation wanted = evaluate(host, water, energies);
        EXPECT_NEAR(totals.energy, wanted.energy, pairRounding<Real>(water));
        ++step;
        evaluateSome("energies", 3);
        step += 10;
        evaluateSome("steps that do not follow", 3);
        caller.solver().prepare(flatPositions<Real>(water).data(), Box(water.box).rows);
        evaluateSome("preparation", 3);
        EXPECT_NO_THROW(caller.wait());
    }
}

//! Nothing is left to be set up, and nothing counts as an evaluation.
TYPED_TEST(DeviceArrays, CanBeRecordedAfterPreparing)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 96));
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Caller<Real> caller(water, TestFixture::optionsWith(engine));
        caller.prepare(water);
        EXPECT_TRUE(caller.stagesTimed().empty());
        const auto graph = caller.record(forcesAt(0));
        caller.launch(*graph);
        TestFixture::expectForces(caller, water);
    }
}

//! The grid of a replay is that of the same step evaluated at once: equal but for rounding.
TYPED_TEST(DeviceArrays, ReplaysHaveTheGridOfTheirStep)
{
    using Real            = typename TypeParam::Real;
    const System water    = rounded<Real>(pseudoWater(namedBox("triclinic", 8.0), 92));
    const Options options = TestFixture::optionsWith(M2lEngine::Fft);
    Caller<Real> atOnce(water, options), caller(water, options);
    caller.enqueue(forcesAt(7));
    const auto graph = caller.record(forcesAt(8));
    for (int step = 8; step < 12; ++step)
    {
        atOnce.enqueue(forcesAt(step));
        atOnce.wait();
        caller.launch(*graph);
        EXPECT_LE(relativeError(caller.forces(), atOnce.forces()), roundingFloor<Real>())
                << "step " << step;
    }
    atOnce.enqueue(forcesAt(6));
    atOnce.wait();
    EXPECT_GT(relativeError(caller.forces(), atOnce.forces()), 1e-5) << "another grid";
}

TYPED_TEST(DeviceArrays, ReplaysCanBeReproducible)
{
    using Real           = typename TypeParam::Real;
    const System water   = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 94));
    Options options      = TestFixture::optionsWith(M2lEngine::Fft);
    options.reproducible = true;
    std::vector<std::vector<Vector>> first, again;
    for (auto* all : { &first, &again })
    {
        Caller<Real> caller(water, options);
        caller.enqueue(forcesAt(0));
        const auto graph = caller.record(forcesAt(1));
        System now       = water;
        for (int step = 1; step < 4; ++step)
        {
            now = rounded<Real>(moved(now, 0.05, step));
            caller.put(now);
            caller.launch(*graph);
            all->push_back(caller.forces());
        }
    }
    EXPECT_EQ(first, again);
}

//! An evaluation that was refused leaves the solver as it was.
TYPED_TEST(DeviceArrays, CanBeFollowedByHostArraysAfterAnError)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 97));
    Caller<Real> caller(water, TestFixture::optionsWith(M2lEngine::Fft));
    const Evaluation before = evaluate(caller.solver(), water);
    Request outside;
    outside.gridOffset = { 0, 2, 0 };
    EXPECT_THROW(caller.enqueue(outside), Error);
    const Evaluation after = evaluate(caller.solver(), water);
    EXPECT_LE(relativeError(after.forces, before.forces), roundingFloor<Real>());
}

//! What a replay meets is told by wait(), and the next evaluation is right again.
TYPED_TEST(DeviceArrays, TellOfPositionsThatAreNotFinite)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 95));
    Caller<Real> caller(water, TestFixture::optionsWith(M2lEngine::Fft));
    caller.enqueue(forcesAt(0));
    const auto graph        = caller.record(forcesAt(1));
    System broken           = water;
    broken.positions[17][1] = std::numeric_limits<double>::quiet_NaN();
    caller.put(broken);
    caller.launch(*graph);
    expectError(
            ErrorCode::InvalidArgument, { "particle 17 is not finite" }, [&] { caller.wait(); });
    caller.put(water);
    caller.launch(*graph);
    EXPECT_NO_THROW(caller.wait());
    TestFixture::expectForces(caller, water);
}

/*! Ions that began anywhere have settled: the evaluation that meets weaker forces is under way, so that
 *  the one after wait() looks at the cells again, and what was recorded before ends. */
TYPED_TEST(DeviceArrays, MeetTheAccuracyAfterForcesHaveChanged)
{
    using Real              = typename TypeParam::Real;
    const SettlingIons ions = settlingIons();
    const System settled = rounded<Real>(ions.settled), start = rounded<Real>(ions.start);
    Options options  = TypeParam::options();
    options.accuracy = 1e-3;
    options.tune     = false;
    Caller<Real> caller(start, options);
    Solver<Real>& solver = caller.solver();
    caller.prepare(start);
    caller.put(settled);
    caller.enqueue(forcesAt(0));
    EXPECT_FALSE(mustRecordAgain(solver));
    caller.wait();
    const std::vector<Vector> exact = fastEwald(settled).forces;
    EXPECT_GT(relativeError(caller.forces(), exact), options.accuracy);
    EXPECT_TRUE(mustRecordAgain(solver));
    caller.enqueue(forcesAt(1));
    EXPECT_FALSE(mustRecordAgain(solver));
    caller.wait();
    EXPECT_FALSE(mustRecordAgain(solver));
    EXPECT_LE(relativeError(caller.forces(), exact), options.accuracy);
}

//! Not those that hold products of cuBLAS: see farfield_cuda.h.
TYPED_TEST(DeviceArrays, TellWhichGraphsMayBeUpdated)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 90));
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Caller<Real> caller(water, TestFixture::optionsWith(engine));
        caller.enqueue(forcesAt(0));
        EXPECT_EQ(mayUpdateGraphs(caller.solver()), caller.setup().levels == 1);
        caller.wait();
    }
}

} // namespace
} // namespace test
} // namespace farfield
