/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectors and symmetric matrices that stand in arrays.
 */
#ifndef FARFIELD_BASE_PACKED_H
#define FARFIELD_BASE_PACKED_H

#include "base/vectors.h"

namespace farfield
{

//! Vector \p i of [n][3].
template<class Real>
Vec3 vectorAt(const Real* vectors, size_t i)
{
    const Real* v = vectors + 3 * i;
    return { static_cast<double>(v[0]), static_cast<double>(v[1]), static_cast<double>(v[2]) };
}

//! Matrix \p i of [n][6]: xx yy zz xy xz yz.
template<class Real>
Mat3 symmetricAt(const Real* matrices, size_t i)
{
    const Real* m = matrices + 6 * i;
    Eigen::Matrix<Real, 3, 3> t;
    t << m[0], m[3], m[4], m[3], m[1], m[5], m[4], m[5], m[2];
    return t.template cast<double>();
}

} // namespace farfield

#endif
