/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/near_function.h"

namespace farfield
{

double rangeInWidths(PairFunction function, double least)
{
    // the relative difference of forces falls from 1 at r = 0
    constexpr int c_steps = 60;
    double inside = 0, outside = 1;
    const auto differs = [=](double r)
    { return -r * r * r * pairCorrection(function, r * r, 1.0).slope > least; };
    while (differs(outside))
    {
        outside *= 2;
    }
    for (int k = 0; k < c_steps; k++)
    {
        const double middle                  = 0.5 * (inside + outside);
        (differs(middle) ? inside : outside) = middle;
    }
    return function == PairFunction::Coulomb ? 0 : outside;
}

} // namespace farfield
