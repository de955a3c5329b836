/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What farfield_cuda.h sees of solvers.
 */
#ifndef FARFIELD_SOLVER_SOLVER_ACCESS_H
#define FARFIELD_SOLVER_SOLVER_ACCESS_H

#include "solver/distributed_impl.h"
#include "solver/solver_impl.h"

namespace farfield
{

template<class Real>
struct SolverAccess
{
    //! \param[in] solver  Solver or DistributedSolver
    template<class S>
    static auto& of(S& solver)
    {
        return *solver.impl_;
    }
};

} // namespace farfield

#endif
