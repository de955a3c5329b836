/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a CoulombSolver is made of, and access to it.
 */
#ifndef FARFIELD_SOLVER_COULOMB_IMPL_H
#define FARFIELD_SOLVER_COULOMB_IMPL_H

#include <vector>

#include "evaluation/evaluator.h"
#include "evaluation/memory_errors.h"

namespace farfield
{

/*! \brief What evaluates the particles of one process, or those of one rank.
 *
 *  Functions are those of CoulombSolver and of farfield_cuda.h. */
template<class Real>
class CoulombSolver<Real>::Impl
{
public:
    Impl()                       = default;
    Impl(const Impl&)            = delete;
    Impl& operator=(const Impl&) = delete;
    virtual ~Impl()              = default;

    /*! \brief Does what the caller asks for: with the device current, and with memory that is missing
     *         reported. Functions below that evaluate, or change anything, are called within it. */
    template<class Work>
    auto enter(const Work& work) -> decltype(work())
    {
        return withMemoryErrors(
                [&]
                {
                    const auto scope = makeCurrent();
                    return work();
                });
    }
    virtual Evaluator<Real>& evaluator() = 0;
    virtual DeviceScope<Real> makeCurrent() { return evaluator().makeCurrent(); }

    virtual Totals evaluate(const Task<Real>& task)             = 0;
    virtual void prepare(const Real* x, const double box[3][3]) = 0;
    virtual Setup setup() const                                 = 0;
    virtual std::vector<double> state() const                   = 0;
    virtual void restore(const std::vector<double>& state)      = 0;

    //! \name On arrays in device memory
    //!@{
    virtual void enqueue(const Task<Real>& task) = 0;
    virtual Totals wait()                        = 0;
    virtual bool mustRecordAgain() const         = 0;
    virtual bool mayUpdateGraphs() const         = 0;
    //!@}
};

//! What farfield_cuda.h sees of solvers.
template<class Real>
struct SolverAccess
{
    static auto& of(const CoulombSolver<Real>& solver) { return *solver.impl_; }
    static auto& of(const Solver<Real>& solver) { return solver.impl(); }
};

} // namespace farfield

#endif
