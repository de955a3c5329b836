/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Calls that are not legal: each has to be refused, and to leave everything as it was.
 */
#ifndef FARFIELD_TESTS_FUZZ_INVALID_CALLS_H
#define FARFIELD_TESTS_FUZZ_INVALID_CALLS_H

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "checked_solver.h"

namespace farfield
{
namespace test
{

//! Numbers that are none; NaN first.
constexpr double c_bad[] = { std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity() };

template<class Real>
class InvalidCalls : public CheckedSolver<Real>
{
protected:
    using Base = CheckedSolver<Real>;
    using Base::acceptOrFail;
    using Base::Base;
    using Base::fail;
    using Base::options_;
    using Base::solver_;
    using Base::system_;

    //! A call of a random kind, then a legal evaluation.
    void invalid(std::mt19937& random)
    {
        using Kind                      = void (InvalidCalls::*)(std::mt19937&, Inputs*);
        static constexpr Kind c_kinds[] = {
            &InvalidCalls::position, &InvalidCalls::skewedBox,
            &InvalidCalls::emptyBox, &InvalidCalls::exclusions,
            &InvalidCalls::charges,  &InvalidCalls::gridOffset,
            &InvalidCalls::state,    &InvalidCalls::meaninglessPosition,
            &InvalidCalls::option
        };
        std::vector<Real> x           = flatPositions<Real>(system_);
        const std::vector<Real> start = this->randomForces(random);
        Inputs in                     = { x, Box(system_.box), start, start };
        (this->*c_kinds[below(random, 9)])(random, &in);
        if (in.forces != start)
        {
            fail("forces after error", "forces have changed although evaluate() threw");
        }
        Base::evaluate(random);
    }

private:
    //! What an evaluation is given; each kind of call spoils a part of it.
    struct Inputs
    {
        std::vector<Real> x;
        Box box;
        std::vector<Real> start;  //!< what the forces were
        std::vector<Real> forces; //!< [n][3]
    };
    void evaluate(Inputs* in) { solver_->evaluate(in->x.data(), in->box.rows, in->forces.data()); }

    //! Expects an InvalidArgument from \p call.
    void expectInvalid(const std::string& what, const std::function<void()>& call)
    {
        try
        {
            call();
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::InvalidArgument
                && error.code() != ErrorCode::Unsupported)
            {
                fail("wrong code", what + ": " + error.what());
            }
            if (std::string(error.what()).empty())
            {
                fail("error without text", what);
            }
            return;
        }
        fail("accepted", what + " is accepted");
    }

    void position(std::mt19937& random, Inputs* in)
    {
        const int n = system_.size();
        if (n > 0)
        {
            const int at = below(random, 3 * n);
            in->x[at]    = static_cast<Real>(c_bad[below(random, 3)]);
            if (system_.charges[at / 3] != 0)
            {
                expectInvalid("a position that is not finite", [&] { evaluate(in); });
            }
        }
    }
    void skewedBox(std::mt19937& random, Inputs* in)
    {
        const int k        = below(random, 3);
        in->box.rows[k][2] = -1;
        if (!isOpenAlong(options_.boundary, k))
        {
            expectInvalid("a box that is not lower triangular", [&] { evaluate(in); });
        }
    }
    void emptyBox(std::mt19937& random, Inputs* in)
    {
        const int k        = below(random, 3);
        in->box.rows[k][k] = chance(random, 0.5) ? 0 : c_bad[below(random, 3)];
        if (!isOpenAlong(options_.boundary, k))
        {
            expectInvalid("a box without a volume", [&] { evaluate(in); });
        }
    }
    void exclusions(std::mt19937& /*random*/, Inputs* /*in*/)
    {
        const int n = system_.size();
        std::vector<int> offsets(n + 2, 0), partners = { n };
        expectInvalid("exclusions of another number of particles",
                      [&] { solver_->setExclusions(offsets.data(), partners.data(), n + 1); });
        std::fill(offsets.begin() + 1, offsets.end(), 1);
        if (n > 0)
        {
            expectInvalid("a partner that does not exist",
                          [&] { solver_->setExclusions(offsets.data(), partners.data(), n); });
        }
    }
    void charges(std::mt19937& random, Inputs* /*in*/)
    {
        const int n = system_.size();
        std::vector<Real> q(n + 1, 0);
        q[below(random, n + 1)] = static_cast<Real>(c_bad[below(random, 3)]);
        expectInvalid("a charge that is not finite", [&] { solver_->setCharges(q.data(), n + 1); });
        expectInvalid("a negative number of particles", [&] { solver_->setCharges(q.data(), -1); });
    }
    void gridOffset(std::mt19937& random, Inputs* in)
    {
        const int n = system_.size();
        Request request;
        request.gridOffset[below(random, 3)] = chance(random, 0.5) ? -0.1 : c_bad[below(random, 3)];
        if (n > 0)
        {
            expectInvalid(
                    "a position of the grid outside the cell",
                    [&]
                    { solver_->evaluate(in->x.data(), in->box.rows, in->forces.data(), request); });
        }
    }
    void state(std::mt19937& random, Inputs* /*in*/)
    {
        expectInvalid("a state of nothing",
                      [&] { solver_->restore(std::vector<double>(below(random, 60), 0)); });
    }
    void meaninglessPosition(std::mt19937& random, Inputs* in)
    {
        const int n = system_.size();
        // finite, but without a meaning: an error or numbers, no crash
        if (n > 0)
        {
            in->x[below(random, 3 * n)] =
                    static_cast<Real>(logUniform(random, 1e6, sizeof(Real) == 4 ? 1e38 : 1e308));
            try
            {
                evaluate(in);
                in->forces = in->start;
            }
            catch (const Error& error)
            {
                if (error.code() != ErrorCode::InvalidArgument)
                {
                    acceptOrFail(error);
                }
            }
        }
    }
    void option(std::mt19937& random, Inputs* /*in*/)
    {
        Options options = options_;
        switch (below(random, 6))
        {
            case 0:
                options.accuracy = chance(random, 0.5) ? 0 : c_bad[0];
                break;
            case 1:
                options.order = chance(random, 0.5) ? -2 : 21;
                break;
            case 2:
                options.directRange = 3;
                break;
            case 3:
                options.cellSize = c_bad[below(random, 3)];
                break;
            case 4:
                options.threads = -1;
                break;
            default:
                options.coulombConstant = chance(random, 0.5) ? 0 : c_bad[0];
                break;
        }
        expectInvalid("an option out of range", [&] { Solver<Real> solver(options); });
    }
};

} // namespace test
} // namespace farfield

#endif
