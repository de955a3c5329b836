/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The order of the stages, their times, and what a failure in one of them leaves.
 */
#include <set>

#include <gtest/gtest.h>

#include "cells/cell_shape.h"
#include "evaluation/pipeline.h"
#include "fake_backend.h"

namespace farfield
{
namespace test
{
namespace
{

using Calls = std::vector<std::string>;

class PipelineOfStages : public ::testing::Test
{
protected:
    void SetUp() override
    {
        Discretisation d;
        d.levels       = 3;
        d.referenceBox = 4 * Mat3::Identity();
        d.leafCells    = chooseCells(d.referenceBox, 0.5, 1, 4);
        operators.change([&] { operators.build(d); });
        backend.calls.clear();
    }
    void run(const Request& request = {})
    {
        pipeline.run({ nullptr, nullptr, nullptr, nullptr, request });
    }

    FakeBackend backend;
    OperatorsInUse<double> operators{ &backend };
    StageTimes times;
    Pipeline<double> pipeline{ &backend, nullptr, &operators, &times };
};

TEST_F(PipelineOfStages, GoesUpTheTreeAndDownAgain)
{
    run();
    EXPECT_EQ(backend.calls,
              Calls({ "sort",
                      "exclusions",
                      "p2p",
                      "p2m",
                      "m2m 2",
                      "m2m 1",
                      "m2l 0",
                      "l2l 0",
                      "m2l 1",
                      "l2l 1",
                      "m2l 2",
                      "l2p",
                      "collect" }));
}

TEST_F(PipelineOfStages, HasNearFunctionsBeforeTheNearField)
{
    backend.hasFunctions = true;
    run();
    EXPECT_EQ(Calls(backend.calls.begin(), backend.calls.begin() + 4),
              Calls({ "sort", "exclusions", "near function", "p2p" }));
}

TEST_F(PipelineOfStages, RepeatsWhatHadTooLittleRoom)
{
    backend.repeats = 2;
    run();
    EXPECT_EQ(std::count(backend.calls.begin(), backend.calls.end(), "collect"), 3);
}

TEST_F(PipelineOfStages, PutsTheGridWhereTheStepSays)
{
    Request request;
    request.gridOffset = { 0.25, 0.5, 0.75 };
    run(request);
    EXPECT_EQ(backend.offset, request.gridOffset);
    request.step = 7;
    run(request);
    for (int k = 0; k < 3; k++)
    {
        const double product = 7 * c_offsetSteps[k];
        EXPECT_DOUBLE_EQ(backend.offset[k], product - std::floor(product));
    }
}

TEST_F(PipelineOfStages, LosesTheOperatorsOnlyWhereAFailureMayHaveSpoiltThem)
{
    const auto buildsAfter = [&](ErrorCode code)
    {
        backend.failing = "m2m 1";
        backend.code    = code;
        EXPECT_THROW(run(), Error);
        backend.failing = "";
        backend.calls.clear();
        operators.rebuild();
        return std::count(backend.calls.begin(), backend.calls.end(), "build");
    };
    EXPECT_EQ(buildsAfter(ErrorCode::InvalidArgument), 0);
    EXPECT_EQ(buildsAfter(ErrorCode::OutOfMemory), 1);
}

TEST(StageTimes, HaveANameForEveryStage)
{
    std::set<std::string> names;
    for (int stage = 0; stage < static_cast<int>(Stage::Count); stage++)
    {
        names.insert(stageName(static_cast<Stage>(stage)));
    }
    EXPECT_EQ(names.size(), static_cast<size_t>(Stage::Count));
    EXPECT_EQ(names.count(""), 0U);
}

TEST(StageTimes, CountWhatTheCallerAsksFor)
{
    // work that takes time on any clock
    const auto work = []
    {
        const auto begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() == begin)
        {
        }
    };
    StageTimes times;
    FakeBackend backend;
    times.notCounted([&] { times.add(Stage::P2m, work); });
    EXPECT_TRUE(times.all().empty());
    times.add(Stage::SetUp, work);
    times.evaluation(backend, [&] { times.add(Stage::P2m, work); });
    ASSERT_EQ(times.all().size(), 2U);
    EXPECT_EQ(times.all()[0].name, "Set-up");
    EXPECT_EQ(times.all()[1].name, "P2M");
    EXPECT_EQ(times.all()[1].calls, 1);
    // a device that measures itself
    times.reset();
    backend.ofP2p = 0.5;
    for (int k = 0; k < 2; k++)
    {
        times.evaluation(backend, [&] { times.add(Stage::P2m, work); });
    }
    ASSERT_EQ(times.all().size(), 1U);
    EXPECT_EQ(times.all()[0].name, "P2P");
    EXPECT_EQ(times.all()[0].calls, 2);
    EXPECT_EQ(times.all()[0].seconds, 1.0);
}

} // namespace
} // namespace test
} // namespace farfield
