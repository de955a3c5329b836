/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The bipolar expansion in the frame of its displacement, at all orders at once.
 */
#ifndef FARFIELD_TESTS_BIPOLAR_H
#define FARFIELD_TESTS_BIPOLAR_H

#include "reference.h"

namespace farfield
{
namespace test
{

/*! \brief The bipolar expansion for D along z, cut at l, l' <= p, for all p up to the order:
 *  sum (-1)^l' (l+l')! / D^(l+l'+1) sum_m (-1)^m R_l'm(b) conj(R_lm(a)), and its gradient in b.
 *  \param[out] potentials,gradients  [order + 1] */
void bipolarAlongZ(double d,
                   const Vector& a,
                   const Vector& b,
                   int order,
                   double* potentials,
                   Vector* gradients);

//! Right-handed orthonormal rows, the third along \p d.
Matrix frameAlong(const Vector& d);

//! Components of a vector along the rows of a frame.
Vector rotated(const Matrix& frame, const Vector& v);

} // namespace test
} // namespace farfield

#endif
