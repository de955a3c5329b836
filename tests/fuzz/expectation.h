/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What an evaluation has to give, and how well expansions converge.
 */
#ifndef FARFIELD_TESTS_FUZZ_EXPECTATION_H
#define FARFIELD_TESTS_FUZZ_EXPECTATION_H

#include "farfield/farfield.h"

#include "reference.h"

namespace farfield
{
namespace test
{

/*! \brief Longest diagonal of a cell over the distance of the nearest cell of the far field.
 *
 *  |a| + |b| over |D| at worst: expansions of charges in corners converge only below 1. */
double convergenceRatio(const Matrix& box, const Setup& setup);

//! What an evaluation has to give, and what rounding may do to it.
struct Expectation
{
    Evaluation value;
    double scale          = 0; //!< of the accuracy, kJ/mol/nm
    double forceError     = 0; //!< of the reference, RMS, kJ/mol/nm
    double forceMagnitude = 0; //!< RMS of the sums of |force| of pairs, kJ/mol/nm
    double pairEnergies   = 0; //!< sum of |energy| of near and excluded pairs, kJ/mol
};

//! The system in the volume that its forces are compared in, see withEdges().
System inVolume(const System& system, Boundary boundary);

//! \param[in] leastPart  see partOfTypicalForce()
Expectation expectationFor(const System& system, Boundary boundary, double leastPart);

} // namespace test
} // namespace farfield

#endif
