/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Derivatives of forces and potentials along a direction: products of the Hessian with a vector.
 *
 *  With the potential phi of the charges q, and phi' that of charges dq with dipoles q dx, the derivatives of
 *  the potential at a particle and of its gradient are
 *
 *      phi' + dx.grad phi,    grad phi' + grad grad phi dx.
 *
 *  Both are of the same cells, so that they are those of the sums that are computed, to rounding.
 */
#ifndef FARFIELD_SOLVER_TANGENT_H
#define FARFIELD_SOLVER_TANGENT_H

#include "solver/single_state.h"

namespace farfield
{

//! As Solver::evaluateTangent(), checked. \param[in,out] all  the particles
template<class Real>
void evaluateTangent(SingleState<Real>* all,
                     const Task<Real>& task,
                     const Direction<Real>& direction,
                     const Tangent<Real>& tangent);

} // namespace farfield

#endif
