/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/ewald_plan.h"

#include <algorithm>
#include <cmath>

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;
//! Both sums have a half of the squared error; what the model does not know doubles it.
constexpr double c_share = 0.5 / 1.4142135623730951;
//! a rc and kc / 2a: exp(-36) is below all rounding, and at 1 nothing has been gained yet.
constexpr double c_smallest = 1, c_largest = 6;

//! a rc and kc / 2a, which are equal: 2 Q (a / (N V s))^(1/2) exp(-s^2) is the wanted error.
double exponent(const EwaldCase& system, double a)
{
    const double scale =
            2 * system.squaredCharges * std::sqrt(a / (system.charged * system.volume));
    double s = 3;
    for (int i = 0; i < 3; i++)
    {
        const double square = std::log(scale / (c_share * system.error * std::sqrt(s)));
        s = std::sqrt(std::clamp(square, c_smallest * c_smallest, c_largest * c_largest));
    }
    return s;
}

} // namespace

EwaldPlan fastestPlan(const EwaldCase& system, double detour, double pairCost)
{
    // pairs take N^2 4 pi / (3 V) (s / a)^3, waves N V (2 a s)^3 / (12 pi^2)
    const double equal =
            pairCost * system.charged * 2 * c_pi * c_pi * c_pi / (system.volume * system.volume);
    const double a = detour * std::pow(equal, 1.0 / 6);
    const double s = exponent(system, a);
    return { a, s / a, 2 * a * s };
}

EwaldPlan planOfWaves(const EwaldCase& system, double splitting)
{
    return { splitting, 0, 2 * splitting * exponent(system, splitting) };
}

} // namespace farfield
