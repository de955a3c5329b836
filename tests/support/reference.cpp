/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "reference.h"

#include <cmath>

#include "geometry.h"

namespace farfield
{
namespace test
{

double System::volume() const
{
    return determinant(box);
}

double System::netCharge() const
{
    double sum = 0;
    for (const double q : charges)
    {
        sum += q;
    }
    return sum;
}

double System::meanSquareCharge() const
{
    double sum = 0;
    for (const double q : charges)
    {
        sum += q * q;
    }
    return charges.empty() ? 0 : sum / size();
}

double relativeError(const std::vector<Vector>& f, const std::vector<Vector>& g)
{
    double difference = 0, sum = 0;
    for (size_t i = 0; i < g.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            difference += (f[i][k] - g[i][k]) * (f[i][k] - g[i][k]);
            sum += g[i][k] * g[i][k];
        }
    }
    return difference == 0 ? 0 : std::sqrt(difference / sum);
}

double rootMeanSquare(const std::vector<Vector>& f)
{
    double sum = 0;
    for (const auto& v : f)
    {
        sum += dot(v, v);
    }
    return f.empty() ? 0 : std::sqrt(sum / f.size());
}

double largestDifference(const Matrix& a, const Matrix& b)
{
    double largest = 0;
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 3; ++j)
        {
            // A NaN must not pass.
            const double difference = std::abs(a[i][j] - b[i][j]);
            largest                 = difference <= largest ? largest : difference;
        }
    }
    return largest;
}

Matrix unitMatrix()
{
    return { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
}

Matrix multiply(const Matrix& a, const Matrix& b)
{
    Matrix c;
    for (int i = 0; i < 3; ++i)
    {
        c[i] = combine(b, a[i][0], a[i][1], a[i][2]);
    }
    return c;
}

System deformed(const System& system, const Matrix& deformation)
{
    System result = system;
    result.box    = multiply(system.box, deformation);
    for (auto& x : result.positions)
    {
        x = combine(deformation, x[0], x[1], x[2]);
    }
    return result;
}

System shifted(const System& system, const Vector& shift)
{
    System result = system;
    for (auto& x : result.positions)
    {
        for (int k = 0; k < 3; ++k)
        {
            x[k] += shift[k];
        }
    }
    return result;
}

} // namespace test
} // namespace farfield
