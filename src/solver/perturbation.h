/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges of two states that are mixed by a coupling parameter.
 *
 *  GROMACS mixes energies, V = (1 - l) E(A) + l E(B), where E is a quadratic form of the charges,
 *  background and exclusions included. With q = (1 - l) A + l B and D = B - A
 *
 *      V     = E(q) + l (1 - l) E(D)
 *      dV/dl = sum D_i phi_i + (1 - 2 l) E(D),    phi_i = dE/dq_i at q,
 *
 *  and forces and virials are mixed as the energies. E(D) is a second evaluation, of those
 *  particles alone whose charges differ.
 */
#ifndef FARFIELD_SOLVER_PERTURBATION_H
#define FARFIELD_SOLVER_PERTURBATION_H

#include <vector>

#include "cells/excluded_pairs.h"

namespace farfield
{

//! Both states, and who differs.
template<class Real>
class Perturbation
{
public:
    //! \param[in] chargesA, chargesB  e, [n]
    Perturbation(const Real* chargesA, const Real* chargesB, int n);

    //! Particles whose charges differ, ascending.
    const std::vector<int>& perturbed() const { return perturbed_; }
    //! D of these, e.
    const std::vector<Real>& difference() const { return difference_; }
    /*! \brief q of all particles, e.
     *
     *  Perturbed particles always take part: where q vanishes they get a charge that does nothing.
     */
    std::vector<Real> mixed(double lambda) const;
    const std::vector<Real>& chargesA() const { return a_; } //!< e, [n]
    const std::vector<Real>& chargesB() const { return b_; } //!< e, [n]
    //! Lambda of the state with the larger charges, 0 or 1.
    double lambdaOfLargerCharges() const;
    //! Excluded pairs of perturbed particles, in their numbering.
    ExcludedPairs pairs(const ExcludedPairs& all) const;
    //! Positions of perturbed particles, [perturbed][3], out of those of all.
    std::vector<Real> positions(const Real* x) const;
    //! sum D_i phi_i. \param[in] potentials  of all particles
    double slope(const Real* potentials) const;
    //! Adds factor times forces on perturbed particles to those of all.
    void addForces(double factor, const std::vector<Real>& forces, Real* all) const;

private:
    std::vector<Real> a_, b_; //!< [n]
    std::vector<int> perturbed_;
    std::vector<Real> difference_;
};

} // namespace farfield

#endif
