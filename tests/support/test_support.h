/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the tests of the public interface share: the configurations they run in, a call
 *         in the terms of reference.h, and the bounds that results are held to.
 */
#ifndef FARFIELD_TESTS_TEST_SUPPORT_H
#define FARFIELD_TESTS_TEST_SUPPORT_H

#include <cctype>
#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "farfield/farfield.h"

#include "reference.h"
#include "solver_input.h"

namespace farfield
{
namespace test
{

//! Helpers of every solver on a GPU whose options come from its configuration.
inline DeviceList helpersOfTests;

//! A backend and a precision; every typed test runs in each.
template<class RealType, Device deviceValue>
struct Configuration
{
    using Real                     = RealType;
    static constexpr Device device = deviceValue;
    static Options options()
    {
        Options result;
        result.device = device;
        if (device == Device::Gpu)
        {
            result.helperDevices = helpersOfTests;
        }
        return result;
    }
};

//! The same on the CPU, which nothing helps.
inline Options optionsOnCpu(Options options)
{
    options.device        = Device::Cpu;
    options.helperDevices = {};
    return options;
}

// Types of their own, because their names become part of the tests' names.
struct CpuFloat : Configuration<float, Device::Cpu>
{
};
struct CpuDouble : Configuration<double, Device::Cpu>
{
};
struct GpuFloat : Configuration<float, Device::Gpu>
{
};
struct GpuDouble : Configuration<double, Device::Gpu>
{
};

//! Those on a GPU; only builds with CUDA can run them.
using GpuConfigurations = ::testing::Types<GpuFloat, GpuDouble>;
#ifdef FARFIELD_TESTS_WITH_CUDA
//! The configurations of this build.
using Configurations = ::testing::Types<CpuFloat, CpuDouble, GpuFloat, GpuDouble>;
//! Those in double precision, for laws that single precision cannot resolve.
using DoubleConfigurations = ::testing::Types<CpuDouble, GpuDouble>;
#else
using Configurations       = ::testing::Types<CpuFloat, CpuDouble>;
using DoubleConfigurations = ::testing::Types<CpuDouble>;
#endif

//! Whether a test has time for more cases: ./quickstart.sh test-long says so.
inline bool isLong()
{
    return std::getenv("FARFIELD_TEST_LONG") != nullptr;
}

/*! \brief Whether the k-th case of a law is for this precision.
 *
 *  Laws are templates: the short form has each case in single or in double precision, the long form in both. */
template<class Real>
bool isTurnOf(size_t k)
{
    return isLong() || k % 2 == (sizeof(Real) == 4 ? 0 : 1);
}

//! Why nothing can run on a device; empty if it can.
inline std::string whyUnavailable(Device device)
{
    try
    {
        Options options;
        options.device = device;
        const Solver<float> solver(options);
        return {};
    }
    catch (const Error& error)
    {
        if (error.code() != ErrorCode::DeviceFailure)
        {
            throw;
        }
        return error.what();
    }
}

//! Every engine of a device, the first two on every device.
inline std::vector<M2lEngine> enginesOf(Device device)
{
    if (device == Device::Cpu)
    {
        return { M2lEngine::Fft, M2lEngine::Hierarchy };
    }
    return { M2lEngine::Fft, M2lEngine::Hierarchy, M2lEngine::Symmetric, M2lEngine::Gemm };
}

//! Skips the tests of configurations whose device is absent.
template<class Config>
class ConfiguredTest : public ::testing::Test
{
protected:
    void SetUp() override
    {
        static const std::string c_reason = whyUnavailable(Config::device);
        if (!c_reason.empty())
        {
            GTEST_SKIP() << c_reason;
        }
    }
};

//! Tests of solvers whose results may be compared bit by bit.
template<class Config>
class ReproducibleTest : public ConfiguredTest<Config>
{
public:
    using Real = typename Config::Real;

    static Options options()
    {
        Options options      = Config::options();
        options.reproducible = true;
        options.threads      = 2;
        return options;
    }
};

//! Lower case, letters, digits, signs and points only: "cell size" and cellSize are the same name.
inline std::string plain(const std::string& text)
{
    std::string result;
    for (const char c : text)
    {
        if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.')
        {
            result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    return result;
}

//! Expects an Error of that code whose text contains all the words.
inline void expectError(ErrorCode code,
                        const std::vector<std::string>& words,
                        const std::function<void()>& call)
{
    try
    {
        call();
        ADD_FAILURE() << "no error, but one that names " << words.front() << " is due";
    }
    catch (const Error& error)
    {
        EXPECT_EQ(error.code(), code) << error.what();
        for (const std::string& word : words)
        {
            EXPECT_NE(plain(error.what()).find(plain(word)), std::string::npos)
                    << "\"" << error.what() << "\" does not say " << word;
        }
    }
}

//! Forces out of the layout of Solver::evaluate().
template<class Real>
std::vector<Vector> vectorsOf(const std::vector<Real>& flat)
{
    std::vector<Vector> result(flat.size() / 3);
    for (size_t i = 0; i < result.size(); ++i)
    {
        result[i] = { flat[3 * i], flat[3 * i + 1], flat[3 * i + 2] };
    }
    return result;
}

//! What Solver::evaluate() returns, and its forces.
template<class Real>
Evaluation evaluationOf(const Totals& totals, const std::vector<Real>& forces)
{
    Evaluation result;
    result.energy = totals.energy;
    result.forces = vectorsOf(forces);
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 3; ++j)
        {
            result.virial[i][j] = totals.virial[i][j];
        }
    }
    return result;
}

//! Evaluates; charges and exclusions must have been loaded.
template<class Real>
Evaluation evaluate(Solver<Real>& solver, const System& system, const Request& request = {})
{
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> f(x.size());
    const Totals totals = solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
    return evaluationOf(totals, f);
}

//! Expects two evaluations to be equal bit by bit.
inline void expectSameBits(const Evaluation& a, const Evaluation& b)
{
    EXPECT_EQ(a.energy, b.energy);
    EXPECT_EQ(a.forces, b.forces);
    EXPECT_EQ(a.virial, b.virial);
}

/*! \brief Relative rounding error of a force.
 *
 *  A displacement between particles 0.1 nm apart in cells of up to 0.8 nm carries a few units of
 *  rounding of the cell edge: 2 * 8 u relative, doubled by the inverse square; the sums over near
 *  pairs and coefficients add as much again. 64 u, u = half the machine epsilon. In double
 *  precision operators of order 20 lose another factor: their terms reach 1e3 times the result. */
template<class Real>
constexpr double roundingFloor()
{
    return sizeof(Real) == 4 ? 64 * 6.0e-8 : 64 * 1.1e-16 * 1e3;
}

//! All within rounding of the largest, and of what charges of no size do.
template<class Real>
void expectNear(const std::vector<Real>& values, const std::vector<Real>& expected)
{
    double largest = 0, difference = 0;
    for (size_t k = 0; k < expected.size(); ++k)
    {
        largest    = std::max(largest, std::abs(static_cast<double>(expected[k])));
        difference = std::max(
                difference,
                std::abs(static_cast<double>(values[k]) - static_cast<double>(expected[k])));
    }
    EXPECT_LE(difference, 10 * roundingFloor<Real>() * largest + 1e-9);
}

//! Factor between the RMS error of one system and the prediction for uncorrelated charges, which is
//! a mean: particles sample the corners of their cells, where the errors are, unevenly, the more so
//! the fewer they are.
inline double slack(int particles)
{
    return 2 * (1 + 2 / std::sqrt(std::max(particles, 1)));
}

//! Standard deviations that a single number such as an energy may be off.
constexpr double c_deviations = 5;

//! Absolute bounds on what an evaluation may be off.
struct Bounds
{
    double force     = 0; //!< RMS over particles, kJ/mol/nm
    double energy    = 0; //!< kJ/mol
    double virial    = 0; //!< largest entry, kJ/mol
    double predicted = 0; //!< RMS truncation error of the forces, kJ/mol/nm, no slack
};

/*! \brief How much more than uncorrelated charges those of molecules may do at once.
 *
 *  Sum over molecules of (sum |q|)^2, divided by sum q^2: their errors may all add. Molecules
 *  are what excluded pairs connect; 1 for single charges, 2.7 for water. */
inline double coherence(const System& system)
{
    std::vector<int> molecule(system.size());
    std::iota(molecule.begin(), molecule.end(), 0);
    const auto root = [&](int i)
    {
        while (molecule[i] != i)
        {
            i = molecule[i] = molecule[molecule[i]];
        }
        return i;
    };
    for (const auto& [i, j] : system.exclusions)
    {
        molecule[root(i)] = root(j);
    }
    std::vector<double> sums(system.size());
    double squares = 0, together = 0;
    for (int i = 0; i < system.size(); ++i)
    {
        sums[root(i)] += std::abs(system.charges[i]);
        squares += system.charges[i] * system.charges[i];
    }
    for (const double sum : sums)
    {
        together += sum * sum;
    }
    return squares == 0 ? 1 : together / squares;
}

//! Sum over particles of the energy with a neighbour at 0.2 nm, kJ/mol: near and excluded pairs.
inline double pairEnergies(const System& system)
{
    return system.size() * c_coulomb * system.meanSquareCharge() / 0.2;
}

/*! \brief Rounding of energy and virial between two evaluations on one grid: near and excluded
 *         pairs are rounded each on its own. */
template<class Real>
double pairRounding(const System& system)
{
    return roundingFloor<Real>() * pairEnergies(system) / std::sqrt(system.size());
}

/*! \brief Bounds from the truncation error of uncorrelated charges in the cells in use.
 *
 *  Forces: <q^2> k sqrt(n_c sum_D <|e_D|^2>), e_D the error of the truncated bipolar expansion for
 *  unit charges, n_c the particles per cell. The charges of a molecule may add up, see
 *  coherence(): its root for the sources of a force, itself for an energy.
 *
 *  Energy: 1/2 sum q phi counts each pair error twice, hence sqrt(N/2) times the error of one
 *  particle's q phi; a net charge adds the mean. In a hierarchy the level above works with twice
 *  the cell edge: squared force errors fall by 2 per level, a sum below 2; squared potential
 *  errors grow by 2.
 *
 *  Virial: the strain derivative multiplies a term of degree l + l' by at most l + l' + 1, and the
 *  omitted terms start between p + 1 and 2 p + 2.
 *
 *  Least-squares operators are held to the bound of the truncated ones. Order 0 has no far forces
 *  at all and its potentials converge conditionally: the bound is the whole. */
template<class Real>
Bounds boundsFor(const System& system, const Setup& setup, const Evaluation& reference)
{
    const double perCell = double(system.size()) / std::max(1LL, setup.leafCells);
    const Truncation t =
            predictTruncation(setup.cells, system.box, setup.directRange, perCell, setup.order);
    const double q2     = system.meanSquareCharge();
    const double mean   = system.size() == 0 ? 0 : system.netCharge() / system.size();
    const double levels = std::max(1, setup.levels);
    Bounds b;
    const double together = coherence(system);
    b.predicted           = c_coulomb * q2 * std::sqrt(together) * t.force[setup.order];
    b.force               = slack(system.size()) * b.predicted * (levels > 1 ? std::sqrt(2.0) : 1.0)
              + roundingFloor<Real>() * rootMeanSquare(reference.forces);
    b.energy = c_coulomb
               * (c_deviations * q2 * together * t.potential[setup.order]
                          * std::sqrt(0.5 * system.size()) * std::sqrt(std::exp2(levels - 1))
                  + 0.5 * system.size() * mean * mean * std::abs(t.meanPotential[setup.order])
                            * std::exp2(2 * (levels - 1)));
    // Rounding of energies: that of the far potentials of N particles.
    const double rounding = roundingFloor<Real>() * pairEnergies(system);
    b.virial              = (2 * setup.order + 3) * b.energy + rounding;
    b.energy += rounding;
    return b;
}

//! Checks an evaluation against the reference, each part within its bound.
inline void expectClose(const Evaluation& result, const Evaluation& reference, const Bounds& bounds)
{
    const double rms = rootMeanSquare(reference.forces);
    EXPECT_LE(relativeError(result.forces, reference.forces) * rms, bounds.force)
            << "RMS force error and bound, kJ/mol/nm; RMS force " << rms;
    EXPECT_LE(std::abs(result.energy - reference.energy), bounds.energy)
            << "energies " << result.energy << " and " << reference.energy;
    EXPECT_LE(largestDifference(result.virial, reference.virial), bounds.virial) << "virial";
}

//! One line that says what ran.
inline std::string describe(const System& system, const Setup& setup)
{
    std::ostringstream text;
    text << system.name << ", N = " << system.size() << ", p = " << setup.order
         << ", ws = " << setup.directRange << ", " << nameOf(setup.m2l)
         << (setup.leastSquares ? ", least squares" : ", truncated") << ", levels " << setup.levels
         << ", cells";
    for (const auto& row : setup.cells)
    {
        text << " [" << row[0] << " " << row[1] << " " << row[2] << "]";
    }
    return text.str();
}

//! Expects two results to differ by rounding: that of both.
template<class Real>
void expectEqualToRounding(const Evaluation& result,
                           const Evaluation& expected,
                           const System& system)
{
    const double rms      = rootMeanSquare(expected.forces);
    const double pairs    = pairEnergies(system) / std::max(1, system.size());
    const double rounding = 2 * roundingFloor<Real>() * (rms + pairs);
    EXPECT_LE(relativeError(result.forces, expected.forces) * rms, rounding);
    const double ofTotals = 2 * roundingFloor<Real>() * pairEnergies(system);
    EXPECT_NEAR(result.energy, expected.energy, ofTotals);
    EXPECT_LE(largestDifference(result.virial, expected.virial), ofTotals);
}

/*! \brief Evaluates at two positions of the grid with each engine, and with the best one at a finer
 *         accuracy; the long form has all engines at both.
 *  \param[in] check  called with each result and the accuracy that was asked for */
template<class Real, class Check>
void evaluateWithEachEngine(const Options& base, const System& system, const Check& check)
{
    constexpr double c_usual                           = 3e-4;
    constexpr double c_fine                            = sizeof(Real) == 4 ? 1e-5 : 1e-6;
    std::vector<std::pair<M2lEngine, double>> settings = { { M2lEngine::Fft, c_usual },
                                                           { M2lEngine::Hierarchy, c_usual },
                                                           { M2lEngine::Auto, c_fine } };
    if (isLong())
    {
        settings.insert(settings.end(),
                        { { M2lEngine::Auto, c_usual },
                          { M2lEngine::Fft, c_fine },
                          { M2lEngine::Hierarchy, c_fine } });
    }
    for (const auto& [engine, accuracy] : settings)
    {
        Options options  = base;
        options.m2l      = engine;
        options.accuracy = accuracy;
        Solver<Real> solver(options);
        load(solver, system);
        for (const long long step : { 0, 5 })
        {
            Request request;
            request.step            = step;
            const Evaluation result = evaluate(solver, system, request);
            SCOPED_TRACE(describe(system, solver.setup()) + ", accuracy "
                         + std::to_string(accuracy));
            check(result, accuracy);
        }
    }
}

//! Evaluates with \p options and checks everything against Ewald.
template<class Real>
void expectMatchesEwald(const System& exact, const Options& options)
{
    const System system        = rounded<Real>(exact);
    const Evaluation reference = ewald(system);
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation result = evaluate(solver, system);
    SCOPED_TRACE(describe(system, solver.setup()));
    expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
}

} // namespace test
} // namespace farfield

#endif
