/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/system_plan.h"

#include <cstddef>

namespace farfield
{
template<class Real>
double errorOfForces(const Real* forces, const Real* others, int n, double scale, double smearing)
{
    double square = 0;
    for (int i = 0; i < n; i++)
    {
        const size_t at = 3 * static_cast<size_t>(i);
        square += squaredErrorOf(forces + at, others + at, scale);
    }
    return relativeErrorOf(square, n, scale, smearing);
}

template double errorOfForces(const float*, const float*, int, double, double);
template double errorOfForces(const double*, const double*, int, double, double);

} // namespace farfield
