/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The Ewald sum of reference.h for thousands of particles in any box, and the bound of its
 *         own error.
 */
#ifndef FARFIELD_TESTS_FAST_EWALD_H
#define FARFIELD_TESTS_FAST_EWALD_H

#include "reference.h"

namespace farfield
{
namespace test
{

/*! \brief As ewald(), with a cell list in real space and a splitting that fits the system.
 *
 *  Of each excluded pair the interaction at the closest image is left out. Displacements are taken
 *  in extended precision from the positions as they are given, so that particles far from the
 *  origin, or in boxes of 1000 nm, lose nothing. Both sums are carried to exp(-s^2), s = 6.
 *  Cost: about N^1.5 in condensed matter, at most N^2; 3000 particles take about half a second.
 *
 *  \param[in] splitting  Ewald parameter, 1/nm; 0 takes the cheapest. The result does not depend
 *                        on it.
 *  \param[out] magnitudes  if not null: sums of |force| over the terms of each particle in real
 *         space, kJ/mol/nm: what the rounding of the sum is relative to
 */
Evaluation fastEwald(const System& system,
                     double splitting                = 0,
                     std::vector<double>* magnitudes = nullptr);

//! An evaluation and how far it may be off.
struct CheckedEvaluation
{
    Evaluation value;
    double forceError  = 0; //!< RMS, kJ/mol/nm
    double energyError = 0; //!< kJ/mol
};

/*! \brief fastEwald() at two splittings that share no term: their difference bounds the error.
 *
 *  Truncation is below exp(-36) = 2e-16 of the largest pair, so the error is rounding alone, which
 *  differs between the splittings as between any two orders of summation; what they share, the
 *  rounding of each displacement, is a unit of rounding of each pair's force. The bound is twice
 *  the RMS difference of the forces plus that unit of the summed magnitudes of the pairs' forces.
 */
CheckedEvaluation checkedEwald(const System& system);

} // namespace test
} // namespace farfield

#endif
