/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Torques on the multipoles of particles, from derivatives of the potential.
 */
#ifndef FARFIELD_SOLVER_TORQUES_H
#define FARFIELD_SOLVER_TORQUES_H

#include <vector>

#include "backend/backend.h"

namespace farfield
{

/*! \brief -mu x g - 2/3 eps (Theta H) of each particle, kJ/mol, [3 n].
 *
 *  eps is the vector of the antisymmetric part, eps(A)_k = sum eps_kij A_ij. Formula: Stone, The Theory of
 *  Intermolecular Forces, Oxford University Press (2013), chapter 3.
 *  \param[in] n  particles
 *  \param[in] gradients, hessians  as Outputs has them; the latter matter for quadrupoles alone */
template<class Real>
std::vector<Real>
torquesOf(const Moments<Real>& moments, size_t n, const Real* gradients, const Real* hessians);

} // namespace farfield

#endif
