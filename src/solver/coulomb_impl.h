/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a CoulombSolver is made of.
 */
#ifndef FARFIELD_SOLVER_COULOMB_IMPL_H
#define FARFIELD_SOLVER_COULOMB_IMPL_H

#include <vector>

#include "backend/task.h"
#include "evaluation/stage_times.h"

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

    virtual Totals evaluate(const Task<Real>& task)             = 0;
    virtual void prepare(const Real* x, const double box[3][3]) = 0;
    virtual Setup setup() const                                 = 0;
    virtual std::vector<double> state() const                   = 0;
    virtual void restore(const std::vector<double>& state)      = 0;
    virtual StageTimes& times()                                 = 0;

    //! \name On arrays in device memory
    //!@{
    virtual void enqueue(const Task<Real>& task) = 0;
    virtual Totals wait()                        = 0;
    virtual bool mustRecordAgain() const         = 0;
    virtual bool mayUpdateGraphs() const         = 0;
    //!@}
};

} // namespace farfield

#endif
