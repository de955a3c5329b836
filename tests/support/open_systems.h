/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles without images along some axes or any, and sums over all pairs of them.
 */
#ifndef FARFIELD_TESTS_OPEN_SYSTEMS_H
#define FARFIELD_TESTS_OPEN_SYSTEMS_H

#include <string>
#include <vector>

#include "reference.h"

namespace farfield
{
namespace test
{

//! How far molecules() are apart, nm.
constexpr double c_molecularDistance = 0.31;

/*! \brief Energy, forces and virial of all pairs but the excluded ones.
 *  \param[out] magnitudes  if not null: sums of |force| over the pairs of each particle, kJ/mol/nm */
Evaluation allPairs(const System& system, std::vector<double>* magnitudes = nullptr);

/*! \brief The error of an energy, kJ/mol, where forces have independent errors.
 *
 *  They vary over the distance of molecules.
 *  \param[in] accuracy  error of the forces, in units of their root mean square */
double energyError(const std::vector<Vector>& forces, double accuracy);

/*! \brief Molecules of three sites about the points of a disturbed lattice.
 *  \param[in] counts  points in each dimension
 *  \param[in] net     of every molecule, e */
System
molecules(const std::string& name, const Vector& origin, const int (&counts)[3], double net = 0);

/*! \brief Such molecules with images along the first two box vectors.
 *
 *  The third vector is not to be read.
 *  \param[in] skew  of the second vector along x, in units of the first */
System film(const std::string& name, const int (&counts)[3], double skew = 0, double net = 0);

//! The same molecules, which keep their shape, farther apart and elsewhere.
System spread(const System& molecules, double scale, const Vector& shift);

} // namespace test
} // namespace farfield

#endif
