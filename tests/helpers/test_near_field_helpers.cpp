/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Helpers of a GPU for the near field give what it gives alone.
 *
 *  The device helps itself, so that one is enough: all but the access to the memory of another is
 *  tested. Where there are several devices, the others help, too.
 */
#include <cmath>

#include <memory>
#include <string>
#include <vector>

#include "box_matrix.h"
#include "cells/cell_shape.h"
#include "device_caller.h"
#include "near_field_helping.h"
#include "plan/near_field_shares.h"

namespace farfield
{
namespace test
{
namespace
{

TYPED_TEST_SUITE(NearFieldHelping, GpuConfigurations);

TYPED_TEST(NearFieldHelping, GivesWhatOneDeviceGives)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const std::string box : { "cube", "triclinic", "octahedron" })
        {
            if (engine == M2lEngine::Hierarchy && box != "triclinic")
            {
                continue;
            }
            const System water = TestFixture::waterAt(box, 0);
            Solver<Real> alone(TestFixture::optionsWith(engine, {}));
            load(alone, water);
            const Evaluation wanted = evaluate(alone, water);
            EXPECT_TRUE(alone.setup().helpers.empty());
            for (const DeviceList& helpers : TestFixture::helpers())
            {
                SCOPED_TRACE(box + ", " + nameOf(engine) + ", " + std::to_string(helpers.size())
                             + " helpers");
                Solver<Real> helped(TestFixture::optionsWith(engine, helpers));
                load(helped, water);
                for (int repeat = 0; repeat < 3; ++repeat)
                {
                    TestFixture::expectSame(evaluate(helped, water), wanted, water);
                }
                EXPECT_EQ(static_cast<int>(helped.setup().helpers.size()), helpers.size());
            }
        }
    }
}

//! Steps one by one, as the graphs that the solver and that the caller records, with a box that
//! changes, and with totals now and then.
TYPED_TEST(NearFieldHelping, FollowsTheMotion)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const DeviceList& helpers : TestFixture::helpers())
        {
            System water = TestFixture::waterAt("triclinic", 0);
            Caller<Real> helped(water, TestFixture::optionsWith(engine, helpers));
            Solver<Real> alone(TestFixture::optionsWith(engine, {}));
            load(alone, water);
            std::unique_ptr<Graph> graph;
            for (int step = 0; step < 24; ++step)
            {
                SCOPED_TRACE(std::string(nameOf(engine)) + ", step " + std::to_string(step));
                const Matrix box = water.box;
                water            = TestFixture::waterAt("triclinic", step);
                water.box        = box;
                if (step == 8 || step == 9)
                {
                    for (auto& row : water.box)
                    {
                        for (double& element : row)
                        {
                            element *= 1.0005;
                        }
                    }
                    water = rounded<Real>(water);
                    graph.reset();
                }
                helped.put(water);
                Request request = forcesAt(step);
                request.energy = request.virial = step % 6 == 4;
                const bool replays              = step >= 12;
                if (replays && !request.energy)
                {
                    if (!graph || mustRecordAgain(helped.solver()))
                    {
                        graph = helped.record(request);
                    }
                    helped.launch(*graph);
                }
                else
                {
                    helped.enqueue(request);
                }
                const std::vector<Vector> forces = helped.forces();
                const Totals totals              = helped.wait();
                Request onHost                   = request;
                onHost.energy = onHost.virial = true;
                const Evaluation wanted       = evaluate(alone, water, onHost);
                TestFixture::expectForces(forces, wanted.forces);
                if (request.energy)
                {
                    EXPECT_NEAR(totals.energy, wanted.energy, pairRounding<Real>(water));
                    EXPECT_LE(largestDifference(evaluationOf(totals, std::vector<Real>()).virial,
                                                wanted.virial),
                              pairRounding<Real>(water));
                }
            }
        }
    }
}

//! Replays of one graph, while the shares leave what they begin with: see tests/unit for the rule.
TYPED_TEST(NearFieldHelping, SharesFollowTheTimes)
{
    using Real            = typename TypeParam::Real;
    const System water    = TestFixture::waterAt("cube", 0);
    const Options options = TestFixture::optionsWith(M2lEngine::Fft, {});
    Caller<Real> alone(water, options);
    for (const DeviceList& helpers : TestFixture::helpers())
    {
        Caller<Real> helped(water, TestFixture::optionsWith(M2lEngine::Fft, helpers));
        helped.enqueue(forcesAt(0));
        const auto graph = helped.record(forcesAt(1));
        for (int step = 1; step < 200; ++step)
        {
            helped.launch(*graph);
            if (step % 20 == 0)
            {
                alone.enqueue(forcesAt(step));
                TestFixture::expectForces(helped.forces(), alone.forces());
            }
        }
        const std::vector<HelperDevice> after = helped.setup().helpers;
        const ShareState first                = firstShares(helpers.size());
        ASSERT_EQ(static_cast<int>(after.size()), helpers.size());
        double sum = 0, moved = 0;
        for (size_t h = 0; h < after.size(); ++h)
        {
            EXPECT_EQ(after[h].deviceId, helpers.begin()[h]);
            EXPECT_GT(after[h].share, 0);
            sum += after[h].share;
            moved += std::abs(after[h].share - first.share[h]);
        }
        EXPECT_LE(sum, 1 + 1e-9);
        EXPECT_GT(moved, 0);
        EXPECT_NO_THROW(helped.wait());
    }
}

//! The solver's GPU measures stages without helpers: replays after that are those of all again.
TYPED_TEST(NearFieldHelping, FollowsTheGridAfterMeasurements)
{
    using Real            = typename TypeParam::Real;
    const System water    = TestFixture::waterAt("cube", 0);
    const Options options = TestFixture::optionsWith(M2lEngine::Fft, {});
    const Box box(water.box);
    for (const DeviceList& helpers : TestFixture::helpers())
    {
        Caller<Real> alone(water, options),
                helped(water, TestFixture::optionsWith(M2lEngine::Fft, helpers));
        DeviceArray<Real> x(flatPositions<Real>(water)), f(flatPositions<Real>(water));
        std::unique_ptr<Graph> ofOne, ofAll;
        for (int step = 1; step < 10; ++step)
        {
            for (Caller<Real>* caller : { &alone, &helped })
            {
                std::unique_ptr<Graph>& graph = caller == &alone ? ofOne : ofAll;
                if (step == 1)
                {
                    caller->enqueue(forcesAt(0));
                }
                if (step == 5)
                {
                    measureStages(caller->solver(), x.data(), box.rows, f.data(), forcesAt(70), 3);
                }
                if (!graph || mustRecordAgain(caller->solver()))
                {
                    graph = caller->record(forcesAt(step));
                }
                caller->launch(*graph);
            }
            SCOPED_TRACE(step);
            TestFixture::expectForces(helped.forces(), alone.forces());
        }
    }
}

//! What is timed is without helpers, with the first and with all; the fastest is taken, by a margin.
TYPED_TEST(NearFieldHelping, IsLeftOutWhereItIsSlower)
{
    using Real         = typename TypeParam::Real;
    const System water = TestFixture::waterAt("cube", 0);
    for (const DeviceList& helpers : TestFixture::helpers())
    {
        Options options         = TestFixture::optionsWith(M2lEngine::Fft, helpers);
        options.helpersIfFaster = true;
        Solver<Real> untimed(options);
        load(untimed, water);
        const Evaluation wanted = evaluate(untimed, water);
        EXPECT_TRUE(untimed.setup().helpers.empty());
        EXPECT_TRUE(untimed.setup().timed.empty());

        options.tune = true;
        Solver<Real> timed(options), continued(options);
        continued.restore(untimed.state());
        load(continued, water);
        TestFixture::expectSame(evaluate(continued, water), wanted, water);
        load(timed, water);
        TestFixture::expectAsOneDevice(timed, water);
        const size_t kinds = helpers.size() == 1 ? 2 : 3;
        EXPECT_EQ(continued.setup().timed.size(), kinds);
        for (const Solver<Real>* solver : { &timed, &continued })
        {
            const Setup setup = solver->setup();
            EXPECT_EQ(setup.helpersLost, "");
            ASSERT_GE(setup.timed.size(), kinds);
            EXPECT_EQ(setup.timed.size() % kinds, 0U);
            int inUse = 0;
            for (const TimedSetting& one : setup.timed)
            {
                EXPECT_GT(one.seconds, 0);
                inUse += one.isInUse ? 1 : 0;
                if (one.isInUse)
                {
                    EXPECT_EQ(one.helpers, static_cast<int>(setup.helpers.size()));
                }
            }
            EXPECT_EQ(inUse, 1);
            EXPECT_EQ(setup.timed.front().helpers, 0);
            EXPECT_EQ(setup.timed[1].helpers, 1);
            EXPECT_EQ(setup.timed.back().helpers, helpers.size());
        }
    }
}

//! Helpers that are added later compute what the others do. What was recorded with helpers that are
//! lost may still be launched.
TYPED_TEST(NearFieldHelping, CanBeAddedAndLost)
{
    using Real         = typename TypeParam::Real;
    const System water = TestFixture::waterAt("cube", 0);
    const std::vector<Real> q(water.charges.begin(), water.charges.end()),
            x = flatPositions<Real>(water);
    std::vector<int> offsets, partners;
    compressedRows(water, true, &offsets, &partners);
    Discretisation d;
    d.order                 = 8;
    d.ws                    = 1;
    d.levels                = 1;
    d.engine                = M2lEngine::Fft;
    d.referenceBox          = matrixOf(water.box);
    d.leafCells             = chooseCells(d.referenceBox, 0.5, d.ws, 1);
    Options options         = TestFixture::optionsWith(M2lEngine::Fft, { 0, 0, 0 });
    options.helpersIfFaster = true;
    options.tune            = true;
    Evaluator<Real> helped(options), alone(TestFixture::optionsWith(M2lEngine::Fft, {}));
    for (Evaluator<Real>* one : { &helped, &alone })
    {
        one->backend().setCharges(q.data(), water.size());
        one->backend().setExclusions(offsets.data(), partners.data(), water.size());
        one->operators().change([&] { one->operators().build(d); });
    }
    const auto run = [&](Evaluator<Real>& one)
    {
        std::vector<Real> forces(x.size());
        Request request;
        request.replaceForces = true;
        const Totals totals =
                one.pipeline().run({ x.data(), nullptr, forces.data(), nullptr, request });
        return evaluationOf(totals, forces);
    };
    GpuBackend<Real>& gpu   = helped.onDevice();
    const Evaluation wanted = run(alone);
    for (const int count : { 1, 3, 2, 0, 3 })
    {
        SCOPED_TRACE(count);
        gpu.useHelpers(count);
        EXPECT_EQ(static_cast<int>(gpu.helpers().size()), count);
        TestFixture::expectSame(run(helped), wanted, water);
    }

    DeviceArray<Real> there(x);
    DeviceArray<Real> forces(x.size()), ofOne(x.size());
    const Clock clock;
    const auto enqueue = [&](Evaluator<Real>& one, DeviceArray<Real>& to, int step)
    {
        one.pipeline().enqueue(
                { there.data(), nullptr, to.data(), nullptr, forcesAt(step), clock.stream() });
    };
    const auto expectStep = [&](int step)
    {
        SCOPED_TRACE(step);
        enqueue(alone, ofOne, step);
        checkCuda(cudaDeviceSynchronize(), "waiting for the GPU");
        TestFixture::expectForces(vectorsOf(forces.get()), vectorsOf(ofOne.get()));
    };
    enqueue(helped, forces, 0);
    expectStep(0);
    const Graph graph(clock.stream(), [&] { enqueue(helped, forces, 1); });
    for (int step = 1; step < 6; ++step)
    {
        if (step == 3)
        {
            gpu.loseHelpers("they are gone");
            EXPECT_EQ(gpu.helperCount(), 0);
            EXPECT_TRUE(gpu.helpers().empty());
            EXPECT_EQ(gpu.helpersLost(), "they are gone");
            EXPECT_TRUE(gpu.mustRecordAgain());
        }
        graph.launch(clock.stream());
        expectStep(step);
    }
    enqueue(helped, forces, 6);
    expectStep(6);
    graph.launch(clock.stream());
    expectStep(7);
    helped.operators().change([&] { helped.operators().build(d); });
    TestFixture::expectSame(run(helped), wanted, water);
}

//! One that cannot help is left out; the others are timed.
TYPED_TEST(NearFieldHelping, DoesWithoutDevicesThatCannotHelp)
{
    using Real              = typename TypeParam::Real;
    const System water      = TestFixture::waterAt("cube", 0);
    Options options         = TestFixture::optionsWith(M2lEngine::Fft, { 0, 77 });
    options.helpersIfFaster = true;
    options.tune            = true;
    Solver<Real> solver(options);
    load(solver, water);
    TestFixture::expectAsOneDevice(solver, water);
    const Setup setup = solver.setup();
    EXPECT_NE(setup.helpersLost.find("helper device 77 does not exist"), std::string::npos);
    ASSERT_GE(setup.timed.size(), 2U);
    EXPECT_EQ(setup.timed[0].helpers, 0);
    EXPECT_EQ(setup.timed[1].helpers, 1);
}

//! Every force is that of one device, whatever the shares are.
TYPED_TEST(NearFieldHelping, CanBeReproducible)
{
    using Real           = typename TypeParam::Real;
    const System water   = TestFixture::waterAt("octahedron", 0);
    Options options      = TestFixture::optionsWith(M2lEngine::Fft, {});
    options.reproducible = true;
    Solver<Real> alone(options);
    load(alone, water);
    const Evaluation wanted = evaluate(alone, water);
    for (const DeviceList& helpers : TestFixture::helpers())
    {
        options.helperDevices = helpers;
        Evaluation first;
        for (int run = 0; run < 2; ++run)
        {
            Solver<Real> helped(options);
            load(helped, water);
            for (int repeat = 0; repeat < 2; ++repeat)
            {
                const Evaluation result = evaluate(helped, water);
                EXPECT_EQ(result.forces, wanted.forces);
                if (run + repeat == 0)
                {
                    first = result;
                }
                expectSameBits(result, first);
            }
        }
    }
}

TEST(NearFieldHelpers, AreRefusedWhereTheyCannotBe)
{
    const std::string reason = whyUnavailable(Device::Gpu);
    if (!reason.empty())
    {
        GTEST_SKIP() << reason;
    }
    const bool before = letDevicesHelpThemselves(false);
    int devices       = 0;
    checkCuda(cudaGetDeviceCount(&devices), "counting devices");
    const auto refuses =
            [](ErrorCode code, const std::vector<std::string>& words, const DeviceList& helpers)
    {
        Options options;
        options.device        = Device::Gpu;
        options.deviceId      = 0;
        options.helperDevices = helpers;
        expectError(code, words, [&] { const Solver<float> solver(options); });
    };
    refuses(ErrorCode::InvalidArgument, { "helper device 0", "solver itself" }, { 0 });
    refuses(ErrorCode::InvalidArgument, { "helper device 77", "twice" }, { 77, 77 });
    refuses(ErrorCode::InvalidArgument,
            { "helper device " + std::to_string(devices) },
            { devices });
    refuses(ErrorCode::InvalidArgument,
            { "8 helper devices", "at most 7" },
            { 1, 2, 3, 4, 5, 6, 7, 8 });
    Options onCpu;
    onCpu.device        = Device::Cpu;
    onCpu.helperDevices = { 1 };
    expectError(ErrorCode::Unsupported,
                { "helper devices", "cpu" },
                [&] { const Solver<float> solver(onCpu); });
    Options ifFaster         = onCpu;
    ifFaster.device          = Device::Gpu;
    ifFaster.deviceId        = 0;
    ifFaster.helperDevices   = { devices };
    ifFaster.helpersIfFaster = true;
    ifFaster.tune            = true;
    const Solver<float> without(ifFaster);
    EXPECT_TRUE(without.setup().helpers.empty());
    EXPECT_NE(without.setup().helpersLost.find("does not exist"), std::string::npos);
    letDevicesHelpThemselves(before);
}

} // namespace
} // namespace test
} // namespace farfield
