/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A solver and what it was told, whose every evaluation is checked.
 */
#ifndef FARFIELD_TESTS_FUZZ_CHECKED_SOLVER_H
#define FARFIELD_TESTS_FUZZ_CHECKED_SOLVER_H

#include <cmath>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "accuracy_case.h"
#include "changing_systems.h"
#include "command_line.h"
#include "draw_exclusions.h"
#include "expectation.h"
#include "open_systems.h"
#include "sequence.h"
#include "slab_sum.h"
#include "solver_input.h"
#include "system_building.h"

namespace farfield
{
namespace test
{

//! Totals that are equal bit by bit.
inline bool areEqual(const Totals& a, const Totals& b)
{
    return a.energy == b.energy
           && std::equal(&a.virial[0][0], &a.virial[0][0] + 9, &b.virial[0][0]);
}

//! The state of a sequence of calls.
template<class Real>
class CheckedSolver
{
protected:
    explicit CheckedSolver(const FuzzSettings& settings) : settings_(settings) {}

    //! Precision, options and system on one line.
    std::string describe() const
    {
        std::ostringstream text;
        text << precisionName<Real>() << ", accuracy " << options_.accuracy << ", order "
             << options_.order << ", ws " << options_.directRange << ", cell " << options_.cellSize
             << ", " << nameOf(options_.m2l) << ", " << nameOf(options_.boundary)
             << (options_.leastSquares ? "" : ", truncated") << ", threads " << options_.threads
             << (options_.reproducible ? ", reproducible" : "") << "; " << system_.name << ", N "
             << system_.size() << ", box";
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j <= i; ++j)
            {
                text << " " << system_.box[i][j];
            }
        }
        return text.str();
    }

    [[noreturn]] void fail(const std::string& kind, const std::string& text) const
    {
        std::string setUp;
        if (solver_)
        {
            const Setup s = solver_->setup();
            std::ostringstream out;
            out << "; in use: p " << s.order << ", ws " << s.directRange << ", levels " << s.levels
                << ", cells " << s.leafCells << " of " << s.cellSize
                << " nm, diagonal over far cell " << convergenceRatio(system_.box, s)
                << ", estimate " << s.estimatedError;
            setUp = out.str();
        }
        throw Failure(kind, call_ + ": " + text + setUp);
    }

    //! Whether the accuracy decides on the order, and has been met as far as the solver knows.
    bool isLeftToTheAccuracy() const
    {
        return options_.order < 0 && !solver_->setup().isBestEffort;
    }

    void setSystem(System system)
    {
        setAsItIs(std::move(system));
        putTogether();
    }
    void setAsItIs(System system)
    {
        system_  = rounded<Real>(std::move(system));
        isKnown_ = false;
    }
    //! Without images, particles are where they are: one in a distant image is far away.
    void putTogether()
    {
        for (Vector& x : system_.positions)
        {
            for (int k = 2; k >= 0; --k)
            {
                const Vector& edge  = system_.box[k];
                const double images = std::floor(x[k] / edge[k]);
                for (int c = 0; c <= k && isOpenAlong(options_.boundary, k); ++c)
                {
                    x[c] -= images * edge[c];
                }
            }
        }
        system_ = rounded<Real>(std::move(system_));
    }

    static Request randomRequest(std::mt19937& random)
    {
        Request request;
        request.energy        = chance(random, 0.7);
        request.virial        = chance(random, 0.4);
        request.replaceForces = chance(random, 0.5);
        if (chance(random, 0.5))
        {
            request.gridOffset = { uniform(random), uniform(random), uniform(random) };
        }
        if (chance(random, 0.1))
        {
            request.gridOffset = { 1, 0, 1 };
        }
        if (chance(random, 0.3))
        {
            request.step = below(random, 1000000);
        }
        return request;
    }

    //! Runs a call in a parallel region of the caller's.
    template<class Call>
    static void runInParallel(const Call& call)
    {
        std::exception_ptr caught;
#pragma omp parallel num_threads(2)
#pragma omp single
        {
            try
            {
                call();
            }
            catch (...)
            {
                caught = std::current_exception();
            }
        }
        if (caught)
        {
            std::rethrow_exception(caught);
        }
    }

    //! Legal errors for legal input: no memory, or what only other options can mend.
    void acceptOrFail(const Error& error) const
    {
        const std::string option = error.parameter();
        const std::string text   = error.what();
        if (text.empty())
        {
            fail("error without text", "an error has no text");
        }
        const bool isLegal =
                error.code() == ErrorCode::OutOfMemory
                || (error.code() == ErrorCode::InvalidArgument
                    && (option == "accuracy" || (option == "cellSize" && options_.cellSize > 0)
                        || (option == "order" && options_.order >= 0)));
        if (!isLegal)
        {
            fail("refused", "legal input gives \"" + text + "\" [" + option + "]");
        }
    }

    /*! Evaluates and checks; false if the library refused it legally. \p totals and \p forces
     *  receive the result. */
    bool evaluateAndCheck(const Request& request,
                          std::vector<Real>* forces,
                          Totals* totals,
                          bool isInParallel = false)
    {
        const std::vector<Real> x = flatPositions<Real>(system_);
        const std::vector<Real> before(*forces);
        try
        {
            const auto call = [&] {
                *totals =
                        solver_->evaluate(x.data(), Box(system_.box).rows, forces->data(), request);
            };
            isInParallel ? runInParallel(call) : call();
        }
        catch (const Error& error)
        {
            if (*forces != before)
            {
                fail("forces after error", "forces have changed although evaluate() threw");
            }
            acceptOrFail(error);
            return false;
        }
        check(request, before, *forces, *totals);
        return true;
    }

    /*! \brief Evaluates particles of which some may be in contact, or one far away: forces alone are
     *         checked, see JudgedForces.
     *  \param[in] closest  distance of those in contact, nm */
    void evaluateAndJudge(bool isFar, double closest)
    {
        const std::vector<Real> x = flatPositions<Real>(system_);
        std::vector<Real> forces(x.size(), Real(0));
        try
        {
            solver_->evaluate(x.data(), Box(system_.box).rows, forces.data());
        }
        catch (const Error& error)
        {
            acceptOrFail(error);
            return;
        }
        if (!isLeftToTheAccuracy() || !areExclusionsUnique(system_, options_.boundary))
        {
            return;
        }
        const double area               = system_.box[0][0] * system_.box[1][1];
        const bool isSlab               = options_.boundary == Boundary::Slab;
        const std::vector<Vector> exact = isFar && isSlab
                                                  ? slabSum(system_, std::sqrt(c_pi / area)).forces
                                          : isFar ? allPairs(system_).forces
                                                  : expected().value.forces;
        const JudgedForces judged =
                judgedForces(isFar ? system_ : inVolume(system_, options_.boundary),
                             std::vector<double>(forces.begin(), forces.end()),
                             exact,
                             partOfTypicalForce<Real>(options_.accuracy));
        if (!std::isfinite(rootMeanSquare(exact)))
        {
            return; // in this precision two are at one place
        }
        // Particles may be many boxes away: where they are in it is known to the rounding of that.
        double largest = 0;
        for (const Vector& edge : system_.box)
        {
            largest = std::max(largest, 0.5 * std::sqrt(dot(edge, edge)));
        }
        for (const Vector& r : system_.positions)
        {
            largest = std::max({ largest, std::abs(r[0]), std::abs(r[1]), std::abs(r[2]) });
        }
        double floor = (1e3 + 4 * largest / closest) * std::numeric_limits<double>::epsilon();
        if (judged.inContact == 0)
        {
            // most are: what the precision makes of their distance
            floor += 2 * largest / closest * std::numeric_limits<Real>::epsilon();
        }
        // One far away changes the forces of no other into those of contacts
        const double error = isFar ? judged.ofAll : judged.error;
        if (!(error <= settings_.slack * options_.accuracy + floor))
        {
            std::ostringstream text;
            text << "RMS force error " << error;
            if (!isFar)
            {
                text << " of those that are not in contact, " << judged.inContact << " are";
            }
            fail("accuracy is missed", text.str());
        }
    }

    const Expectation& expected()
    {
        if (!isKnown_)
        {
            expectation_ = expectationFor(
                    system_, options_.boundary, partOfTypicalForce<Real>(options_.accuracy));
            isKnown_ = true;
        }
        return expectation_;
    }

    void checkForces(const Request& request,
                     const std::vector<Real>& before,
                     const std::vector<Real>& forces)
    {
        const Expectation& e = expected();
        const int n          = system_.size();
        const double unit    = std::numeric_limits<Real>::epsilon();
        const Setup s        = solver_->setup();
        double squares = 0, old = 0;
        for (int i = 0; i < n; ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                const size_t at     = 3 * static_cast<size_t>(i) + k;
                const double start  = request.replaceForces ? 0 : before[at];
                const double result = forces[at] - start;
                squares += std::pow(result - e.value.forces[i][k], 2);
                old += start * start;
            }
        }
        const double error = n == 0 ? 0 : std::sqrt(squares / n);
        // Forces are added to what is there, which rounds the sum.
        const double adding = n == 0 ? 0 : 4 * unit * std::sqrt(old / n);
        std::ostringstream numbers;
        numbers << "RMS force error " << error << " of " << e.scale << " kJ/mol/nm ("
                << error / (e.scale > 0 ? e.scale : 1) << "), magnitude of the pairs "
                << e.forceMagnitude;
        const double floor = e.forceError + adding;
        // No matter of accuracy: neither beside the result nor beside what it is the sum of.
        if (!(error <= 1e-2 * e.forceMagnitude + floor) && !(error <= 0.3 * e.scale + floor)
            && isLeftToTheAccuracy())
        {
            fail("forces are wrong", numbers.str());
        }
        // Two particles in opposite corners of cells may dominate at a position of the grid that is one of many.
        constexpr double c_rarely = 10;
        const double allowed      = settings_.slack * options_.accuracy * e.scale + floor;
        if (isLeftToTheAccuracy() && !(error <= allowed))
        {
            const double usual = errorOverPositions();
            if (!(usual <= allowed && error <= c_rarely * allowed))
            {
                numbers << ", over positions of the grid " << usual / (e.scale > 0 ? e.scale : 1);
                fail("accuracy is missed", numbers.str());
            }
        }
        // An explicit order stands: then the estimate has to say what it costs. Errors are measured as differences
        // between positions of the grid, and those of monopoles in a crystal are the same at all of them.
        const double estimated =
                settings_.slack * spread() * (s.estimatedError + 100 * unit) * e.scale + floor;
        if (!isLeftToTheAccuracy() && options_.order != 0 && !(error <= estimated))
        {
            const double usual = errorOverPositions();
            const double anew  = estimateAnew();
            if (!(usual <= estimated * std::max(1.0, anew / s.estimatedError)))
            {
                numbers << ", over positions of the grid " << usual / (e.scale > 0 ? e.scale : 1)
                        << ", estimate of a new solver " << anew;
                fail("estimate is too low", numbers.str());
            }
        }
    }

    /*! \brief What a solver that begins with the present particles says of its error.
     *
     *  The estimate is that of the positions that cells were chosen for. */
    double estimateAnew() const
    {
        Solver<Real> solver(options_);
        loadCharges(solver, system_);
        loadExclusions(solver, system_, false);
        try
        {
            solver.prepare(flatPositions<Real>(system_).data(), Box(system_.box).rows);
        }
        catch (const Error&)
        {
            return options_.accuracy; // and more: it is refused
        }
        return solver.setup().estimatedError;
    }

    /*! \brief RMS force error over many positions of the grid, kJ/mol/nm, as the estimate is.
     *
     *  One position may be off by any factor: that of two particles in opposite corners of cells
     *  whose expansions hardly converge there, or of a crystal whose planes meet those of the
     *  cells. */
    double errorOverPositions()
    {
        const Expectation& e      = expected();
        const bool isSlow         = solver_->setup().leafCells > 100000;
        const int positions       = isSlow ? 24 : 240;
        const std::vector<Real> x = flatPositions<Real>(system_);
        double squares            = 0;
        for (int k = 0; k < positions; ++k)
        {
            Request request;
            request.energy = request.virial = false;
            request.replaceForces           = true;
            request.gridOffset              = gridPosition(k);
            std::vector<Real> forces(x.size());
            solver_->evaluate(x.data(), Box(system_.box).rows, forces.data(), request);
            squares += meanSquareError(forces, e.value.forces);
        }
        return std::sqrt(squares / positions);
    }

    //! Few particles sample the positions of the grid badly, and may have moved since.
    double spread() const
    {
        return 4 + 8 / std::sqrt(std::max(system_.size(), 1));
    }

    /*! The error of q phi is at most that of the force times the length over which it acts, the
     *  edge of a cell of the coarsest level; at worst all particles agree in sign. In a crystal errors
     *  of forces cancel as the forces do, and those of potentials do not: an explicit order may be low. */
    double energyBound(const Expectation& e, const Setup& s) const
    {
        const double allowed = std::max(options_.accuracy, spread() * s.estimatedError);
        const double ratio   = std::min(1.0, convergenceRatio(system_.box, s));
        const double ofPairs =
                options_.order < 0 ? 0 : std::pow(ratio, s.order + 1) * e.forceMagnitude;
        const double length = 2 * s.cellSize * std::exp2(std::max(0, s.levels - 1));
        return settings_.slack * 2 * std::max(allowed * e.scale, ofPairs) * length * system_.size()
               + rounding(e);
    }
    //! Of energies and virials.
    static double rounding(const Expectation& e)
    {
        return 64 * std::numeric_limits<Real>::epsilon() * e.pairEnergies;
    }

    void checkEnergy(const Request& request, const Totals& totals)
    {
        const Expectation& e = expected();
        const double bound   = energyBound(e, solver_->setup());
        const bool hasEnergy = request.energy || request.virial;
        if (!hasEnergy && totals.energy != 0)
        {
            fail("energy unasked", "an energy that was not asked for is not 0");
        }
        if (hasEnergy && !(std::abs(totals.energy - e.value.energy) <= bound))
        {
            std::ostringstream text;
            text << "energy " << totals.energy << " instead of " << e.value.energy << ", bound "
                 << bound;
            fail("energy is wrong", text.str());
        }
    }

    void checkVirial(const Request& request, const Totals& totals)
    {
        const Expectation& e   = expected();
        const Setup s          = solver_->setup();
        const double roundings = rounding(e);
        const double bound     = (2 * s.order + 3) * energyBound(e, s);
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j < 3; ++j)
            {
                const double entry = totals.virial[i][j];
                if (!request.virial && entry != 0)
                {
                    fail("virial unasked", "a virial that was not asked for is not 0");
                }
                // A strain multiplies a term of degree l + l' by at most l + l' + 1.
                if (request.virial
                    && !(std::abs(entry - e.value.virial[i][j]) <= bound + roundings))
                {
                    std::ostringstream text;
                    text << "virial " << i << " " << j << " is " << entry << " instead of "
                         << e.value.virial[i][j] << ", bound " << bound + roundings;
                    fail("virial is wrong", text.str());
                }
                if (request.virial && !(std::abs(entry - totals.virial[j][i]) <= roundings))
                {
                    fail("virial is not symmetric", "virial is not symmetric");
                }
            }
        }
        if (request.virial)
        {
            const double trace = totals.virial[0][0] + totals.virial[1][1] + totals.virial[2][2];
            if (!(std::abs(trace + 0.5 * totals.energy) <= roundings + 1e-3 * bound))
            {
                std::ostringstream text;
                text << "trace of the virial " << trace << ", -E/2 " << -0.5 * totals.energy;
                fail("trace is not -E/2", text.str());
            }
        }
    }

    void check(const Request& request,
               const std::vector<Real>& before,
               const std::vector<Real>& forces,
               const Totals& totals)
    {
        if (!areExclusionsUnique(system_, options_.boundary))
        {
            return;
        }
        checkForces(request, before, forces);
        checkEnergy(request, totals);
        checkVirial(request, totals);
    }

    std::vector<Real> randomForces(std::mt19937& random)
    {
        // About as large as the result, so that adding rounds no more than the result itself.
        const double size = chance(random, 0.5) ? 0 : expected().scale;
        std::vector<Real> forces(3 * static_cast<size_t>(system_.size()));
        for (Real& f : forces)
        {
            f = static_cast<Real>(uniform(random, -size, size));
        }
        return forces;
    }

    bool evaluate(std::mt19937& random)
    {
        const Request request    = randomRequest(random);
        std::vector<Real> forces = randomForces(random);
        Totals totals;
        return evaluateAndCheck(request, &forces, &totals);
    }

    bool isReproducible() const
    {
        return settings_.device == Device::Cpu || options_.reproducible;
    }

    const FuzzSettings& settings_;
    std::string call_; //!< the present one
    Options options_;
    System system_;
    std::unique_ptr<Solver<Real>> solver_;

private:
    Expectation expectation_;
    bool isKnown_ = false;
};

} // namespace test
} // namespace farfield

#endif
