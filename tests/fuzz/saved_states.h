/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Calls that restore a solver: from its own state, another one's, or a forged one.
 */
#ifndef FARFIELD_TESTS_FUZZ_SAVED_STATES_H
#define FARFIELD_TESTS_FUZZ_SAVED_STATES_H

#include <cmath>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "draw_options.h"
#include "invalid_calls.h"
#include "sealed_state.h"

namespace farfield
{
namespace test
{

template<class Real>
class SavedStates : public InvalidCalls<Real>
{
protected:
    using Base = CheckedSolver<Real>;
    using InvalidCalls<Real>::InvalidCalls;
    using Base::evaluate;
    using Base::evaluateAndCheck;
    using Base::fail;
    using Base::isReproducible;
    using Base::options_;
    using Base::randomForces;
    using Base::randomRequest;
    using Base::settings_;
    using Base::solver_;
    using Base::system_;

    Options randomOptions(std::mt19937& random) const
    {
        return drawOptions(random, settings_, sizeof(Real));
    }

    void restore(std::mt19937& random)
    {
        const Request request         = randomRequest(random);
        const std::vector<Real> start = randomForces(random);
        std::vector<Real> one(start), two(start);
        Totals first, second;
        if (!evaluateAndCheck(request, &one, &first))
        {
            return;
        }
        const std::vector<double> state = solver_->state();
        if (state.empty())
        {
            return; // without particles nothing is chosen
        }
        // a run goes on when the one before has ended: memory need not hold the cells of both
        solver_.reset();
        solver_ = std::make_unique<Solver<Real>>(options_);
        solver_->restore(state);
        loadCharges(*solver_, system_);
        loadExclusions(*solver_, system_, false);
        if (solver_->state() != state)
        {
            fail("state changed", "a restored solver has another state");
        }
        if (evaluateAndCheck(request, &two, &second) && isReproducible()
            && (one != two || !areEqual(first, second)))
        {
            fail("restored differs", "a restored solver gives another result");
        }
    }

    //! A state of other options or with changed numbers: refused, or no worse than promised.
    void restoreAnother(std::mt19937& random, bool isSpoiled)
    {
        std::vector<double> state;
        if (isSpoiled)
        {
            evaluate(random);
            state = solver_->state();
            for (int changes = 1 + below(random, 2); changes > 0 && !state.empty(); --changes)
            {
                // one of the whole numbers more often than the reals that follow
                double& entry          = state[below(random,
                                            chance(random, 0.7) ? std::min<int>(state.size(), 14)
                                                                         : state.size())];
                const double factors[] = {
                    0, -1, 2, 0.5, 3, 1e6, std::numeric_limits<double>::quiet_NaN()
                };
                entry = chance(random, 0.5) ? entry + (chance(random, 0.5) ? 1 : -1)
                                            : entry * factors[below(random, 7)];
            }
            restoreForged(state);
        }
        else
        {
            Options others      = randomOptions(random);
            const bool isNearby = chance(random, 0.5);
            if (isNearby)
            {
                const double accuracy = others.accuracy;
                others                = options_;
                others.accuracy       = accuracy;
            }
            Solver<Real> source(others);
            loadCharges(source, system_);
            try
            {
                source.prepare(flatPositions<Real>(system_).data(), Box(system_.box).rows);
            }
            catch (const Error&)
            {
                return;
            }
            state = source.state();
        }
        expectNoOtherError("error of restore", [&] { solver_->restore(state); });
        evaluate(random);
    }

private:
    //! What a state that somebody else has sealed asks for is done in bounded time, or refused.
    void restoreForged(std::vector<double> state)
    {
        seal(&state);
        Solver<Real> other(options_);
        loadCharges(other, system_);
        loadExclusions(other, system_, false);
        expectNoOtherError("error of a forged state",
                           [&]
                           {
                               other.restore(state);
                               const std::vector<Real> x = flatPositions<Real>(system_);
                               std::vector<Real> forces(x.size(), Real(0));
                               other.evaluate(x.data(), Box(system_.box).rows, forces.data());
                               // an order that is too low, or an error that was not measured,
                               // cannot be seen
                               if (!std::all_of(forces.begin(),
                                                forces.end(),
                                                [](Real f) { return std::isfinite(f); }))
                               {
                                   fail("forged", "forces of a forged state are not finite");
                               }
                           });
    }

    //! Makes a call that may be refused because of a value or of memory.
    void expectNoOtherError(const char* kind, const std::function<void()>& call)
    {
        try
        {
            call();
        }
        catch (const Error& error)
        {
            if ((error.code() != ErrorCode::InvalidArgument
                 && error.code() != ErrorCode::OutOfMemory)
                || std::string(error.what()).empty())
            {
                fail(kind, error.what());
            }
        }
    }
};

} // namespace test
} // namespace farfield

#endif
