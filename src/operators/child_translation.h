/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operator of M2M and L2L between a cell and its children.
 *
 *  With a in units of the child from its centre and s the centre of the child from its parent's,
 *  u_i((a + s) / 2) = 2^(-l_i) sum_j S_ij u_j(a). A multipole expansion so becomes S' M with
 *  S'_ij = 2^(-l_i) S_ij, and a local one, in 1 / unit, becomes 1/2 S'^T L.
 */
#ifndef FARFIELD_OPERATORS_CHILD_TRANSLATION_H
#define FARFIELD_OPERATORS_CHILD_TRANSLATION_H

#include <cmath>

#include "operators/solid_harmonics.h"

namespace farfield
{

//! Centre of a child relative to its parent's, child units.
//! \param[in] octant  bits 0, 1, 2: whether it is the upper child along each edge
//! \param[in] edges   edges of a cell in units of its size, rows
inline Vec3 childShift(int octant, const Mat3& edges)
{
    return edges.transpose()
           * Vec3((octant & 1) - 0.5, ((octant >> 1) & 1) - 0.5, (octant >> 2) - 0.5);
}

//! S', see above.
inline Matrix childTranslation(int p, const Vec3& shift)
{
    Matrix S = translation(p, shift);
    for (int i = 0; i < coefficientCount(p); i++)
    {
        S.row(i) *= std::pow(0.5, degreeOf(i));
    }
    return S;
}

} // namespace farfield

#endif
