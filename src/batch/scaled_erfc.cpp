/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/scaled_erfc.h"

#include <cmath>

namespace farfield
{
namespace
{

//! Interpolates exp(x^2) erfc(x) at Chebyshev's points of s.
template<class Real>
ScaledErfc<Real> fitted()
{
    constexpr int c_count          = ScaledErfc<Real>::c_degree + 1;
    constexpr long double c_middle = 2.5L, c_last = 6;
    constexpr long double c_beta  = 2 / (1 / c_middle - 1 / (c_last + c_middle));
    constexpr long double c_alpha = c_beta / c_middle - 1; // s = -1 at 0, and 1 at the last
    const long double pi          = std::acos(-1.0L);
    long double values[c_count];
    for (int i = 0; i < c_count; i++)
    {
        const long double s = std::cos(pi * (i + 0.5L) / c_count);
        const long double x = c_beta / (c_alpha - s) - c_middle;
        values[i]           = std::exp(x * x) * std::erfc(x);
    }
    // Chebyshev's polynomials, and the sum of them, in powers of s
    long double before[c_count] = {}, now[c_count] = { 1 }, sum[c_count] = {};
    for (int m = 0; m < c_count; m++)
    {
        long double coefficient = 0;
        for (int i = 0; i < c_count; i++)
        {
            coefficient += values[i] * std::cos(m * pi * (i + 0.5L) / c_count);
        }
        coefficient *= (m == 0 ? 1.0L : 2.0L) / c_count;
        long double next[c_count];
        for (int k = 0; k < c_count; k++)
        {
            sum[k] += coefficient * now[k];
            next[k] = (m == 0 ? 1 : 2) * (k > 0 ? now[k - 1] : 0) - before[k];
        }
        for (int k = 0; k < c_count; k++)
        {
            before[k] = now[k];
            now[k]    = next[k];
        }
    }
    ScaledErfc<Real> result;
    for (int k = 0; k < c_count; k++)
    {
        result.coefficients[k] = static_cast<Real>(sum[k]);
    }
    result.alpha  = static_cast<Real>(c_alpha);
    result.beta   = static_cast<Real>(c_beta);
    result.middle = static_cast<Real>(c_middle);
    return result;
}

} // namespace

template<class Real>
const ScaledErfc<Real>& scaledErfc()
{
    static const ScaledErfc<Real> constants = fitted<Real>();
    return constants;
}
template const ScaledErfc<float>& scaledErfc();
template const ScaledErfc<double>& scaledErfc();

} // namespace farfield
