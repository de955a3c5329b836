/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Pairs with another function than 1/r: smeared charges, Thole damping, soft cores.
 */
#include <cmath>

#include <algorithm>
#include <string>
#include <vector>

#include "near_systems.h"
#include "open_systems.h"
#include "slab_sum.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class NearFunctions : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static double accuracy() { return sizeof(Real) == 4 ? 2e-4 : 1e-8; }
    static Options options(Boundary boundary = Boundary::Periodic)
    {
        Options options  = Config::options();
        options.boundary = boundary;
        options.accuracy = accuracy();
        return options;
    }
    //! Cells that need no choice by measurement.
    static Options givenCells()
    {
        Options options     = NearFunctions::options();
        options.cellSize    = 0.7;
        options.directRange = 1;
        options.order       = 8;
        return options;
    }
    //! The same, for results that are compared bit by bit.
    static Options reproducibleCells()
    {
        Options options      = givenCells();
        options.threads      = 1;
        options.reproducible = true;
        return options;
    }
    static void expectAccurate(const Evaluation& result, const Evaluation& exact)
    {
        EXPECT_LE(relativeError(result.forces, exact.forces), accuracy());
        const double energy = c_deviations * energyError(exact.forces, accuracy());
        EXPECT_NEAR(result.energy, exact.energy, energy);
        // a strain moves what is farther apart by more
        EXPECT_LE(largestDifference(result.virial, exact.virial), 4 * energy);
    }
};
TYPED_TEST_SUITE(NearFunctions, Configurations);

//! Whether near functions were computed.
template<class Real>
bool hasStage(const Solver<Real>& solver)
{
    const auto times = solver.timings();
    return std::any_of(times.begin(),
                       times.end(),
                       [](const StageTime& stage) { return stage.name == "Near function"; });
}

TYPED_TEST(NearFunctions, OfEqualSmearedChargesMatchSumsOverWaves)
{
    using Real = typename TypeParam::Real;
    std::vector<double> unused;
    const double width  = roundedWidths<Real>({ 0.085 })[0];
    const System system = rounded<Real>(overlapping(namedBox("triclinic", 8.0), 0.1, &unused));
    Solver<Real> solver(this->options());
    load(solver, system);
    setWidths(solver,
              { PairFunction::Gaussian, WidthRule::RootSumSquare },
              std::vector<double>(system.size(), width));
    const Evaluation result = evaluate(solver, system);
    SCOPED_TRACE(describe(system, solver.setup()));
    this->expectAccurate(result, smearedEwald(system, std::sqrt(2.0) * width));
}

TYPED_TEST(NearFunctions, MatchSumsOverAllPairs)
{
    using Real = typename TypeParam::Real;
    for (const Law& law : laws())
    {
        std::vector<double> widths;
        System system = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.08, &widths));
        // excluded: near, far, and with a partner that overlaps
        system.exclusions      = { { 4, 5 }, { 6, 100 }, { 1, 35 }, { 12, 11 } };
        widths                 = roundedWidths<Real>(widths);
        const Evaluation exact = withNearLaw(system,
                                             law.terms,
                                             law.widthOf(widths),
                                             0,
                                             [](const System& apart) { return allPairs(apart); });
        Solver<Real> solver(this->options(Boundary::Open));
        load(solver, system);
        setWidths(solver, law.function, widths);
        const Evaluation result = evaluate(solver, system);
        SCOPED_TRACE(law.name + ", " + describe(system, solver.setup()));
        this->expectAccurate(result, exact);
    }
}

TYPED_TEST(NearFunctions, MatchEwaldWithPairs)
{
    using Real                 = typename TypeParam::Real;
    const std::vector<Law> all = laws();
    for (const Law& law : all)
    {
        // what decays slowly needs a larger box
        const bool isShort = law.function.function == PairFunction::Gaussian;
        std::vector<double> widths;
        System system = overlapping(
                namedBox(isShort ? "triclinic" : "cube", 8.0), isShort ? 0.08 : 0.015, &widths);
        system                 = rounded<Real>(system);
        system.exclusions      = { { 4, 5 }, { 6, 100 }, { 1, 35 } };
        widths                 = roundedWidths<Real>(widths);
        const Evaluation exact = withNearLaw(system,
                                             law.terms,
                                             law.widthOf(widths),
                                             3,
                                             [](const System& apart) { return ewald(apart); });
        const auto engines     = &law == &all[0] ? enginesOf(TypeParam::device)
                                                 : std::vector<M2lEngine>{ M2lEngine::Auto };
        for (const M2lEngine engine : engines)
        {
            Options options = this->givenCells();
            options.m2l     = engine;
            Solver<Real> solver(options);
            load(solver, system);
            setWidths(solver, law.function, widths);
            const Evaluation result = evaluate(solver, system);
            SCOPED_TRACE(law.name + ", " + describe(system, solver.setup()));
            expectClose(result, exact, boundsFor<Real>(system, solver.setup(), exact));
        }
    }
}

TYPED_TEST(NearFunctions, ReachBeyondNearCells)
{
    using Real = typename TypeParam::Real;
    // the range is 0.64 nm in double precision, cells are 0.25 nm
    std::vector<double> widths;
    const Law law          = laws()[1];
    const System system    = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.1, &widths));
    widths                 = roundedWidths<Real>(widths);
    const Evaluation exact = withNearLaw(system,
                                         law.terms,
                                         law.widthOf(widths),
                                         3,
                                         [](const System& apart) { return ewald(apart); });
    Options options        = this->options();
    options.cellSize       = 0.25;
    options.directRange    = 1;
    options.order          = 12;
    std::vector<Evaluation> results;
    for (const int threads : { 1, 3 })
    {
        options.threads = threads;
        Solver<Real> solver(options);
        load(solver, system);
        setWidths(solver, law.function, widths);
        results.push_back(evaluate(solver, system));
        const Bounds bounds = boundsFor<Real>(system, solver.setup(), exact);
        expectClose(results.back(), exact, bounds);
        EXPECT_TRUE(hasStage(solver));
    }
}

TYPED_TEST(NearFunctions, OfSlabsMatchSumsOverPairs)
{
    using Real = typename TypeParam::Real;
    std::vector<double> widths;
    const Law law          = laws()[0];
    const System system    = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.08, &widths));
    widths                 = roundedWidths<Real>(widths);
    const Evaluation exact = withNearLaw(system,
                                         law.terms,
                                         law.widthOf(widths),
                                         2,
                                         [](const System& apart) { return slabSum(apart, 3.0); });
    Solver<Real> solver(this->options(Boundary::Slab));
    load(solver, system);
    setWidths(solver, law.function, widths);
    const Evaluation result = evaluate(solver, system);
    EXPECT_LE(relativeError(result.forces, exact.forces), this->accuracy());
    EXPECT_NEAR(result.energy,
                exact.energy,
                c_deviations * energyError(exact.forces, this->accuracy()));
}

TYPED_TEST(NearFunctions, WithoutWidthsChangeNoBit)
{
    using Real            = typename TypeParam::Real;
    const System system   = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 5));
    const Options options = this->reproducibleCells();
    Solver<Real> untouched(options), solver(options), cleared(options);
    std::vector<Evaluation> results;
    load(untouched, system);
    const Evaluation expected = evaluate(untouched, system);
    load(solver, system);
    for (const Law& law : laws())
    {
        setWidths(solver, law.function, std::vector<double>(system.size(), 0.0));
        expectSameBits(evaluate(solver, system), expected);
    }
    load(cleared, system);
    setWidths(cleared, laws()[0].function, std::vector<double>(system.size(), 0.01));
    cleared.setNearFunction({}, nullptr, system.size());
    expectSameBits(evaluate(cleared, system), expected);
    EXPECT_FALSE(hasStage(solver));
}

TYPED_TEST(NearFunctions, MayBeSetAfterAnEvaluation)
{
    using Real = typename TypeParam::Real;
    std::vector<double> widths;
    const Law law       = laws()[0];
    const System system = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.08, &widths));
    widths              = roundedWidths<Real>(widths);
    // the first forces are those of point charges that nearly coincide
    System points    = system;
    points.positions = rounded<Real>(randomCharges(system.box, system.size(), 78)).positions;
    Solver<Real> solver(this->options());
    load(solver, points);
    evaluate(solver, points);
    setWidths(solver, law.function, widths);
    const auto coulomb = [](const System& apart) { return ewald(apart); };
    this->expectAccurate(evaluate(solver, system),
                         withNearLaw(system, law.terms, law.widthOf(widths), 3, coulomb));
    // another number of particles has 1/r again
    System fewer = points;
    fewer.charges.pop_back();
    fewer.positions.pop_back();
    loadCharges(solver, fewer);
    this->expectAccurate(evaluate(solver, fewer), ewald(fewer));
}

TYPED_TEST(NearFunctions, GivePotentialsOfParticlesAndPoints)
{
    using Real = typename TypeParam::Real;
    std::vector<double> widths;
    const Law law       = laws()[0];
    const System system = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.08, &widths));
    widths              = roundedWidths<Real>(widths);
    Solver<Real> solver(this->options(Boundary::Open));
    load(solver, system);
    setWidths(solver, law.function, widths);
    const std::vector<Real> x = flatPositions<Real>(system);
    const Box box(system.box);
    std::vector<Real> forces(x.size()), potentials(system.size());
    Request request;
    request.energy = true;
    const Totals totals =
            solver.evaluate(x.data(), box.rows, forces.data(), request, potentials.data());
    double sum = 0;
    for (int i = 0; i < system.size(); ++i)
    {
        sum += system.charges[i] * potentials[i];
    }
    const double scale = rootMeanSquare(vectorsOf(forces));
    EXPECT_NEAR(sum, 2 * totals.energy, this->accuracy() * scale * system.size());

    // at a site where there are four particles, near one without a width, and between
    Vector beside = system.positions[3];
    beside[0] += 0.03;
    for (const Vector& at : { system.positions[1], beside, Vector{ 1, 1, 1 } })
    {
        std::vector<Real> point(3);
        std::transform(at.begin(), at.end(), point.begin(), [](double c) { return Real(c); });
        double expected = 0;
        for (int i = 0; i < system.size(); ++i)
        {
            double r2 = 0;
            for (int k = 0; k < 3; ++k)
            {
                r2 += std::pow(static_cast<double>(point[k]) - system.positions[i][k], 2);
            }
            // a point has no width
            const double f =
                    widths[i] > 0 ? static_cast<double>(law.terms(std::sqrt(r2), widths[i]).value)
                                  : 1 / std::sqrt(r2);
            expected += c_coulomb * system.charges[i] * f;
        }
        Real potential = 0;
        solver.evaluateAt(x.data(), box.rows, point.data(), 1, &potential, nullptr);
        EXPECT_NEAR(potential, expected, 5 * this->accuracy() * scale);
    }
}

TYPED_TEST(NearFunctions, OfPerturbedChargesMixEnergies)
{
    using Real = typename TypeParam::Real;
    std::vector<double> widths;
    const Law law       = laws()[3];
    const System system = rounded<Real>(overlapping(namedBox("cube", 8.0), 0.02, &widths));
    System other        = system;
    for (int i = 1; i < 20; ++i)
    {
        other.charges[i] = i % 4 == 0 ? 0 : -0.5 * system.charges[i];
    }
    other              = rounded<Real>(other);
    constexpr double l = 0.3;
    double expected    = 0;
    double difference  = 0;
    std::vector<Vector> forces(system.size());
    for (const System* state : std::vector<const System*>{ &system, &other })
    {
        Solver<Real> solver(this->givenCells());
        load(solver, *state);
        setWidths(solver, law.function, widths);
        const Evaluation result = evaluate(solver, *state);
        const double part       = state == &system ? 1 - l : l;
        expected += part * result.energy;
        difference += (state == &system ? -1 : 1) * result.energy;
        for (int i = 0; i < 3 * system.size(); ++i)
        {
            forces[i / 3][i % 3] += part * result.forces[i / 3][i % 3];
        }
    }
    Solver<Real> solver(this->givenCells());
    load(solver, system);
    const std::vector<Real> a(system.charges.begin(), system.charges.end());
    const std::vector<Real> b(other.charges.begin(), other.charges.end());
    solver.setPerturbedCharges(a.data(), b.data(), system.size());
    setWidths(solver, law.function, widths);
    Request request;
    request.energy = request.dEnergyDLambda = true;
    request.lambda                          = l;
    const std::vector<Real> x               = flatPositions<Real>(system);
    std::vector<Real> f(x.size());
    const Totals totals = solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
    const double error  = 2 * c_deviations * energyError(forces, this->accuracy());
    EXPECT_NEAR(totals.energy, expected, error);
    EXPECT_NEAR(totals.dEnergyDLambda, difference, 2 * error);
    EXPECT_LE(relativeError(vectorsOf(f), forces), 3 * this->accuracy());
}

TYPED_TEST(NearFunctions, RefuseWhatIsNotLegal)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(randomCharges(namedBox("flat", 8.0), 20, 3));
    Solver<Real> solver(this->reproducibleCells());
    load(solver, system);
    const NearFunction smeared = laws()[1].function;
    const auto refusal         = [&](const auto& call)
    {
        try
        {
            call();
        }
        catch (const Error& error)
        {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            return std::string(error.what());
        }
        return std::string("nothing was refused");
    };
    const auto set = [&](std::vector<double> widths) { setWidths(solver, smeared, widths); };
    std::vector<double> widths(20, 0.02);
    set(widths);
    const Evaluation before = evaluate(solver, system);
    EXPECT_NE(refusal(
                      [&] {
                          set({ 0.1, 0.1 });
                      })
                      .find("for 2 particles, the charges for 20"),
              std::string::npos);
    for (const double bad : { -0.1, std::nan(""), HUGE_VAL })
    {
        widths[7] = bad;
        EXPECT_NE(refusal([&] { set(widths); }).find("width of particle 7"), std::string::npos);
    }
    expectSameBits(evaluate(solver, system), before);
    // the flat box is 0.9 nm high
    widths[7] = 0.2;
    set(widths);
    EXPECT_NE(refusal([&] { evaluate(solver, system); }).find("half of the smallest distance"),
              std::string::npos);
    widths[7] = 0.02;
    set(widths);
    expectSameBits(evaluate(solver, system), before);
}

TEST(NearFunctionsOfAnyDevice, AreAccepted)
{
    const System system = randomCharges(namedBox("cube", 8.0), 20, 3);
    Solver<float> solver(Options{});
    load(solver, system);
    const std::vector<float> widths(system.size(), 0.02F);
    EXPECT_NO_THROW(solver.setNearFunction(laws()[1].function, widths.data(), 20));
    evaluate(solver, system);
}

} // namespace
} // namespace test
} // namespace farfield
