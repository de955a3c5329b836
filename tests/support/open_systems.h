/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles without images, and sums over all pairs of them.
 */
#ifndef FARFIELD_TESTS_OPEN_SYSTEMS_H
#define FARFIELD_TESTS_OPEN_SYSTEMS_H

#include <string>

#include "reference.h"

namespace farfield
{
namespace test
{

//! Energy, forces and virial of all pairs but the excluded ones.
Evaluation allPairs(const System& system);

/*! \brief Molecules of three sites about the points of a disturbed lattice.
 *  \param[in] counts  points in each dimension
 *  \param[in] net     of every molecule, e */
System
molecules(const std::string& name, const Vector& origin, const int (&counts)[3], double net = 0);

} // namespace test
} // namespace farfield

#endif
