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
    const double square            = cutoff * cutoff;
    const Eigen::RowVector3d third = waves.row(2);
    const double thirdSquare       = third.squaredNorm();
    const Mat3 box                 = 2 * c_pi * waves.inverse(); // columns
    const auto most                = [&](int axis)
    { return static_cast<int>(cutoff / (2 * c_pi) * box.col(axis).norm()); };
    constexpr double c_mostWaves = 1 << 27;
    const double all             = (1.0 + most(0)) * (1.0 + most(1)) * (1.0 + most(2));
    if (!(all < c_mostWaves))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "needs " + text(all) + " waves, more than " + text(c_mostWaves)
                            + ": its box is too flat or too long, or its charges too narrow.");
    }
    count = 0;
    range = { 0, 0, 0 };
    for (int h = 0; h <= most(0); h++)
    {
        for (int k = 0; k <= most(1); k++)
        {
            int last = -1;
            for (int sign = -1; sign <= 1; sign += 2)
            {
                const Eigen::RowVector3d v = h * waves.row(0) + sign * k * waves.row(1);
                const double nearest       = v.dot(third) / thirdSquare;
                const double left = (square - v.squaredNorm()) / thirdSquare + nearest * nearest;
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
