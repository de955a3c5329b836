/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells of a box as a product of cyclic groups, for Fourier transforms.
 *
 *  The cells form the group Z^3 / H Z^3. Unimodular U and V make U H V diagonal (Smith, Phil.
 *  Trans. R. Soc. 151, 293 (1861); the divisibility of the diagonal is not needed): t = c V modulo
 *  the diagonal. Parts of these groups whose orders are powers of different primes make up a cyclic
 *  group by themselves (Good, J. R. Stat. Soc. B 20, 361 (1958),
 *  doi:10.1111/j.2517-6161.1958.tb00300.x), so they are put together anew, to three groups of about
 *  equal order.
 */
#ifndef FARFIELD_CELLS_CYCLIC_GROUPS_H
#define FARFIELD_CELLS_CYCLIC_GROUPS_H

#include "base/vectors.h"

namespace farfield
{

//! Position of a cell c in the groups: c V modulo the lengths.
struct CyclicGroups
{
    IntMat V;
    Int3 lengths; //!< ascending, as transforms run fastest with the longest dimension last
};

//! \param[in] H  lower triangular; where it is diagonal, the groups are z, y and x
CyclicGroups cyclicGroups(const IntMat& H);

} // namespace farfield

#endif
