/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bipolar.h"

#include <cmath>

#include <algorithm>
#include <array>
#include <complex>
#include <tuple>
#include <vector>

#include "geometry.h"

namespace farfield
{
namespace test
{

namespace
{

using Complex = std::complex<double>;

constexpr int c_maxDegree = 20;

//! Regular solid harmonics r^l P_l^m e^{i m phi} / (l+m)!, m >= 0, at [l (l+1)/2 + m].
using Harmonics = std::array<Complex, (c_maxDegree + 1) * (c_maxDegree + 2) / 2>;

int at(int l, int m)
{
    return l * (l + 1) / 2 + m;
}

void fillHarmonics(const Vector& r, int degree, Harmonics* out)
{
    Harmonics& h     = *out;
    const Complex xy = { r[0], r[1] };
    const double r2  = dot(r, r);
    h[0]             = 1;
    for (int l = 1; l <= degree; ++l)
    {
        h[at(l, l)] = -xy / (2.0 * l) * h[at(l - 1, l - 1)];
        for (int m = 0; m < l; ++m)
        {
            const Complex lower = l - 2 >= m ? h[at(l - 2, m)] : 0;
            h[at(l, m)] =
                    ((2 * l - 1) * r[2] * h[at(l - 1, m)] - r2 * lower) / double((l + m) * (l - m));
        }
    }
}

Complex harmonic(const Harmonics& h, int l, int m)
{
    if (std::abs(m) > l || l < 0)
    {
        return 0;
    }
    return m >= 0 ? h[at(l, m)] : (m % 2 == 0 ? 1.0 : -1.0) * std::conj(h[at(l, -m)]);
}

//! Harmonics of b and their x, y and z derivatives, real and imaginary parts apart.
struct TargetHarmonics
{
    std::array<std::array<double, std::tuple_size<Harmonics>::value>, 4> re, im;
};

//! dR_lm/dz = R_(l-1)m, (d/dx +- i d/dy) R_lm = +-R_(l-1)(m+-1).
void fillTargetHarmonics(const Vector& b, int degree, TargetHarmonics* out)
{
    Harmonics h;
    fillHarmonics(b, degree, &h);
    for (int l = 0; l <= degree; ++l)
    {
        for (int m = 0; m <= l; ++m)
        {
            const Complex up       = harmonic(h, l - 1, m + 1);
            const Complex down     = -harmonic(h, l - 1, m - 1);
            const Complex parts[4] = { h[at(l, m)],
                                       0.5 * (up + down),
                                       Complex(0, -0.5) * (up - down),
                                       harmonic(h, l - 1, m) };
            for (int k = 0; k < 4; ++k)
            {
                out->re[k][at(l, m)] = parts[k].real();
                out->im[k][at(l, m)] = parts[k].imag();
            }
        }
    }
}

} // namespace

void bipolarAlongZ(double d,
                   const Vector& a,
                   const Vector& b,
                   int order,
                   double* potentials,
                   Vector* gradients)
{
    Harmonics source;
    TargetHarmonics target;
    fillHarmonics(a, order, &source);
    fillTargetHarmonics(b, order, &target);
    // Both signs of m and the factor (-1)^m go into the source.
    std::array<double, std::tuple_size<Harmonics>::value> re, im;
    for (int l = 0; l <= order; ++l)
    {
        for (int m = 0; m <= l; ++m)
        {
            const double weight = (m == 0 ? 1 : 2) * (m % 2 == 0 ? 1 : -1);
            re[at(l, m)]        = weight * source[at(l, m)].real();
            im[at(l, m)]        = weight * source[at(l, m)].imag();
        }
    }
    std::array<double, 2 * c_maxDegree + 1> factor; // j!/D^(j+1)
    factor[0] = 1 / d;
    for (int j = 1; j <= 2 * order; ++j)
    {
        factor[j] = factor[j - 1] * j / d;
    }
    std::array<double, 4> total = {};
    for (int p = 0; p <= order; ++p)
    {
        const auto add = [&](int l, int ls)
        {
            const double f = (ls % 2 == 0 ? 1 : -1) * factor[l + ls];
            for (int k = 0; k < 4; ++k)
            {
                double sum = 0;
                for (int m = 0; m <= std::min(l, ls); ++m)
                {
                    sum += target.re[k][at(ls, m)] * re[at(l, m)]
                           + target.im[k][at(ls, m)] * im[at(l, m)];
                }
                total[k] += f * sum;
            }
        };
        for (int l = 0; l < p; ++l)
        {
            add(l, p);
            add(p, l);
        }
        add(p, p);
        potentials[p] = total[0];
        gradients[p]  = { total[1], total[2], total[3] };
    }
}

Matrix frameAlong(const Vector& d)
{
    Matrix frame;
    const double length = norm(d);
    frame[2]            = { d[0] / length, d[1] / length, d[2] / length };
    const Vector other  = std::abs(frame[2][0]) < 0.6 ? Vector{ 1, 0, 0 } : Vector{ 0, 1, 0 };
    frame[0]            = cross(other, frame[2]);
    const double l0     = norm(frame[0]);
    for (double& component : frame[0])
    {
        component /= l0;
    }
    frame[1] = cross(frame[2], frame[0]);
    return frame;
}

Vector rotated(const Matrix& frame, const Vector& v)
{
    return { dot(frame[0], v), dot(frame[1], v), dot(frame[2], v) };
}

double bipolar(const Vector& d, const Vector& a, const Vector& b, int order, Vector* gradient)
{
    std::vector<double> potentials(order + 1);
    std::vector<Vector> gradients(order + 1);
    const Matrix frame = frameAlong(d);
    bipolarAlongZ(norm(d),
                  rotated(frame, a),
                  rotated(frame, b),
                  order,
                  potentials.data(),
                  gradients.data());
    *gradient = combine(frame, gradients[order][0], gradients[order][1], gradients[order][2]);
    return potentials[order];
}

} // namespace test
} // namespace farfield
