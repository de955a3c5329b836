/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boxes of the tests' systems in the type of the library's inside.
 */
#ifndef FARFIELD_TESTS_BOX_MATRIX_H
#define FARFIELD_TESTS_BOX_MATRIX_H

#include "base/vectors.h"
#include "reference.h"

namespace farfield
{
namespace test
{

//! The same rows.
inline Mat3 matrixOf(const Matrix& rows)
{
    Mat3 result;
    for (int i = 0; i < 9; ++i)
    {
        result(i / 3, i % 3) = rows[i / 3][i % 3];
    }
    return result;
}

} // namespace test
} // namespace farfield

#endif
