/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Runs the solver on a system with a known answer and says what accuracy it got.
 */
#ifndef FARFIELD_TESTS_ACCURACY_CASE_H
#define FARFIELD_TESTS_ACCURACY_CASE_H

#include <cmath>
#include <ctime>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "farfield/farfield.h"

#include "solver_input.h"
#include "systems.h"

namespace farfield
{
namespace test
{

//! Particles times positions of the grid that show what rare places in a cell do.
constexpr int c_enoughSamples = 120000;

//! What was asked for and what came out; errors are relative to forceScale().
struct Accuracy
{
    std::string refusal; //!< text of the Error, if the request was refused
    ErrorCode refusalCode = ErrorCode::InvalidArgument;
    std::string refusedOption; //!< Error::parameter()
    Setup setup;
    double measured       = 0; //!< RMS over particles and positions of the grid
    double worst          = 0; //!< RMS over particles, the worst position of the grid
    double floor          = 0; //!< what the reference itself may be off
    double prepareSeconds = 0, evaluateSeconds = 0;
};

/*! \brief Positions of the grid that are tried: multiples of roots of primes modulo 1, which cover
 *         the cell evenly; the library's own sequence is another one. */
inline std::array<double, 3> gridPosition(int k)
{
    const double ratios[3] = { std::sqrt(2.0), std::sqrt(3.0), std::sqrt(5.0) };
    std::array<double, 3> offset;
    for (int d = 0; d < 3; ++d)
    {
        const double turns = k * ratios[d];
        offset[d]          = turns - std::floor(turns);
    }
    return offset;
}

/*! \brief Mean over particles of squared differences, (kJ/mol/nm)^2.
 *  \param[in] forces  [n][3], in the layout of Solver::evaluate() */
template<class Real>
double meanSquareError(const std::vector<Real>& forces, const std::vector<Vector>& reference)
{
    double squares = 0;
    for (size_t i = 0; i < forces.size(); ++i)
    {
        const double difference = forces[i] - reference[i / 3][i % 3];
        squares += difference * difference;
    }
    return squares / std::max<double>(1, static_cast<double>(reference.size()));
}

/*! \brief Prepares a solver and compares its forces with the reference.
 *
 *  \param[in] positions  number of positions of the grid; the first is the origin. Few particles
 *                        sample the cells badly at one position, so they need more
 *  \param[in] most       positions are added up to this number, for 20 s of processor time, until
 *                        there are c_enoughSamples and the standard error of the mean square error
 *                        is a fifth of it: rare positions may have most of the error */
template<class Real>
Accuracy measureAccuracy(const ReferenceSystem& reference,
                         const Options& options,
                         int positions,
                         int most = 0)
{
    constexpr double c_seconds = 20, c_standardError = 0.2;

    using Clock        = std::chrono::steady_clock;
    const auto seconds = [](Clock::time_point begin)
    { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const System& system      = reference.system;
    const std::vector<Real> x = flatPositions<Real>(system);
    const Box box(system.box);
    Accuracy result;
    const double scale =
            forceScale(system, reference.forces, partOfTypicalForce<Real>(options.accuracy));
    // Errors of systems without any force are absolute: they must vanish.
    const double unit = scale > 0 ? scale : 1;
    result.floor      = reference.forceError / unit;
    try
    {
        Solver<Real> solver(options);
        load(solver, system, false);
        const auto begin = Clock::now();
        solver.prepare(x.data(), box.rows);
        result.prepareSeconds  = seconds(begin);
        result.setup           = solver.setup();
        result.evaluateSeconds = std::numeric_limits<double>::max();
        double sum = 0, sumOfSquares = 0;
        const std::clock_t first = std::clock();
        const auto isKnown       = [&](int k)
        {
            const double variance = (k * sumOfSquares / (sum * sum) - 1) / k;
            const bool isRough    = std::sqrt(variance) > c_standardError // not where all is zero
                                 || k * system.size() < c_enoughSamples;
            return k >= most || !isRough || std::clock() - first > c_seconds * CLOCKS_PER_SEC;
        };
        int k = 0;
        for (; k < positions || !isKnown(k); ++k)
        {
            Request request;
            request.energy = request.virial = false;
            request.gridOffset              = gridPosition(k);
            std::vector<Real> f(x.size());
            const auto start = Clock::now();
            solver.evaluate(x.data(), box.rows, f.data(), request);
            result.evaluateSeconds = std::min(result.evaluateSeconds, seconds(start));
            const double square    = meanSquareError(f, reference.forces);
            sum += square;
            sumOfSquares += square * square;
            // a NaN must not pass
            const double error = std::sqrt(square) / unit;
            result.worst       = error <= result.worst ? result.worst : error;
        }
        result.measured = std::sqrt(sum / k) / unit;
    }
    catch (const Error& error)
    {
        result.refusal       = error.what();
        result.refusalCode   = error.code();
        result.refusedOption = error.parameter();
    }
    return result;
}

} // namespace test
} // namespace farfield

#endif
