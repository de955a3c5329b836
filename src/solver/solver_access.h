/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What farfield_cuda.h sees of solvers.
 */
#ifndef FARFIELD_SOLVER_SOLVER_ACCESS_H
#define FARFIELD_SOLVER_SOLVER_ACCESS_H

#include "solver/solver_impl.h"

namespace farfield
{

template<class Real>
struct SolverAccess
{
    static auto& of(const CoulombSolver<Real>& solver) { return *solver.impl_; }
    static auto& of(const Solver<Real>& solver) { return solver.impl(); }
};

} // namespace farfield

#endif
