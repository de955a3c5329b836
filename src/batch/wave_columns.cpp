/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/wave_columns.h"

#include <algorithm>
#include <cmath>

#include "farfield/farfield.h"

#include "base/text.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;

} // namespace

void WaveColumns::find(const Mat3& waves, double cutoff)
{
    columns.clear();
    // products of reciprocal vectors
    const Mat3 products  = waves * waves.transpose();
    const double perStep = 1 / products(2, 2);
    const Mat3 box       = 2 * c_pi * waves.inverse(); // columns
    int most[3];
    for (int axis = 0; axis < 3; axis++)
    {
        most[axis] = static_cast<int>(cutoff / (2 * c_pi) * box.col(axis).norm());
    }
    constexpr double c_mostWaves = 1 << 27;
    const double all             = (1.0 + most[0]) * (1.0 + most[1]) * (1.0 + most[2]);
    if (!(all < c_mostWaves))
    {
        throw Error(
                ErrorCode::InvalidArgument,
                "needs " + text(all) + " waves, more than " + text(c_mostWaves)
                        + ": its box is too flat or too long, or its charges too narrow. Check "
                          "its box vectors, and smearing and waveCutoff of Gaussian charges; or "
                          "use a Solver for point charges.",
                "boxes");
    }
    count = 0;
    range = { 0, 0, 0 };
    columns.reserve((most[0] + 1) * static_cast<size_t>(most[1] + 1));
    for (int h = 0; h <= most[0]; h++)
    {
        for (int k = 0; k <= most[1]; k++)
        {
            int last = -1;
            for (int sign = -1; sign <= 1; sign += 2)
            {
                // along the third axis these are a ball's centre and its squared half chord
                const double own = h, other = sign * k;
                const double square = own * own * products(0, 0) + other * other * products(1, 1)
                                      + 2 * own * other * products(0, 1);
                const double nearest = (own * products(0, 2) + other * products(1, 2)) * perStep;
                const double left    = (cutoff * cutoff - square) * perStep + nearest * nearest;
                if (left >= 0)
                {
                    last = std::max(last, static_cast<int>(std::abs(nearest) + std::sqrt(left)));
                }
            }
            if (last >= 0)
            {
                columns.push_back({ h, k, last, count });
                count += last + 1;
                range = { std::max(range[0], h), std::max(range[1], k), std::max(range[2], last) };
            }
        }
    }
}

} // namespace farfield
