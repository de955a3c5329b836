/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the two Ewald sums share: everything but the search for pairs in real space.
 *
 *  There are two references. ewald() looks at every pair and every image in plain loops, in double
 *  precision: nothing in it can be wrong that is not wrong everywhere. fastEwald() has a list of
 *  cells and displacements in extended precision, for thousands of particles and for boxes of any
 *  size; ewald() proves it (FastEwald.AgreesWithTheSimpleSum). The parts here need no second
 *  version: a sum that depends on the splitting in any of them differs from splitting to splitting
 *  (Reference.DoesNotDependOnTheSplitting), and the scale of all is that of Madelung's constants.
 */
#ifndef FARFIELD_TESTS_EWALD_SUMS_H
#define FARFIELD_TESTS_EWALD_SUMS_H

#include "reference.h"

namespace farfield
{
namespace test
{

//! Both sums end at exp(-s^2) with this s: erfc(6) = 2e-17.
constexpr double c_ewaldDigits = 6;

/*! \brief erf(a r)/r and -(1/r) d/dr of it, also at r = 0: what an excluded pair has in reciprocal
 *         space. */
void smoothPair(double a, double r, double* value, double* slope);

//! erfc(a r)/r and -(1/r) d/dr of it: a pair in real space.
void sharpPair(double a, double r, double* value, double* slope);

/*! \brief Adds the sum over wave vectors, in a fixed order: the same in every run with as many
 *         threads. Phases are in extended precision, as positions may be far from the origin. */
void addReciprocalSpace(const System& system, double a, Evaluation* result);

//! Adds the self energy and what the neutralising background does.
void addSelfAndBackground(const System& system, double a, Evaluation* result);

} // namespace test
} // namespace farfield

#endif
