/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a solver keeps and what it gives up: saved states, failures, other numbers of
 *         particles.
 */
#include "open_systems.h"
#include "test_support.h"

#include <cmath>
#include <limits>

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Recovery : public ReproducibleTest<Config>
{
public:
    using typename ReproducibleTest<Config>::Real;

    static System water(double volume)
    {
        return rounded<Real>(pseudoWater(namedBox("triclinic", volume), 271));
    }
    //! An evaluation by a solver that has done nothing before.
    static Evaluation fresh(const Options& options, const System& system)
    {
        Solver<Real> solver(options);
        load(solver, system);
        return evaluate(solver, system);
    }
};
TYPED_TEST_SUITE(Recovery, Configurations);

TYPED_TEST(Recovery, RefusesAStateOfOtherOptions)
{
    using Real          = typename TypeParam::Real;
    const System system = this->water(8);
    Options written     = this->options();
    written.accuracy    = 1e-2;
    Solver<Real> writer(written);
    load(writer, system);
    evaluate(writer, system);
    const std::vector<double> state = writer.state();
    const auto check =
            [&](const std::string& parameter, const std::function<void(Options&)>& change)
    {
        Options options = written;
        change(options);
        Solver<Real> solver(options);
        try
        {
            solver.restore(state);
            ADD_FAILURE() << "accepted with another " << parameter;
        }
        catch (const Error& error)
        {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_EQ(error.parameter(), parameter) << error.what();
            EXPECT_NE(std::string(error.what()).find(parameter), std::string::npos) << error.what();
        }
        // it chooses anew, as if nothing had been tried
        EXPECT_TRUE(solver.state().empty());
        load(solver, system);
        expectSameBits(evaluate(solver, system), this->fresh(options, system));
    };
    check("accuracy", [](Options& o) { o.accuracy = 1e-4; });
    check("accuracy", [](Options& o) { o.accuracy = std::nextafter(o.accuracy, 1.0); });
    check("order", [&](Options& o) { o.order = writer.setup().order; });
    check("directRange", [](Options& o) { o.directRange = 1; });
    check("cellSize", [](Options& o) { o.cellSize = 0.5; });
    check("m2l", [](Options& o) { o.m2l = M2lEngine::Hierarchy; });
    check("leastSquares", [](Options& o) { o.leastSquares = false; });

    // what does not decide on results may differ
    Options other         = written;
    other.threads         = 1;
    other.coulombConstant = 1;
    Solver<Real> solver(other);
    EXPECT_NO_THROW(solver.restore(state));
}

TYPED_TEST(Recovery, RefusesAStateThatIsDamaged)
{
    using Real          = typename TypeParam::Real;
    const System system = this->water(8);
    Solver<Real> writer(this->options());
    load(writer, system);
    evaluate(writer, system);
    const std::vector<double> state = writer.state();
    for (size_t i = 0; i < state.size(); ++i)
    {
        for (const double value : { std::nextafter(state[i], 1e300), state[i] + 1, 2 * state[i] })
        {
            std::vector<double> damaged = state;
            damaged[i]                  = value;
            if (damaged != state)
            {
                Solver<Real> solver(this->options());
                EXPECT_THROW(solver.restore(damaged), Error) << "number " << i << ": " << value;
            }
        }
    }
}

TYPED_TEST(Recovery, ContinuesCellsThatWereChosenForTheCpuAndSaysSo)
{
    using Real          = typename TypeParam::Real;
    const System system = this->water(8);
    Options options     = this->options();
    options.device      = Device::Cpu;
    Solver<Real> writer(options);
    load(writer, system);
    evaluate(writer, system);
    EXPECT_EQ(writer.setup().chosenFor, Device::Cpu);

    Solver<Real> solver(this->options());
    load(solver, system);
    solver.restore(writer.state());
    EXPECT_EQ(solver.setup().device, TypeParam::device);
    EXPECT_EQ(solver.setup().chosenFor, Device::Cpu);
    EXPECT_EQ(solver.setup().cells, writer.setup().cells);
    EXPECT_EQ(solver.state(), writer.state());
    evaluate(solver, system);
    EXPECT_EQ(solver.setup().cells, writer.setup().cells);
}

//! Operators that follow a strain are saved with it, and so is what the virial interpolates.
TYPED_TEST(Recovery, ContinuesInAStrainedBox)
{
    using Real          = typename TypeParam::Real;
    const System system = this->water(8);
    Solver<Real> solver(this->options());
    load(solver, system);
    evaluate(solver, system);
    const double most    = std::sqrt(0.1 * solver.setup().estimatedError);
    const auto stretched = [&](double x, double z)
    {
        Matrix change = unitMatrix();
        change[0][0] += most * x;
        change[2][2] += most * z;
        return rounded<Real>(deformed(system, change));
    };
    evaluate(solver, stretched(0.1, 0.9));
    evaluate(solver, stretched(0, -0.5));
    const std::vector<double> state = solver.state();
    EXPECT_NE(state.back(), 0) << "no strain of the virial";
    Solver<Real> other(this->options());
    load(other, system);
    other.restore(state);
    EXPECT_EQ(other.state(), state);
    for (const System& next : { stretched(0, -0.5), stretched(0.05, 0.3), system })
    {
        expectSameBits(evaluate(other, next), evaluate(solver, next));
    }
}

//! Operators of 6e7 cells and order 20 take hundreds of gigabytes. The memory of a GPU is not
//! bounded ahead: there the time to set them up is what is too much.
TYPED_TEST(Recovery, AfterABoxThatDidNotFitIntoMemory)
{
    using Real           = typename TypeParam::Real;
    Options options      = this->options();
    options.order        = 20;
    options.m2l          = M2lEngine::Fft;
    options.leastSquares = false;
    options.cellSize     = 0.3;
    System system        = rounded<Real>(randomCharges(namedBox("cube", 3.0), 20, 272));
    const System small   = system;
    for (int k = 0; k < 3; ++k)
    {
        system.box[k][k] = 120;
    }
    Solver<Real> solver(options);
    load(solver, small);
    const Evaluation before         = evaluate(solver, small);
    const Setup setup               = solver.setup();
    const std::vector<double> state = solver.state();
    // Where there is memory for it, it is the time to set up that is too long
    const auto expectRefusal = [&]
    {
        try
        {
            evaluate(solver, system);
            ADD_FAILURE() << "accepted";
        }
        catch (const Error& error)
        {
            const bool isForMemory = error.code() == ErrorCode::OutOfMemory;
            EXPECT_TRUE(isForMemory || error.code() == ErrorCode::InvalidArgument);
            EXPECT_NE(std::string(error.what()).find(isForMemory ? "memory" : "to set up"),
                      std::string::npos)
                    << error.what();
        }
    };
    expectRefusal();
    EXPECT_EQ(solver.setup().cells, setup.cells);
    EXPECT_EQ(solver.state(), state);
    expectSameBits(evaluate(solver, small), before);
    expectRefusal();
    expectRefusal();
    Solver<Real> other(options);
    other.restore(solver.state());
    expectSameBits(evaluate(solver, small), before);
}

//! Which cells hold particles changes with the position of the grid; sums must not remember the first.
TYPED_TEST(Recovery, GoesOnWithTheSameBitsWhereParticlesFillAPart)
{
    using Real    = typename TypeParam::Real;
    System system = this->water(8);
    for (const double stretch : { 1.05, 2.0, 3.0 })
    {
        for (double& component : system.box[0])
        {
            component *= stretch;
        }
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Options options  = this->options();
            options.order    = 6;
            options.cellSize = 0.4;
            options.m2l      = engine;
            Solver<Real> solver(options);
            load(solver, system);
            Request request;
            for (const double offset : { 0.0, 0.8, 0.4 })
            {
                request.gridOffset = { offset, 0.5 * offset, 1 - offset };
                evaluate(solver, system, request);
            }
            Solver<Real> continued(options);
            continued.restore(solver.state());
            load(continued, system);
            request.gridOffset = { 0.6, 0.1, 0.3 };
            SCOPED_TRACE(describe(system, solver.setup()));
            expectSameBits(evaluate(continued, system, request), evaluate(solver, system, request));
        }
    }
}

//! What was measured, and where, decides on later choices: a restored solver knows all of it.
TYPED_TEST(Recovery, GoesOnAsIfNothingHadHappened)
{
    using Real         = typename TypeParam::Real;
    Options options    = this->options();
    options.boundary   = Boundary::Open;
    const System block = molecules("block", { 0, 0, 0 }, { 6, 6, 6 });
    Solver<Real> solver(options);
    load(solver, block);
    evaluate(solver, block);
    for (const double far : { 0.5, 1.0, 1.5 })
    {
        System leaving = block;
        for (int site = 1; site <= 3; site++)
        {
            leaving.positions[block.size() - site][2] += far;
        }
        leaving = rounded<Real>(leaving);
        SCOPED_TRACE(describe(leaving, solver.setup()));
        Solver<Real> continued(options);
        load(continued, leaving);
        continued.restore(solver.state());
        expectSameBits(evaluate(continued, leaving), evaluate(solver, leaving));
        EXPECT_EQ(continued.state(), solver.state());
    }
}

//! Particles without a charge take part from the first potentials on.
TYPED_TEST(Recovery, KnowsThatAllParticlesTakePart)
{
    using Real    = typename TypeParam::Real;
    System system = this->water(4);
    for (const int every : { 4, 2 })
    {
        for (int i = 0; i < system.size(); i += every)
        {
            system.charges[i] = 0;
        }
        Solver<Real> solver(this->options());
        load(solver, system);
        const std::vector<Real> x = flatPositions<Real>(system);
        std::vector<Real> forces(x.size()), potentials(system.size());
        solver.evaluate(x.data(), Box(system.box).rows, forces.data(), {}, potentials.data());
        Solver<Real> continued(this->options());
        continued.restore(solver.state());
        load(continued, system);
        expectSameBits(evaluate(continued, system), evaluate(solver, system));
        EXPECT_EQ(continued.state(), solver.state());
    }
}

TYPED_TEST(Recovery, AfterPositionsBeyondAllCells)
{
    using Real           = typename TypeParam::Real;
    const System system  = this->water(8);
    const Evaluation due = this->fresh(this->options(), system);
    for (const Real far : { std::numeric_limits<Real>::max(), Real(-1e30), Real(1e12) })
    {
        std::vector<Real> x = flatPositions<Real>(system);
        x[3 * 5 + 2]        = far;
        Solver<Real> solver(this->options());
        load(solver, system);
        std::vector<Real> f(x.size(), Real(42));
        const auto fails = [&]
        {
            expectError(ErrorCode::InvalidArgument,
                        { "particle 5", "outside the box" },
                        [&] { solver.evaluate(x.data(), Box(system.box).rows, f.data()); });
            EXPECT_EQ(f, std::vector<Real>(x.size(), Real(42)));
        };
        fails();
        expectError(ErrorCode::InvalidArgument,
                    { "particle 5" },
                    [&] { solver.prepare(x.data(), Box(system.box).rows); });
        expectSameBits(evaluate(solver, system), due);
        fails();
        // in a box that needs other cells, too
        System larger = system;
        larger.box    = namedBox("triclinic", 30);
        expectError(ErrorCode::InvalidArgument,
                    { "particle 5" },
                    [&] { solver.evaluate(x.data(), Box(larger.box).rows, f.data()); });
        expectSameBits(evaluate(solver, system), due);
    }
}

TYPED_TEST(Recovery, RefusesBoxesBeyondAllMeasure)
{
    using Real          = typename TypeParam::Real;
    const System system = this->water(8);
    for (const double edge : { 1e-200, 1e-7, 1e9, 1e103, 1e300 })
    {
        Solver<Real> solver(this->options());
        load(solver, system);
        const double box[3][3] = { { edge, 0, 0 }, { 0, edge, 0 }, { 0, 0, edge } };
        std::vector<Real> x    = flatPositions<Real>(system), f(x.size());
        expectError(ErrorCode::InvalidArgument,
                    { "box" },
                    [&] { solver.evaluate(x.data(), box, f.data()); });
    }
}

//! Cells for three particles would hold thousands each.
TYPED_TEST(Recovery, ChoosesAnewForAnotherNumberOfParticles)
{
    using Real           = typename TypeParam::Real;
    const System many    = this->water(30);
    const Evaluation due = this->fresh(this->options(), many);
    const System few     = rounded<Real>(randomCharges(many.box, 3, 273));
    System none;
    none.box = many.box;
    for (const System* first : { &few, static_cast<const System*>(&none) })
    {
        Solver<Real> solver(this->options());
        load(solver, *first);
        const std::vector<Real> x = flatPositions<Real>(*first);
        solver.prepare(x.data(), Box(many.box).rows);
        const Setup before = solver.setup();
        load(solver, many);
        expectSameBits(evaluate(solver, many), due);
        EXPECT_GT(solver.setup().leafCells, before.leafCells);
    }
}

//! A few more or less are no reason for other cells, before and after a restart.
TYPED_TEST(Recovery, KeepsTheCellsForAboutAsManyParticles)
{
    using Real             = typename TypeParam::Real;
    const Matrix box       = namedBox("triclinic", 30);
    const auto systemOf    = [&](int n) { return rounded<Real>(randomCharges(box, n, 274)); };
    const System chosenFor = systemOf(2000);
    Options options        = this->options();
    options.accuracy       = 1e-2;
    Solver<Real> solver(options);
    load(solver, chosenFor);
    evaluate(solver, chosenFor);
    const auto cells = solver.setup().cells;
    for (const int n : { 2900, 1400 })
    {
        const System system = systemOf(n);
        load(solver, system);
        const Evaluation result = evaluate(solver, system);
        EXPECT_EQ(solver.setup().cells, cells) << n;
        // far from the number of a restart, but near to that of the choice
        Solver<Real> restarted(options);
        restarted.restore(solver.state());
        load(restarted, system);
        expectSameBits(evaluate(restarted, system), result);
        EXPECT_EQ(restarted.state(), solver.state());
    }
    load(solver, systemOf(6000));
    evaluate(solver, systemOf(6000));
    EXPECT_NE(solver.setup().cells, cells);
}

} // namespace
} // namespace test
} // namespace farfield
