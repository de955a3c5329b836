/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Solvers: restored, moved, asked for what they use, tuned.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class State : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(State, Configurations);

TYPED_TEST(State, RestoresBitwise)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Auto, M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const System water   = rounded<Real>(pseudoWater(namedBox("dodecahedron_square", 8.0), 61));
        Options options      = TypeParam::options();
        options.m2l          = engine;
        options.reproducible = true;
        Solver<Real> first(options);
        EXPECT_TRUE(first.state().empty());
        load(first, water);
        evaluate(first, water);
        // The box has moved on since the operators were built.
        Matrix slight    = unitMatrix();
        slight[0][0]     = 1.0007;
        const System now = rounded<Real>(deformed(water, slight));
        evaluate(first, now);
        const std::vector<double> state = first.state();
        ASSERT_FALSE(state.empty());

        Solver<Real> second(options);
        second.restore(state);
        load(second, now);
        Matrix next       = unitMatrix();
        next[1][1]        = 1.0004;
        const System then = rounded<Real>(deformed(now, next));
        for (const System* system : { &now, &then })
        {
            expectSameBits(evaluate(first, *system), evaluate(second, *system));
        }
        EXPECT_EQ(first.setup().cells, second.setup().cells);
        EXPECT_EQ(first.setup().order, second.setup().order);
        EXPECT_EQ(first.state(), second.state());
    }
}

template<class Config>
class Solvers : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Solvers, Configurations);

TYPED_TEST(Solvers, CanBeMovedAndReused)
{
    using Real           = typename TypeParam::Real;
    const System first   = rounded<Real>(randomCharges(namedBox("cube", 4.0), 100, 71));
    const System second  = rounded<Real>(randomCharges(namedBox("long", 5.0), 130, 72));
    Options options      = TypeParam::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, first);
    const Evaluation a = evaluate(solver, first);
    Solver<Real> moved(std::move(solver));
    EXPECT_EQ(evaluate(moved, first).forces, a.forces);
    // Another system in the same solver.
    load(moved, second);
    const Evaluation reference = ewald(second);
    expectClose(
            evaluate(moved, second), reference, boundsFor<Real>(second, moved.setup(), reference));
    Solver<Real> target(TypeParam::options());
    target = std::move(moved);
    EXPECT_EQ(evaluate(target, second).forces.size(), second.positions.size());
}

TYPED_TEST(Solvers, ReportSetupAndTimings)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 73));
    Solver<Real> solver(TypeParam::options());
    load(solver, water);
    solver.prepare(flatPositions<Real>(water).data(), Box(water.box).rows);
    const Setup setup = solver.setup();
    EXPECT_GE(setup.order, 0);
    EXPECT_LE(setup.order, c_maxOrder);
    EXPECT_TRUE(setup.directRange == 1 || setup.directRange == 2);
    EXPECT_NE(setup.m2l, M2lEngine::Auto);
    EXPECT_EQ(setup.device, TypeParam::device);
    EXPECT_GE(setup.levels, 1);
    EXPECT_GE(setup.threads, 1);
    EXPECT_FALSE(setup.deviceName.empty());
    const long long cells = 1LL * setup.cells[0][0] * setup.cells[1][1] * setup.cells[2][2];
    EXPECT_EQ(setup.leafCells, cells);
    EXPECT_NEAR(setup.cellSize, std::cbrt(water.volume() / cells), 1e-6);
    EXPECT_EQ(setup.cells[0][1], 0);
    EXPECT_EQ(setup.cells[0][2], 0);
    EXPECT_EQ(setup.cells[1][2], 0);

    evaluate(solver, water);
    evaluate(solver, water);
    EXPECT_EQ(solver.setup().cells, setup.cells);
    bool sawPairs = false;
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_FALSE(stage.name.empty());
        EXPECT_GE(stage.seconds, 0);
        sawPairs = sawPairs || (stage.name == "P2P" && stage.calls == 2);
    }
    EXPECT_TRUE(sawPairs);
    solver.resetTimings();
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_EQ(stage.calls, 0) << stage.name;
        EXPECT_EQ(stage.seconds, 0) << stage.name;
    }
}

template<class Config>
class Tuning : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Tuning, Configurations);

TYPED_TEST(Tuning, TakesTheFastestSettingOnAGpu)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("rectangular", 20.0), 74));
    Options options    = TypeParam::options();
    Solver<Real> untuned(options);
    load(untuned, water);
    evaluate(untuned, water);
    EXPECT_TRUE(untuned.setup().timed.empty());

    options.tune = true;
    Solver<Real> solver(options);
    load(solver, water);
    const Evaluation result    = evaluate(solver, water);
    const Setup setup          = solver.setup();
    const Evaluation reference = ewald(water);
    expectClose(result, reference, boundsFor<Real>(water, setup, reference));
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_EQ(stage.calls, 1) << stage.name << ": what was timed is no evaluation";
    }
    if (TypeParam::device == Device::Cpu)
    {
        EXPECT_TRUE(setup.timed.empty());
        EXPECT_EQ(setup.cells, untuned.setup().cells);
        return;
    }
    ASSERT_GT(setup.timed.size(), 1U);
    EXPECT_EQ(setup.timed.front().leafCells, untuned.setup().leafCells);
    EXPECT_EQ(setup.timed.front().order, untuned.setup().order);
    double taken = 0, fastest = 1e9;
    for (const TimedSetting& timed : setup.timed)
    {
        EXPECT_GT(timed.seconds, 0);
        EXPECT_LT(timed.seconds, 1);
        fastest = std::min(fastest, timed.seconds);
        if (timed.isInUse)
        {
            EXPECT_EQ(taken, 0) << "a second one in use";
            taken = timed.seconds;
            EXPECT_EQ(timed.order, setup.order);
            EXPECT_EQ(timed.directRange, setup.directRange);
            EXPECT_EQ(timed.levels, setup.levels);
            EXPECT_EQ(timed.m2l, setup.m2l);
            EXPECT_EQ(timed.leafCells, setup.leafCells);
        }
    }
    EXPECT_GT(taken, 0) << "the setting in use was timed";
    // a setting later in the list has to win by 3 %, against each that won before
    EXPECT_LE(taken, fastest / std::pow(0.97, setup.timed.size()));
    // a continued run uses what was chosen, and times nothing
    Solver<Real> second(options);
    second.restore(solver.state());
    load(second, water);
    evaluate(second, water);
    EXPECT_EQ(second.setup().cells, setup.cells);
    EXPECT_EQ(second.setup().m2l, setup.m2l);
    EXPECT_TRUE(second.setup().timed.empty());
}

//! Helpers that need not be had are left out, with a reason.
TEST(Helpers, AreLeftOutOnTheCpu)
{
    Options options;
    options.device        = Device::Cpu;
    options.helperDevices = { 1 };
    options.tune          = true;
    const auto make       = [&] { return Solver<float>(options).setup(); };
    expectError(ErrorCode::Unsupported, { "Helper devices", "'cpu'" }, make);
    options.helpersIfFaster = true;
    EXPECT_NE(make().helpersLost.find("'cpu'"), std::string::npos);
    options.helperDevices = { 1, 2, 3, 4, 5, 6, 7, 8 };
    expectError(ErrorCode::InvalidArgument, { "8 helper devices", "at most 7" }, make);
    options.helperDevices = {};
    EXPECT_EQ(make().helpersLost, "");
}

} // namespace
} // namespace test
} // namespace farfield
