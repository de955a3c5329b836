/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Coulomb energies between groups of particles.
 *
 *  The energy is a quadratic form of the charges, E(q) = 1/2 B(q, q), with all periodic images,
 *  excluded pairs and the background. With the charges of a group g alone, the potentials at all
 *  particles give B(g, h) for all groups h.
 */
#ifndef FARFIELD_SOLVER_GROUP_ENERGIES_H
#define FARFIELD_SOLVER_GROUP_ENERGIES_H

#include <functional>
#include <vector>

#include "evaluation/charge_set.h"

namespace farfield
{

//! Charges of a state, and what its energies are multiplied with.
template<class Real>
struct WeightedCharges
{
    double weight;
    const Real* charges; //!< e, [n]
};

/*! \brief The energies of Solver::groupEnergies().
 *  \param[in,out] charges    of all particles; the same ones afterwards
 *  \param[in]     states     that are mixed; none: the charges that are set
 *  \param[in]     group      [n], checked
 *  \param[in]     potentials  computes those of the charges that are set, [n] */
template<class Real>
std::vector<double> groupEnergies(ChargeSet<Real>* charges,
                                  const std::vector<WeightedCharges<Real>>& states,
                                  const int* group,
                                  int groups,
                                  const std::function<void(Real*)>& potentials);

} // namespace farfield

#endif
