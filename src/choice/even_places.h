/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Places that are spread evenly.
 */
#ifndef FARFIELD_CHOICE_EVEN_PLACES_H
#define FARFIELD_CHOICE_EVEN_PLACES_H

#include <vector>

#include "base/vectors.h"

namespace farfield
{

/*! \brief Places in a box, [n][3], nm, none of which is close to another.
 *
 *  Kronecker's sequence (Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992,
 *  doi:10.1137/1.9781611970081, chapter 3) with the powers of the root of 1 / g^4 = 1 / g + 1, which is
 *  to three dimensions what the golden ratio is to one. It is no lattice: forces of charges there do
 *  not vanish by symmetry.
 *  \param[in] box  rows, nm */
template<class Real>
std::vector<Real> evenPlaces(int n, const Mat3& box);

} // namespace farfield

#endif
