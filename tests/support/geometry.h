/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectors and lattices, for the references and what builds systems.
 */
#ifndef FARFIELD_TESTS_GEOMETRY_H
#define FARFIELD_TESTS_GEOMETRY_H

#include <cmath>

#include <algorithm>
#include <array>
#include <vector>

#include "reference.h"

namespace farfield
{
namespace test
{

constexpr double c_pi = 3.14159265358979323846;

inline double dot(const Vector& a, const Vector& b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

inline Vector cross(const Vector& a, const Vector& b)
{
    return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

inline double norm(const Vector& a)
{
    return std::sqrt(dot(a, a));
}

inline double determinant(const Matrix& m)
{
    return dot(m[0], cross(m[1], m[2]));
}

//! Rows g_k with g_k . box_l = delta_kl.
inline Matrix reciprocal(const Matrix& box)
{
    const double v = determinant(box);
    Matrix g       = { cross(box[1], box[2]), cross(box[2], box[0]), cross(box[0], box[1]) };
    for (auto& row : g)
    {
        for (double& component : row)
        {
            component /= v;
        }
    }
    return g;
}

//! a rows[0] + b rows[1] + c rows[2].
inline Vector combine(const Matrix& rows, double a, double b, double c)
{
    Vector r;
    for (int k = 0; k < 3; ++k)
    {
        r[k] = a * rows[0][k] + b * rows[1][k] + c * rows[2][k];
    }
    return r;
}

//! x minus the box vectors that bring its fractional coordinates into [-1/2, 1/2].
inline Vector reduced(const Vector& x, const Matrix& box, const Matrix& g)
{
    const Vector n = combine(
            box, std::round(dot(g[0], x)), std::round(dot(g[1], x)), std::round(dot(g[2], x)));
    return { x[0] - n[0], x[1] - n[1], x[2] - n[2] };
}

//! All lattice vectors no longer than \p radius.
inline std::vector<Vector> latticeVectors(const Matrix& box, double radius)
{
    const Matrix g = reciprocal(box);
    std::array<int, 3> range;
    std::vector<Vector> result;
    for (int k = 0; k < 3; ++k)
    {
        range[k] = static_cast<int>(std::floor(radius * norm(g[k])));
    }
    for (int i = -range[0]; i <= range[0]; ++i)
    {
        for (int j = -range[1]; j <= range[1]; ++j)
        {
            for (int k = -range[2]; k <= range[2]; ++k)
            {
                const Vector n = combine(box, i, j, k);
                if (dot(n, n) <= radius * radius)
                {
                    result.push_back(n);
                }
            }
        }
    }
    std::sort(result.begin(),
              result.end(),
              [](const Vector& a, const Vector& b) { return dot(a, a) < dot(b, b); });
    return result;
}

//! Largest length of a vector whose fractional coordinates are in [-1/2, 1/2].
inline double halfDiagonal(const Matrix& box)
{
    double largest = 0;
    for (int s = 0; s < 4; ++s)
    {
        const Vector d = combine(box, 0.5, (s & 1) ? 0.5 : -0.5, (s & 2) ? 0.5 : -0.5);
        largest        = std::max(largest, norm(d));
    }
    return largest;
}

} // namespace test
} // namespace farfield

#endif
