/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials of other charges and dipoles than those that are set, at the places of the last evaluation.
 */
#ifndef FARFIELD_SOLVER_OTHER_SOURCES_H
#define FARFIELD_SOLVER_OTHER_SOURCES_H

#include <vector>

#include "solver/single_state.h"

namespace farfield
{

/*! \brief By the operators of the last evaluation, and without excluded pairs.
 *
 *  In proportion to the sources, however small they are.
 *  \param[in,out] task  potentials, [n], and gradients, [n][3], are filled where they are wanted; the request is
 *                        that of the last evaluation
 *  \param[in] charges, dipoles  e and e nm, [n] and [n][3]; what is not a number has a potential that is not */
template<class Real>
void evaluateSources(SingleState<Real>* all,
                     const Task<Real>& task,
                     std::vector<Real> charges,
                     std::vector<Real> dipoles);

} // namespace farfield

#endif
