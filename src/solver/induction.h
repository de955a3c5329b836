/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Dipoles that a field induces, and that induce each other.
 *
 *  With the field E of what is set, the potential phi of the dipoles mu, and polarisabilities alpha, they solve
 *
 *      mu/alpha + grad phi(mu) = E,
 *
 *  by conjugate gradients with alpha as the preconditioner: W. Wang and R. D. Skeel, J. Chem. Phys. 123, 164107
 *  (2005), doi:10.1063/1.2056544.
 */
#ifndef FARFIELD_SOLVER_INDUCTION_H
#define FARFIELD_SOLVER_INDUCTION_H

#include "solver/single_state.h"

namespace farfield
{

//! As Solver::induceDipoles(), checked. \param[in,out] all  the particles
template<class Real>
Induction induceDipoles(SingleState<Real>* all,
                        const Task<Real>& task,
                        const Real* polarisabilities,
                        double coulombConstant,
                        double tolerance,
                        Real* dipoles);

} // namespace farfield

#endif
