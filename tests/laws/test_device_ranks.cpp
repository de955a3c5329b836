/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems on the GPUs of several ranks, with arrays in device memory: the results of one.
 */
#include "farfield/farfield_cuda.h"

#include <cmath>

#include <array>
#include <memory>
#include <utility>

#include "changing_systems.h"
#include "device_caller.h"
#include "device_messages.h"
#include "in_process_ranks.h"
#include "traffic_of_ranks.h"

namespace farfield
{
namespace test
{
namespace
{

/*! \brief Evaluates the states on arrays in device memory, each rank with its particles.
 *  \param[in] replan  the steps before which ranks get their particles again
 *  \param[in] replays whether steps without totals are graphs, two in turn, as in mdrun
 *  \returns forces, and totals where requests(step) asks for them */
template<class Real, class Requests>
std::vector<Evaluation> enqueueOnRanks(const std::vector<System>& states,
                                       int ranks,
                                       Way way,
                                       const Options& given,
                                       const Requests& requests,
                                       const std::vector<double>& state,
                                       int replan,
                                       bool replays = false)
{
    std::vector<Evaluation> all(states.size());
    for (size_t k = 0; k < states.size(); k++)
    {
        all[k].forces.resize(states[k].size());
    }
    std::mutex mutex;
    onRanks(ranks,
            [&](Communicator& communicator)
            {
                Options options  = given;
                options.deviceId = way == Way::Hosts ? -1 : communicator.rank();
                const std::unique_ptr<DeviceCommunicator> between = connected(way, &communicator);
                ASSERT_EQ(between != nullptr, way != Way::Hosts);
                DistributedSolver<Real> solver(options, &communicator, between.get());
                solver.restore(state);
                const Portion<Real> portion(
                        states[0], domains(states[0], ranks), communicator.rank());
                const Clock clock;
                DeviceArray<Real> x(3 * portion.index.size()), f(3 * portion.index.size());
                std::unique_ptr<Graph> graphs[2];
                for (size_t k = 0; k < states.size(); k++)
                {
                    if (k % replan == 0)
                    {
                        portion.giveTo(&solver);
                    }
                    const Request request = requests(k);
                    x.put(portion.positions(states[k]));
                    const auto put = [&] {
                        enqueue(solver,
                                x.data(),
                                Box(states[k].box).rows,
                                f.data(),
                                request,
                                clock.stream());
                    };
                    if (mustRecordAgain(solver))
                    {
                        graphs[0].reset();
                        graphs[1].reset();
                    }
                    if (replays && k % replan != 0 && !request.energy && !request.virial)
                    {
                        std::unique_ptr<Graph>& graph = graphs[k % 2];
                        if (!graph)
                        {
                            graph = std::make_unique<Graph>(clock.stream(), put);
                        }
                        graph->launch(clock.stream());
                    }
                    else
                    {
                        put();
                    }
                    checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for the GPU");
                    const Totals totals   = wait(solver);
                    const Evaluation part = evaluationOf(totals, f.get());
                    const std::lock_guard<std::mutex> lock(mutex);
                    all[k].energy += part.energy;
                    for (size_t i = 0; i < portion.index.size(); i++)
                    {
                        all[k].forces[portion.index[i]] = part.forces[i];
                    }
                    for (int i = 0; i < 9; i++)
                    {
                        all[k].virial[i / 3][i % 3] += part.virial[i / 3][i % 3];
                    }
                }
            });
    return all;
}

//! Evaluations of a run: totals at every third step.
Request requestAt(size_t step)
{
    Request request = forcesAt(20 + static_cast<long long>(step));
    request.energy  = step % 3 == 0;
    request.virial  = step % 6 == 0;
    return request;
}

template<class Config>
class DeviceRanks : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options options()
    {
        Options result = Config::options();
        result.m2l     = M2lEngine::Fft;
        result.threads = 1;
        return result;
    }
    //! A run on ranks, compared with one rank at every step.
    static void expectRunOfOne(const System& start, int ranks, Way way, bool replays = false)
    {
        const std::vector<System> exact = trajectory(start, 12, 0.02);
        std::vector<System> states;
        for (const System& s : exact)
        {
            states.push_back(rounded<Real>(s));
        }
        Solver<Real> single(options());
        load(single, states[0]);
        evaluate(single, states[0]);
        const auto all = enqueueOnRanks<Real>(
                states, ranks, way, options(), requestAt, single.state(), 8, replays);
        for (size_t k = 0; k < states.size(); k++)
        {
            SCOPED_TRACE(describe(states[k], single.setup()) + ", step " + std::to_string(k)
                         + ", ranks " + std::to_string(ranks));
            expectEqualToRounding<Real>(
                    all[k], evaluate(single, states[k], requestAt(k)), states[k]);
        }
    }
    /*! \brief The same where some particles go far, by a part of a cell each step, and ranks keep theirs.
     *  \param[in] parts  of a cell */
    static void expectDriftOfOne(int ranks, Way way, int steps, int parts, bool replays = false)
    {
        std::vector<System> states = { rounded<Real>(
                pseudoWater(namedBox("triclinic", 10.0), 44)) };
        // with an order that stands cells are the same although molecules come to overlap
        Options own = options();
        own.order   = 8;
        Solver<Real> single(own);
        load(single, states[0]);
        evaluate(single, states[0]);
        while (static_cast<int>(states.size()) < steps)
        {
            states.push_back(states.back());
            for (int i = 0; i < states[0].size(); i += 7)
            {
                states.back().positions[i][i % 3] += single.setup().cellSize / parts;
            }
            states.back() = rounded<Real>(states.back());
        }
        const auto all = enqueueOnRanks<Real>(
                states, ranks, way, own, requestAt, single.state(), steps, replays);
        for (int k = 0; k < steps; k++)
        {
            SCOPED_TRACE("step " + std::to_string(k));
            expectEqualToRounding<Real>(
                    all[k], evaluate(single, states[k], requestAt(k)), states[k]);
        }
    }
};
TYPED_TEST_SUITE(DeviceRanks, GpuConfigurations);

TYPED_TEST(DeviceRanks, RunAsOneDoes)
{
    const System water = pseudoWater(namedBox("cube", 12.0), 40);
    System charged     = water;
    for (int i = 0; i < charged.size(); i += 50)
    {
        charged.charges[i] += 0.5;
    }
    TestFixture::expectRunOfOne(water, 2, Way::Hosts);
    TestFixture::expectRunOfOne(charged, 3, Way::Hosts);
    TestFixture::expectRunOfOne(pseudoWater(namedBox("triclinic", 12.0), 40), 2, Way::Hosts);
    TestFixture::expectRunOfOne(
            pseudoWater(namedBox("dodecahedron_square", 10.0), 41), 3, Way::Hosts);
    // ranks that have no particles, or neighbours of others through vacuum alone
    TestFixture::expectRunOfOne(inVacuum(namedBox("cube", 8.0), { 1, 4, 1 }), 3, Way::Hosts);
    TestFixture::expectRunOfOne(inVacuum(namedBox("flat", 10.0), { 1, 1, 4 }), 4, Way::Hosts);
}

//! There are more ranks than coefficients, four, and than cells along an axis, three.
TYPED_TEST(DeviceRanks, RunAsOneDoesWithFewCellsAndCoefficients)
{
    using Real           = typename TypeParam::Real;
    const System water   = rounded<Real>(pseudoWater(namedBox("cube", 1.8 * 1.8 * 1.8), 46));
    Options options      = TestFixture::options();
    options.order        = 1;
    options.directRange  = 1;
    options.cellSize     = 0.6;
    constexpr int c_many = 6;
    Solver<Real> single(options);
    load(single, water);
    const Evaluation expected = evaluate(single, water, requestAt(0));
    ASSERT_EQ(single.setup().leafCells, 3 * 3 * 3);
    const auto all = enqueueOnRanks<Real>(
            { water }, c_many, Way::Hosts, options, requestAt, single.state(), 1);
    expectEqualToRounding<Real>(all[0], expected, water);
}

TYPED_TEST(DeviceRanks, RunAsOneDoesOverNccl)
{
#ifndef FARFIELD_TESTS_WITH_NCCL
    GTEST_SKIP() << "built without NCCL";
#endif
    if (gpus() < 2)
    {
        GTEST_SKIP() << "there are no two GPUs";
    }
    for (const std::string box : { "cube", "triclinic" })
    {
        TestFixture::expectRunOfOne(pseudoWater(namedBox(box, 12.0), 42), 2, Way::Nccl);
    }
}

TYPED_TEST(DeviceRanks, PlanAnewWhereParticlesMoveFarBitByBit)
{
    TestFixture::expectDriftOfOne(3, Way::Hosts, 40, 16);
}

TYPED_TEST(DeviceRanks, RunAsOneDoesThroughEachOthersMemory)
{
    if (gpus() < 2)
    {
        GTEST_SKIP() << "fewer than two GPUs";
    }
    for (const char* box : { "cube", "triclinic" })
    {
        TestFixture::expectRunOfOne(pseudoWater(namedBox(box, 12.0), 42), 2, Way::Peers);
    }
    // the second rank has no particles
    TestFixture::expectRunOfOne(inVacuum(namedBox("cube", 8.0), { 1, 4, 1 }), 2, Way::Peers);
}

TYPED_TEST(DeviceRanks, ReplaysRunAsOneDoes)
{
    if (gpus() < 2)
    {
        GTEST_SKIP() << "fewer than two GPUs";
    }
    const System water = pseudoWater(namedBox("triclinic", 12.0), 45);
    TestFixture::expectRunOfOne(water, 2, Way::Peers, true);
#ifdef FARFIELD_TESTS_WITH_NCCL
    TestFixture::expectRunOfOne(water, 2, Way::Nccl, true);
#endif
}

//! The steps with totals, one in three, are not replayed, and look how far particles have moved.
TYPED_TEST(DeviceRanks, ReplaysFollowNewPlans)
{
    if (gpus() < 2)
    {
        GTEST_SKIP() << "fewer than two GPUs";
    }
    TestFixture::expectDriftOfOne(2, Way::Peers, 120, 64, true);
}

/*! \brief As Traffic.IsWhatTheCostModelExpects, with plans for motion of a whole cell.
 *
 *  The number that goes along with multipoles, 4 bytes of at least 60 000 in a message, is in the
 *  tolerance. */
TEST(DeviceTraffic, IsWhatTheCostModelExpects)
{
    if (gpus() == 0)
    {
        GTEST_SKIP() << "there is no GPU";
    }
    const Options options = optionsOfEvenTraffic(Device::Gpu, M2lEngine::Fft);
    for (const std::array<int, 3>& parts : { std::array<int, 3>{ 2, 1, 1 },
                                             std::array<int, 3>{ 3, 1, 1 },
                                             std::array<int, 3>{ 2, 2, 2 } })
    {
        const EvenTraffic even{ parts, EvenTraffic::c_cells };
        SCOPED_TRACE(std::to_string(even.ranks()) + " ranks");
        farfield::Setup setup;
        const Traffic sent = even.sent(
                options,
                [](Communicator& host) { return std::make_unique<ThroughHosts>(&host); },
                &setup);
        const auto per = static_cast<double>(sent.evaluations);
        EXPECT_EQ(static_cast<double>(sent.messages) / per, sent.expectedMessages);
        EXPECT_NEAR(static_cast<double>(sent.bytes) / per / sent.expectedBytes,
                    1,
                    even.tolerance(2 + 2));
    }
}

TYPED_TEST(DeviceRanks, TellOfParticlesThatHaveMovedTooFar)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 43));
    std::vector<System> states(4, water);
    Solver<Real> single(TestFixture::options());
    load(single, water);
    evaluate(single, water);
    states[3].positions[0][1] += 1.1 * single.setup().cellSize;
    expectError(ErrorCode::InvalidArgument,
                { "most of a cell", "setLocal" },
                [&]
                {
                    enqueueOnRanks<Real>(states,
                                         2,
                                         Way::Hosts,
                                         TestFixture::options(),
                                         requestAt,
                                         single.state(),
                                         100);
                });
}

/*! \brief A particle of one rank jumps: forces of all ranks are not numbers then, all of them hear of it,
 *         and after setLocal() they are right again. */
TYPED_TEST(DeviceRanks, AllKnowOfParticlesThatHaveMovedTooFar)
{
    using Real            = typename TypeParam::Real;
    constexpr int c_ranks = 3;
    const System water    = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 43));
    const Options options = TestFixture::options();
    Solver<Real> single(options);
    load(single, water);
    evaluate(single, water);
    const std::vector<double> state = single.state();
    System jumped                   = water;
    jumped.positions[0][1] += 1.1 * single.setup().cellSize;
    jumped                    = rounded<Real>(jumped);
    const Evaluation expected = evaluate(single, jumped, requestAt(3));
    for (const bool waits : { true, false })
    {
        SCOPED_TRACE(waits ? "wait()" : "enqueue()");
        Evaluation after;
        after.forces.resize(water.size());
        std::mutex mutex;
        onRanks(c_ranks,
                [&](Communicator& communicator)
                {
                    DistributedSolver<Real> solver(options, &communicator);
                    solver.restore(state);
                    const Portion<Real> portion(
                            water, domains(water, c_ranks), communicator.rank());
                    portion.giveTo(&solver);
                    const Clock clock;
                    DeviceArray<Real> x(3 * portion.index.size()), f(3 * portion.index.size());
                    const auto put = [&](const System& system, const Request& request)
                    {
                        x.put(portion.positions(system));
                        enqueue(solver,
                                x.data(),
                                Box(system.box).rows,
                                f.data(),
                                request,
                                clock.stream());
                        checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for the GPU");
                    };
                    put(water, requestAt(1));
                    put(jumped, requestAt(2));
                    for (const Real component : f.get())
                    {
                        EXPECT_TRUE(std::isnan(component));
                    }
                    expectError(ErrorCode::InvalidArgument,
                                { "most of a cell", "setLocal" },
                                [&]
                                {
                                    // at the latest by the third one after it
                                    for (int more = 0; !waits && more < 4; more++)
                                    {
                                        put(jumped, requestAt(1));
                                    }
                                    wait(solver);
                                });
                    portion.giveTo(&solver);
                    put(jumped, requestAt(3));
                    const Evaluation part = evaluationOf(wait(solver), f.get());
                    const std::lock_guard<std::mutex> lock(mutex);
                    after.energy += part.energy;
                    for (size_t i = 0; i < portion.index.size(); i++)
                    {
                        after.forces[portion.index[i]] = part.forces[i];
                    }
                    for (int i = 0; i < 9; i++)
                    {
                        after.virial[i / 3][i % 3] += part.virial[i / 3][i % 3];
                    }
                });
        expectEqualToRounding<Real>(after, expected, jumped);
    }
}

//! Forces have changed much since cells were chosen: the next plan has others.
TYPED_TEST(DeviceRanks, MeetTheAccuracyAfterForcesHaveChanged)
{
    using Real              = typename TypeParam::Real;
    const SettlingIons ions = settlingIons();
    const System settled = rounded<Real>(ions.settled), start = rounded<Real>(ions.start);
    Options options  = TestFixture::options();
    options.accuracy = 1e-3;
    options.tune     = false;
    Solver<Real> single(options);
    load(single, start);
    single.prepare(flatPositions<Real>(start).data(), Box(start.box).rows);
    const auto all = enqueueOnRanks<Real>(
            { settled, settled }, 2, Way::Hosts, options, requestAt, single.state(), 1);
    const std::vector<Vector> exact = fastEwald(settled).forces;
    EXPECT_GT(relativeError(all[0].forces, exact), options.accuracy);
    EXPECT_LE(relativeError(all[1].forces, exact), options.accuracy);
}

//! Forces that replace what was there are zero, and those that are added leave it.
TYPED_TEST(DeviceRanks, HaveNoForcesWithoutCharges)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 4.0), 47));
    System neutral     = water;
    neutral.charges.assign(water.size(), 0);
    onRanks(2,
            [&](Communicator& communicator)
            {
                DistributedSolver<Real> solver(TestFixture::options(), &communicator);
                const Clock clock;
                for (const System* system : { &water, static_cast<const System*>(&neutral) })
                {
                    const Portion<Real> portion(*system, domains(*system, 2), communicator.rank());
                    portion.giveTo(&solver);
                    DeviceArray<Real> x(3 * portion.index.size()), f(3 * portion.index.size());
                    x.put(portion.positions(*system));
                    for (const bool replaces : { false, true })
                    {
                        f.put(std::vector<Real>(3 * portion.index.size(), Real(1)));
                        Request request       = requestAt(1);
                        request.replaceForces = replaces;
                        enqueue(solver,
                                x.data(),
                                Box(system->box).rows,
                                f.data(),
                                request,
                                clock.stream());
                        checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for the GPU");
                        if (system == &neutral)
                        {
                            EXPECT_EQ(wait(solver).energy, 0);
                            EXPECT_EQ(f.get(),
                                      std::vector<Real>(3 * portion.index.size(),
                                                        replaces ? Real(0) : Real(1)));
                        }
                    }
                }
            });
}

} // namespace
} // namespace test
} // namespace farfield
