/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Bad input: the right code, a text that names parameter and value, forces untouched.
 */
#include "test_support.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Errors : public ConfiguredTest<Config>
{
public:
    using Real = typename Config::Real;

    Errors() : system_(rounded<Real>(randomCharges(namedBox("triclinic", 8.0), 50, 81))) {}

    //! Evaluates in a box with bad positions or box; forces must stay as they are.
    void expectEvaluateError(const Options& options,
                             const std::vector<Real>& x,
                             const Matrix& box,
                             ErrorCode code,
                             const std::vector<std::string>& words)
    {
        Solver<Real> solver(options);
        load(solver, system_);
        std::vector<Real> f(x.size(), Real(42));
        expectError(code, words, [&]() { solver.evaluate(x.data(), Box(box).rows, f.data()); });
        EXPECT_EQ(f, std::vector<Real>(x.size(), Real(42)));
        // The solver survives.
        solver.setCharges(std::vector<Real>(system_.charges.begin(), system_.charges.end()).data(),
                          system_.size());
    }

    System system_;
};
TYPED_TEST_SUITE(Errors, Configurations);

constexpr double c_nan      = std::numeric_limits<double>::quiet_NaN();
constexpr double c_infinity = std::numeric_limits<double>::infinity();

TYPED_TEST(Errors, NameTheOptionAndItsValue)
{
    using Real = typename TypeParam::Real;
    const auto check =
            [](const std::vector<std::string>& words, const std::function<void(Options&)>& spoil)
    {
        Options options = TypeParam::options();
        spoil(options);
        expectError(ErrorCode::InvalidArgument, words, [&]() { Solver<Real> solver(options); });
    };
    check({ "order", "-2", "20" }, [](Options& o) { o.order = -2; });
    check({ "order", "21", "20" }, [](Options& o) { o.order = 21; });
    check({ "directRange", "3", "2" }, [](Options& o) { o.directRange = 3; });
    check({ "directRange", "-1" }, [](Options& o) { o.directRange = -1; });
    check({ "cellSize", "-0.5" }, [](Options& o) { o.cellSize = -0.5; });
    check({ "cellSize", "nan" }, [](Options& o) { o.cellSize = c_nan; });
    check({ "cellSize", "inf" }, [](Options& o) { o.cellSize = c_infinity; });
    check({ "accuracy", "0" }, [](Options& o) { o.accuracy = 0; });
    check({ "accuracy", "0.5" }, [](Options& o) { o.accuracy = 0.5; });
    check({ "accuracy", "nan" }, [](Options& o) { o.accuracy = c_nan; });
    check({ "accuracy", "-0.001" }, [](Options& o) { o.accuracy = -0.001; });
    check({ "threads", "-1" }, [](Options& o) { o.threads = -1; });
    check({ "coulombConstant", "0" }, [](Options& o) { o.coulombConstant = 0; });
    check({ "coulombConstant", "-138" }, [](Options& o) { o.coulombConstant = -138; });
    check({ "coulombConstant", "nan" }, [](Options& o) { o.coulombConstant = c_nan; });
    check({ "coulombConstant", "inf" }, [](Options& o) { o.coulombConstant = c_infinity; });
}

TYPED_TEST(Errors, NameTheParticleWithABadPosition)
{
    using Real = typename TypeParam::Real;
    for (const double bad : { c_nan, c_infinity, -c_infinity })
    {
        std::vector<Real> x = flatPositions<Real>(this->system_);
        x[3 * 37 + 1]       = static_cast<Real>(bad);
        this->expectEvaluateError(TypeParam::options(),
                                  x,
                                  this->system_.box,
                                  ErrorCode::InvalidArgument,
                                  { "position", "37" });
    }
}

//! A caller that moves particles can tell a blow-up from wrong options.
TYPED_TEST(Errors, NameThePositionsAsAtFault)
{
    using Real = typename TypeParam::Real;
    for (const double bad : { c_nan, 1e30 })
    {
        std::vector<Real> x = flatPositions<Real>(this->system_);
        x[3 * 37 + 1]       = static_cast<Real>(bad);
        Solver<Real> solver(TypeParam::options());
        load(solver, this->system_);
        std::vector<Real> f(x.size());
        try
        {
            solver.evaluate(x.data(), Box(this->system_.box).rows, f.data());
            ADD_FAILURE() << "no error";
        }
        catch (const Error& error)
        {
            EXPECT_STREQ(error.parameter(), "positions") << error.what();
        }
    }
}

TYPED_TEST(Errors, NameTheParticleWithABadCharge)
{
    using Real = typename TypeParam::Real;
    for (const double bad : { c_nan, c_infinity, -c_infinity, 1e13, -1e13 })
    {
        std::vector<Real> q(50, Real(0.5));
        q[23] = static_cast<Real>(bad);
        Solver<Real> solver(TypeParam::options());
        expectError(ErrorCode::InvalidArgument,
                    { "charge", "23" },
                    [&]() { solver.setCharges(q.data(), 50); });
    }
    Solver<Real> solver(TypeParam::options());
    const Real one = 1;
    expectError(ErrorCode::InvalidArgument, { "-1" }, [&]() { solver.setCharges(&one, -1); });
}

//! Of what an int counts, with room for counting beyond the last one.
TYPED_TEST(Errors, NameTheMostParticles)
{
    using Real = typename TypeParam::Real;
    Solver<Real> solver(TypeParam::options());
    const Real one         = 1;
    constexpr int c_most   = 1 << 30;
    const double box[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
    const Real x[3]        = {};
    // nothing of the arrays is read
    for (const int n : { c_most + 1, std::numeric_limits<int>::max() })
    {
        const std::string number = std::to_string(n), most = std::to_string(c_most);
        expectError(ErrorCode::InvalidArgument,
                    { number, most },
                    [&]() { solver.setCharges(&one, n); });
        expectError(ErrorCode::InvalidArgument,
                    { number, most },
                    [&]() { solver.setPerturbedCharges(&one, &one, n); });
        expectError(ErrorCode::InvalidArgument,
                    { number, most },
                    [&]() { solver.evaluateAt(x, box, x, n, nullptr, nullptr); });
    }
    solver.setCharges(&one, 1);
    expectError(ErrorCode::InvalidArgument,
                { "points and particles" },
                [&]() { solver.evaluateAt(x, box, x, c_most, nullptr, nullptr); });
}

TYPED_TEST(Errors, NameTheBox)
{
    using Real                = typename TypeParam::Real;
    const std::vector<Real> x = flatPositions<Real>(this->system_);
    const auto check          = [&](int row, int column, double value)
    {
        Matrix box       = this->system_.box;
        box[row][column] = value;
        SCOPED_TRACE("box[" + std::to_string(row) + "][" + std::to_string(column)
                     + "] = " + std::to_string(value));
        this->expectEvaluateError(
                TypeParam::options(), x, box, ErrorCode::InvalidArgument, { "box" });
        Solver<Real> solver(TypeParam::options());
        load(solver, this->system_);
        expectError(ErrorCode::InvalidArgument,
                    { "box" },
                    [&]() { solver.prepare(x.data(), Box(box).rows); });
    };
    for (int k = 0; k < 3; ++k)
    {
        check(k, k, 0);
        check(k, k, -2);
        check(k, k, c_nan);
        check(k, k, c_infinity);
    }
    check(0, 1, 0.1);
    check(0, 2, 0.1);
    check(1, 2, 0.1);
    check(1, 0, c_nan);
    check(2, 1, c_infinity);
}

TYPED_TEST(Errors, NameACellSizeBeyondTheBox)
{
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.cellSize = 5;
    this->expectEvaluateError(options,
                              flatPositions<Real>(this->system_),
                              this->system_.box,
                              ErrorCode::InvalidArgument,
                              { "cellSize", "5", "box" });
}

TYPED_TEST(Errors, NameACellSizeThatIsFarTooSmall)
{
    // 1e12 cells: refused before anything is allocated.
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.cellSize = 2e-4;
    this->expectEvaluateError(options,
                              flatPositions<Real>(this->system_),
                              this->system_.box,
                              ErrorCode::InvalidArgument,
                              { "cellSize", "0.0002" });
}

TYPED_TEST(Errors, NameABadGridOffset)
{
    using Real = typename TypeParam::Real;
    for (const double bad : { -0.25, 1.5, c_nan, c_infinity })
    {
        Solver<Real> solver(TypeParam::options());
        load(solver, this->system_);
        const std::vector<Real> x = flatPositions<Real>(this->system_);
        std::vector<Real> f(x.size(), Real(42));
        Request request;
        request.gridOffset[1] = bad;
        expectError(ErrorCode::InvalidArgument,
                    { "gridOffset" },
                    [&]()
                    { solver.evaluate(x.data(), Box(this->system_.box).rows, f.data(), request); });
        EXPECT_EQ(f, std::vector<Real>(x.size(), Real(42)));
    }
}

TYPED_TEST(Errors, NameBadExclusions)
{
    using Real = typename TypeParam::Real;
    Solver<Real> solver(TypeParam::options());
    const std::vector<Real> q(4, Real(1));
    solver.setCharges(q.data(), 4);
    const auto check = [&](const std::vector<int>& offsets,
                           const std::vector<int>& partners,
                           int n,
                           const std::vector<std::string>& words)
    {
        expectError(ErrorCode::InvalidArgument,
                    words,
                    [&]() { solver.setExclusions(offsets.data(), partners.data(), n); });
    };
    check({ 0, 0, 0, 0 }, {}, 3, { "exclusions", "3", "4" });
    check({ 0, 0, 0, 0, 0, 0 }, {}, 5, { "exclusions", "5", "4" });
    check({ 0, 2, 1, 3, 3 }, { 1, 2, 3 }, 4, { "offset" });
    check({ 1, 1, 1, 1, 1 }, { 1 }, 4, { "offset", "1" });
    check({ 0, 1, 1, 1, 1 }, { 4 }, 4, { "partner", "4" });
    check({ 0, 1, 1, 1, 1 }, { -1 }, 4, { "partner", "-1" });
    // Legal ones still work, and after an error the old ones hold.
    const std::vector<int> offsets = { 0, 1, 1, 1, 1 }, partners = { 2 };
    solver.setExclusions(offsets.data(), partners.data(), 4);
}

TYPED_TEST(Errors, NameAStateThatDoesNotFit)
{
    using Real = typename TypeParam::Real;
    Solver<Real> solver(TypeParam::options());
    expectError(ErrorCode::InvalidArgument, { "state" }, [&]() { solver.restore({}); });
    expectError(ErrorCode::InvalidArgument, { "state" }, [&]() { solver.restore({ 1, 2, 3 }); });
    expectError(ErrorCode::InvalidArgument,
                { "state" },
                [&]() { solver.restore(std::vector<double>(200, 1e300)); });
    expectError(ErrorCode::InvalidArgument,
                { "state" },
                [&]() { solver.restore(std::vector<double>(40, c_nan)); });

    load(solver, this->system_);
    evaluate(solver, this->system_);
    const std::vector<double> state = solver.state();
    // Every number spoiled in turn: refused or harmless, never a crash.
    for (size_t i = 0; i < state.size(); ++i)
    {
        for (const double bad : { c_nan, -1.0, 1e18 })
        {
            std::vector<double> spoiled = state;
            spoiled[i]                  = bad;
            Solver<Real> other(TypeParam::options());
            try
            {
                other.restore(spoiled);
            }
            catch (const Error& error)
            {
                EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            }
        }
    }
    std::vector<double> shortened(state.begin(), state.end() - 1);
    Solver<Real> other(TypeParam::options());
    expectError(ErrorCode::InvalidArgument, { "state" }, [&]() { other.restore(shortened); });
    // A state of another order.
    Options options = TypeParam::options();
    options.order   = solver.setup().order == 5 ? 6 : 5;
    Solver<Real> different(options);
    expectError(ErrorCode::InvalidArgument, { "state" }, [&]() { different.restore(state); });
}

TYPED_TEST(Errors, LeaveTheSolverUsable)
{
    using Real           = typename TypeParam::Real;
    Options options      = TypeParam::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, this->system_);
    const Evaluation before = evaluate(solver, this->system_);
    std::vector<Real> x     = flatPositions<Real>(this->system_);
    std::vector<Real> f(x.size());
    x[5] = static_cast<Real>(c_nan);
    EXPECT_THROW(solver.evaluate(x.data(), Box(this->system_.box).rows, f.data()), Error);
    x[5]       = 0;
    Matrix box = this->system_.box;
    box[2][2]  = 0;
    EXPECT_THROW(solver.evaluate(x.data(), Box(box).rows, f.data()), Error);
    const Evaluation after = evaluate(solver, this->system_);
    EXPECT_EQ(before.forces, after.forces);
    EXPECT_EQ(before.energy, after.energy);
}

TYPED_TEST(Errors, NameAnEngineThatTheDeviceLacks)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngineDescription& engine : c_m2lEngines)
    {
        SCOPED_TRACE(engine.name);
        Options options = TypeParam::options();
        options.m2l     = engine.value;
        if (engine.isForGpuOnly && TypeParam::device == Device::Cpu)
        {
            expectError(ErrorCode::Unsupported,
                        { "engine", "gpu" },
                        [&]() { Solver<Real> solver(options); });
        }
        else
        {
            EXPECT_NO_THROW(Solver<Real> solver(options));
        }
    }
}

TEST(Devices, ThatAreAbsentAreReported)
{
    Options options;
    options.device = Device::Gpu;
    try
    {
        Solver<float> solver(options);
        GTEST_SKIP() << "a GPU is here";
    }
    catch (const Error& error)
    {
        // A build without CUDA says so; a build with CUDA found no device.
        EXPECT_TRUE(error.code() == ErrorCode::NotCompiled
                    || error.code() == ErrorCode::DeviceFailure);
        EXPECT_NE(plain(error.what()).find("gpu"), std::string::npos) << error.what();
    }
    options.device = Device::Auto;
    Solver<double> solver(options);
    const double q[2]      = { 1, -1 };
    const double x[6]      = { 0, 0, 0, 1, 1, 1 };
    const double box[3][3] = { { 2, 0, 0 }, { 0, 2, 0 }, { 0, 0, 2 } };
    double f[6]            = {};
    solver.setCharges(q, 2);
    solver.evaluate(x, box, f);
    EXPECT_NE(solver.setup().device, Device::Auto);
}

TEST(CellSize, MayBeTheBoxEdgeInEitherPrecision)
{
    // 2.8 and 3.3 round down to single precision, 2.7 up; the box is that of a single-precision
    // file
    for (const double edge : { 2.7, 2.8, 3.3 })
    {
        const double rounded   = static_cast<float>(edge);
        const double box[3][3] = { { rounded, 0, 0 }, { 0, rounded, 0 }, { 0, 0, rounded } };
        const double q[2]      = { 1, -1 };
        const double x[6]      = { 0, 0, 0, 1, 1, 1 };
        double f[6]            = {};
        Options options;
        options.device   = Device::Cpu;
        options.cellSize = edge;
        Solver<double> solver(options);
        solver.setCharges(q, 2);
        solver.evaluate(x, box, f);
        EXPECT_EQ(solver.setup().leafCells, 1) << edge;

        // What is more than rounding is still refused
        options.cellSize = edge * 1.00001;
        Solver<double> tooLarge(options);
        tooLarge.setCharges(q, 2);
        expectError(ErrorCode::InvalidArgument,
                    { "cellSize" },
                    [&]() { tooLarge.evaluate(x, box, f); });
    }
}

//! A cluster of 2 nm in a box of 10 000 nm, whose cells are as wide as the box.
template<class Real>
void prepareClusterInAVoid(Solver<Real>* solver)
{
    constexpr int c_charges      = 200;
    constexpr double c_box[3][3] = { { 1e4, 0, 0 }, { 0, 1e4, 0 }, { 0, 0, 1e4 } };
    std::mt19937 random(8);
    std::uniform_real_distribution<double> uniform(0, 2);
    std::vector<Real> x(3 * c_charges), q;
    std::generate(x.begin(), x.end(), [&] { return static_cast<Real>(uniform(random)); });
    for (int i = 0; i < c_charges; ++i)
    {
        q.push_back(i % 2 == 0 ? Real(1) : Real(-1));
    }
    solver->setCharges(q.data(), c_charges);
    solver->prepare(x.data(), c_box);
}

//! What single precision does not resolve, and double precision does.
TEST(Accuracy, BeyondAPrecisionIsRefusedInItsName)
{
    Options options;
    options.device   = Device::Cpu;
    options.threads  = 1;
    options.accuracy = 1e-5;
    Solver<float> single(options);
    expectError(ErrorCode::InvalidArgument,
                { "The accuracy 1e-05 cannot be reached", "in single precision" },
                [&] { prepareClusterInAVoid(&single); });
    Solver<double> twice(options);
    EXPECT_NO_THROW(prepareClusterInAVoid(&twice));
    EXPECT_FALSE(twice.setup().isBestEffort);
}

TEST(Version, HasThreeNumbers)
{
    int a, b, c;
    char rest;
    const int found = std::sscanf(version(), "%d.%d.%d%c", &a, &b, &c, &rest);
    EXPECT_EQ(found, 3) << version();
}

} // namespace
} // namespace test
} // namespace farfield
