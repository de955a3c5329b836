/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Matrices of the host as plain arrays, for kernels.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_MATRIX3_H
#define FARFIELD_KERNELS_RUNTIME_MATRIX3_H

#include "base/vectors.h"

namespace farfield
{

template<class T>
void copyTo(const Mat3& from, T (&to)[3][3])
{
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            to[i][j] = static_cast<T>(from(i, j));
        }
    }
}

} // namespace farfield

#endif
