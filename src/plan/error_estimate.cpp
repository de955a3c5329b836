/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/error_estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cells/cell_shape.h"

namespace farfield
{

double
estimatedError(int order, int ws, bool leastSquares, double cellSize, double shapeRatio, int levels)
{
    // Measured on water (7754 molecules, cubic cells of 0.517 nm, double precision), orders 2, 4,
    // ... The error is inversely proportional to the cell size and grows with a power of the shape.
    // With one layer of neighbours the last two orders, 18 and 20, are not measured at this size:
    // least squares from order 20 at 0.775 nm, truncation by continuing the decay.
    static const std::vector<double> c_measured[2][2] = {
        { { 5.04e-2,
            9.46e-3,
            1.96e-3,
            4.20e-4,
            9.38e-5,
            2.35e-5,
            6.81e-6,
            2.13e-6,
            6.7e-7,
            2.1e-7 },
          { 4.92e-2,
            8.11e-3,
            1.35e-3,
            2.28e-4,
            4.02e-5,
            7.05e-6,
            1.43e-6,
            3.17e-7,
            1.09e-7,
            3.8e-8 } },
        { { 9.80e-3, 6.36e-4, 4.46e-5, 3.53e-6, 2.95e-7, 2.71e-8 },
          { 9.80e-3, 5.79e-4, 3.50e-5, 2.23e-6, 1.43e-7, 1.08e-8 } }
    };
    const std::vector<double>& table = c_measured[ws - 1][leastSquares];
    const int last                   = static_cast<int>(table.size()) - 2;
    const int k                      = std::clamp((order - 2) / 2, 0, last);
    const double fraction            = (order - 2) / 2.0 - k;
    const double error               = table[k] * std::pow(table[k + 1] / table[k], fraction);
    const double cube                = std::sqrt(3.0) / (ws + 1);
    // Cells that are no cubes: what is left at high orders is the errors of pairs in the corners,
    // which decay slowest. Measured at orders 8 (cells of 11 x 10 x 9 in a cube), 13 and 16.
    const double q        = order + 1;
    const double exponent = std::max(0.5 * q, 0.0095 * q * q * q);
    const double oneLevel =
            error * (0.517 / cellSize) * std::pow(std::max(shapeRatio / cube, 1.0), exponent);
    // Errors of the levels are independent, and each level has twice the cell size of the one
    // below. Measured with two levels: 1.11 to 1.14 times that of one (orders 5 to 10).
    return oneLevel * std::sqrt((1 - std::pow(0.25, levels)) * 4 / 3);
}

double estimatedError(const Discretisation& d, const Grid& leaf)
{
    return d.isAllNear() ? c_errorOfNearField
                         : estimatedError(d.order,
                                          d.ws,
                                          d.leastSquares,
                                          leaf.unit(),
                                          shapeRatio(leaf.edges(), d.ws),
                                          d.levels);
}

} // namespace farfield
