/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/wave_columns.h"

#include <algorithm>

#include "farfield/farfield.h"

#include "base/text.h"
#include "batch/wave_ball.h"

namespace farfield
{
void WaveColumns::find(const Mat3& waves, double cutoff)
{
    columns.clear();
    const Eigen::Matrix<double, 3, 3, Eigen::RowMajor> rows = waves;
    const WaveBall ball(rows.data(), cutoff);
    if (!(ball.waves < c_mostWaves))
    {
        throw Error(
                ErrorCode::InvalidArgument,
                "needs " + text(ball.waves) + " waves, more than " + text(c_mostWaves)
                        + ": its box is too flat or too long, or its charges too narrow. Check "
                          "its box vectors, and smearing and waveCutoff of Gaussian charges; or "
                          "use a Solver for point charges.",
                "boxes");
    }
    count = 0;
    range = { 0, 0, 0 };
    columns.reserve((ball.most[0] + 1) * static_cast<size_t>(ball.most[1] + 1));
    for (int h = 0; h <= ball.most[0]; h++)
    {
        for (int k = 0; k <= ball.most[1]; k++)
        {
            const int last = ball.lastOf(h, k);
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
