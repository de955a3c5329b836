/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A call of the fuzz program that is a sequence of its own: systems on ranks that change from
 *         evaluation to evaluation, and callers that break their promises.
 */
#ifndef FARFIELD_TESTS_FUZZ_RANKS_CALL_H
#define FARFIELD_TESTS_FUZZ_RANKS_CALL_H

#include <cmath>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "changing_systems.h"
#include "draw_exclusions.h"
#include "expectation.h"
#include "in_process_ranks.h"
#include "sequence.h"
#include "system_building.h"
#include "systems.h"

namespace farfield
{
namespace test
{

/*! \brief Evaluations by a DistributedSolver, each compared with the reference and with a Solver that
 *         takes the same steps. */
template<class Real>
class RanksCall
{
public:
    //! \param[in] given  of which what ranks have is taken; the accuracy decides on cells
    RanksCall(std::mt19937* random, const FuzzSettings& settings, const Options& given) :
        random_(*random), settings_(settings), options_(given), ranks_(1 + below(random_, 6))
    {
        options_.boundary    = Boundary::Periodic;
        options_.order       = -1;
        options_.directRange = 0;
        options_.cellSize    = 0;
        options_.threads     = 1;
        options_.tune        = false;
        options_.accuracy    = std::max(options_.accuracy, 1e-5);
        if (settings.device == Device::Gpu)
        {
            options_.m2l = M2lEngine::Auto; // ranks have no trees there
        }
        for (int steps = 2 + below(random_, 5); steps > 0; steps--)
        {
            addStep();
        }
    }

    /*! \brief Makes it.
     *  \param[in] acceptOrFail  is given errors that may be legal
     *  \throws Failure */
    template<class AcceptOrFail>
    void make(const AcceptOrFail& acceptOrFail)
    {
        onRanks(ranks_, [&](Communicator& communicator) { run(&communicator); });
        Solver<Real> single(options_);
        for (size_t k = 0; k < steps_.size(); k++)
        {
            check(k, &single, acceptOrFail);
        }
    }

private:
    //! What a caller may do wrong, on one rank unless said.
    enum class Broken
    {
        Nothing,
        Missing,   //!< a particle is on no rank
        Doubled,   //!< one is on two, or twice on the only one
        Forgotten, //!< setLocal() after setSystem(), on all
        OneSided,  //!< a pair is listed at one particle only, on all
        OtherSystem,
        OtherBox,
        NotFinite,
        Count
    };
    struct Step
    {
        System system;
        Division rankOf;
        bool isOtherSystem = true, isOtherDivision = true;
        bool hasContacts = false; //!< these part in the next step
        Request request;
        Broken broken = Broken::Nothing;
        // what came out of it
        std::vector<Vector> forces;
        double energy     = 0;
        bool isBestEffort = false;
        std::vector<std::optional<Error>> errors; //!< [ranks]
    };

    void addStep()
    {
        Step step;
        if (steps_.empty() || (!parted_ && chance(random_, 0.25)))
        {
            step.system = rounded<Real>(randomSystem(random_, std::min(settings_.most, 250)));
        }
        else
        {
            // that of a step that was valid up to here is known to the ranks
            step.system        = parted_ ? *parted_ : steps_.back().system;
            step.isOtherSystem = steps_.back().broken != Broken::Nothing;
            if (!std::exchange(parted_, std::nullopt))
            {
                change(&step);
            }
        }
        const int owners     = 1 + below(random_, ranks_);
        step.isOtherDivision = step.isOtherSystem || chance(random_, 0.4);
        if (step.isOtherDivision)
        {
            const bool areDomains = chance(random_, 0.5);
            step.rankOf           = areDomains ? bricks(step.system, { 1, 1, owners }) : Division();
            for (int i = 0; !areDomains && i < step.system.size(); i++)
            {
                step.rankOf.push_back(below(random_, owners));
            }
        }
        else
        {
            step.rankOf = steps_.back().rankOf;
        }
        step.request.step          = chance(random_, 0.5) ? below(random_, 1000) : -1;
        step.request.replaceForces = true;
        if (chance(random_, 0.25) && step.system.size() > 1)
        {
            step.broken = static_cast<Broken>(below(random_, static_cast<int>(Broken::Count)));
        }
        const bool isOfSystem = step.broken == Broken::Forgotten || step.broken == Broken::OneSided
                                || step.broken == Broken::OtherSystem;
        const bool isOneAlone =
                ranks_ == 1
                && (step.broken == Broken::OtherSystem || step.broken == Broken::OtherBox);
        const auto& q = step.system.charges;
        const bool isUncharged =
                step.broken == Broken::NotFinite
                && std::find_if(q.begin(), q.end(), [](double c) { return c != 0; }) == q.end();
        if (isOneAlone || isUncharged
            || (step.broken == Broken::OneSided && pairToSpoil(step.system) < 0))
        {
            step.broken = Broken::Nothing;
        }
        if (step.broken != Broken::Nothing)
        {
            step.isOtherDivision = true;
            step.isOtherSystem   = step.isOtherSystem || isOfSystem;
        }
        step.forces.resize(step.system.size());
        step.errors.resize(ranks_);
        steps_.push_back(step);
    }

    //! Another system like the last one.
    void change(Step* step)
    {
        System& system = step->system;
        const int what = below(random_, 6);
        if (what < 2)
        {
            const double far = logUniform(random_, 1e-4, 0.1);
            for (Vector& x : system.positions)
            {
                for (double& component : x)
                {
                    component += uniform(random_, -far, far);
                }
            }
            system = rounded<Real>(system);
            return;
        }
        if (what == 2)
        {
            parted_           = system;
            step->hasContacts = true;
            const int pairs   = 1 + below(random_, 40);
            system            = rounded<Real>(
                    withContacts(system, pairs, logUniform(random_, 1e-4, 0.1), random_));
            return;
        }
        step->isOtherSystem = true;
        if (what == 3)
        {
            // charges that become zero, some or all
            const double part = chance(random_, 0.3) ? 1 : uniform(random_);
            for (double& q : system.charges)
            {
                q = chance(random_, part) ? 0 : q;
            }
        }
        else if (what == 4)
        {
            excludeNoPairs(&system);
        }
        else
        {
            excludePairs(&system, options_.boundary, 40, random_);
        }
    }

    //! The number of a pair of two particles that is listed once in a direction; -1: there is none.
    static int pairToSpoil(const System& system)
    {
        std::vector<int> offsets, partners;
        compressedRows(system, true, &offsets, &partners);
        for (int i = 0; i < system.size(); i++)
        {
            for (int k = offsets[i]; k < offsets[i + 1]; k++)
            {
                const int j = partners[k];
                if (j != i
                    && std::count(
                               partners.begin() + offsets[i], partners.begin() + offsets[i + 1], j)
                               == 1)
                {
                    return k;
                }
            }
        }
        return -1;
    }

    //! All steps, of one rank.
    void run(Communicator* communicator)
    {
        DistributedSolver<Real> solver(options_, communicator);
        for (Step& step : steps_)
        {
            try
            {
                evaluate(&step, communicator->rank(), &solver);
            }
            catch (const Error& error)
            {
                step.errors[communicator->rank()] = error;
            }
        }
    }

    void evaluate(Step* step, int rank, DistributedSolver<Real>* solver)
    {
        const System& system = step->system;
        const bool isLast    = rank == ranks_ - 1;
        Portion<Real> portion(system, step->rankOf, rank);
        if (step->broken == Broken::OneSided)
        {
            const int pair = pairToSpoil(system);
            portion.partners.erase(portion.partners.begin() + pair);
            for (int& offset : portion.offsets)
            {
                offset -= offset > pair ? 1 : 0;
            }
        }
        if (step->broken == Broken::OtherSystem && isLast)
        {
            portion.charges[0] += 1;
        }
        if (step->broken == Broken::Doubled && isLast)
        {
            portion.index.push_back(0);
        }
        const auto first = std::find(portion.index.begin(), portion.index.end(), 0);
        if (step->broken == Broken::Missing && first != portion.index.end())
        {
            portion.index.erase(first);
        }
        if (step->isOtherSystem)
        {
            portion.giveSystemTo(solver);
        }
        if (step->isOtherDivision && step->broken != Broken::Forgotten)
        {
            portion.giveLocalTo(solver);
        }
        Box box(system.box);
        if (step->broken == Broken::OtherBox && isLast)
        {
            box.rows[2][2] *= 1.01;
        }
        std::vector<Real> x = portion.positions(system);
        if (step->broken == Broken::NotFinite)
        {
            for (size_t i = 0; i < portion.index.size(); i++)
            {
                x[3 * i] = std::numeric_limits<Real>::quiet_NaN();
            }
        }
        std::vector<Real> f(x.size(), Real(1));
        const Totals totals = solver->evaluate(x.data(), box.rows, f.data(), step->request);
        const std::lock_guard<std::mutex> lock(mutex_);
        step->isBestEffort = solver->setup().isBestEffort;
        step->energy += totals.energy;
        for (size_t i = 0; i < portion.index.size(); i++)
        {
            for (int k = 0; k < 3; k++)
            {
                step->forces[portion.index[i]][k] = static_cast<double>(f[3 * i + k]);
            }
        }
    }

    template<class AcceptOrFail>
    void check(size_t number, Solver<Real>* single, const AcceptOrFail& acceptOrFail)
    {
        const Step& step = steps_[number];
        for (const std::optional<Error>& error : step.errors)
        {
            const std::optional<Error>& first = step.errors[0];
            if (error.has_value() != first.has_value()
                || (error && std::string(error->what()) != first->what()))
            {
                fail(number, "ranks do not agree", "ranks have other errors, or none");
            }
        }
        if (step.broken != Broken::Nothing)
        {
            if (!step.errors[0] || step.errors[0]->code() != ErrorCode::InvalidArgument)
            {
                fail(number, "broken promise", "what a caller must not do is no error");
            }
            return;
        }
        // takes the same steps
        load(*single, step.system);
        const std::vector<Real> x = flatPositions<Real>(step.system);
        std::vector<Real> ofOne(x.size());
        std::optional<Error> refused;
        try
        {
            single->evaluate(x.data(), Box(step.system.box).rows, ofOne.data(), step.request);
        }
        catch (const Error& error)
        {
            refused = error;
        }
        if (step.errors[0])
        {
            acceptOrFail(*step.errors[0]);
            return;
        }
        if (!areExclusionsUnique(step.system, Boundary::Periodic))
        {
            return;
        }
        const Expectation expected = expectationFor(
                step.system, Boundary::Periodic, partOfTypicalForce<Real>(options_.accuracy));
        if (step.hasContacts)
        {
            judge(number, ofOne, expected.value.forces);
            return;
        }
        const double error = errorOf(step.forces, expected);
        const double usual = refused ? 0 : errorOf(vectorsFrom(ofOne), expected);
        const double allowed =
                settings_.slack * options_.accuracy * expected.scale + expected.forceError;
        if (!(error <= std::max(allowed, 2 * usual)))
        {
            std::ostringstream text;
            text << "RMS force error " << error << " of " << expected.scale
                 << " kJ/mol/nm, of one rank " << usual;
            fail(number, "forces of ranks are wrong", text.str());
        }
    }

    //! Checks forces of which some are those of contacts, see JudgedForces, beside those of one rank.
    void judge(size_t number,
               const std::vector<Real>& ofOne,
               const std::vector<Vector>& exact) const
    {
        const Step& step = steps_[number];
        if (step.isBestEffort || !std::isfinite(rootMeanSquare(exact)))
        {
            return; // in this precision contacts are not what they are
        }
        std::vector<double> forces;
        for (const Vector& f : step.forces)
        {
            forces.insert(forces.end(), f.begin(), f.end());
        }
        const auto judgedOf = [&](const std::vector<double>& each) {
            return judgedForces(
                    step.system, each, exact, partOfTypicalForce<Real>(options_.accuracy));
        };
        const JudgedForces judged = judgedOf(forces);
        const double usual        = judgedOf({ ofOne.begin(), ofOne.end() }).error;
        const double floor        = 1e3 * std::numeric_limits<double>::epsilon();
        if (!(judged.error <= std::max(settings_.slack * options_.accuracy + floor, 2 * usual)))
        {
            std::ostringstream text;
            text << "RMS force error " << judged.error << " of those that are not in contact, "
                 << judged.inContact << " are, of one rank " << usual;
            fail(number, "forces of ranks are wrong", text.str());
        }
    }

    static std::vector<Vector> vectorsFrom(const std::vector<Real>& flat)
    {
        std::vector<Vector> vectors(flat.size() / 3);
        for (size_t k = 0; k < flat.size(); k++)
        {
            vectors[k / 3][k % 3] = static_cast<double>(flat[k]);
        }
        return vectors;
    }
    //! RMS, kJ/mol/nm.
    static double errorOf(const std::vector<Vector>& forces, const Expectation& expected)
    {
        double squares = 0;
        for (size_t i = 0; i < forces.size(); i++)
        {
            for (int k = 0; k < 3; k++)
            {
                squares += std::pow(forces[i][k] - expected.value.forces[i][k], 2);
            }
        }
        return forces.empty() ? 0 : std::sqrt(squares / static_cast<double>(forces.size()));
    }

    [[noreturn]] void fail(size_t number, const std::string& kind, const std::string& what) const
    {
        const Step& step = steps_[number];
        std::ostringstream text;
        text << "step " << number << " of " << steps_.size() << " on " << ranks_
             << " ranks, broken " << static_cast<int>(step.broken) << ", N " << step.system.size()
             << ", " << step.system.name << ", accuracy " << options_.accuracy << ": " << what;
        if (!step.errors.empty() && step.errors[0])
        {
            text << " (\"" << step.errors[0]->what() << "\")";
        }
        throw Failure(kind, text.str());
    }

    std::mt19937& random_;
    const FuzzSettings& settings_;
    Options options_;
    int ranks_;
    std::vector<Step> steps_;
    std::optional<System> parted_; //!< what the last step is without its contacts
    std::mutex mutex_;
};

} // namespace test
} // namespace farfield

#endif
