/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/cell_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{

double shapeRatio(const Mat3& edges, int ws)
{
    double diagonal = 0;
    for (int y : { -1, 1 })
    {
        for (int z : { -1, 1 })
        {
            diagonal = std::max(diagonal, (edges.transpose() * Vec3(1, y, z)).squaredNorm());
        }
    }
    double nearest = std::numeric_limits<double>::max();
    const int r    = ws + 1;
    for (int x = 0; x <= r; x++) // opposite ones are as far
    {
        for (int y = -r; y <= r; y++)
        {
            for (int z = -r; z <= r; z++)
            {
                if (std::max({ std::abs(x), std::abs(y), std::abs(z) }) == r)
                {
                    nearest = std::min(nearest, (edges.transpose() * Vec3(x, y, z)).squaredNorm());
                }
            }
        }
    }
    return std::sqrt(diagonal) / std::sqrt(nearest);
}

double transformPenalty(int length)
{
    constexpr int c_largestKernel = 13; // the largest prime for which FFTW has one
    constexpr int c_long          = 64; // what the transforms of longer lengths take is memory
    const bool isLong             = length > c_long;
    double penalty                = (length % 9 == 0) ? 1.7 : 1.0;
    for (int f : { 2, 3, 5, 7 })
    {
        while (length % f == 0)
        {
            length /= f;
            penalty *= (f == 7) ? 1.4 : 1.0;
        }
    }
    if (length == 1)
    {
        return penalty;
    }
    return penalty * (length > c_largestKernel && !isLong ? 5 : 2);
}

IntMat chooseCells(const Mat3& box, double edge, int ws, int coarsen)
{
    const double e   = edge * coarsen;
    IntMat best      = {};
    double bestScore = std::numeric_limits<double>::max();
    IntMat centre    = {};
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j <= i; j++)
        {
            centre[i][j] = static_cast<int>(std::lround(box(i, j) / e));
        }
        centre[i][i] = std::max(centre[i][i], 1);
    }
    const auto range = [&](int i, int j, int d)
    { return box(i, j) == 0 && i != j ? (d == 0) : true; };
    const double wantedVolume = edge * edge * edge;
    for (int code = 0; code < 729; code++)
    {
        const int d[6] = { code % 3 - 1,      code / 3 % 3 - 1,  code / 9 % 3 - 1,
                           code / 27 % 3 - 1, code / 81 % 3 - 1, code / 243 - 1 };
        if (!range(1, 0, d[3]) || !range(2, 0, d[4]) || !range(2, 1, d[5]))
        {
            continue;
        }
        IntMat H = centre;
        H[0][0] += d[0];
        H[1][1] += d[1];
        H[2][2] += d[2];
        H[1][0] += d[3];
        H[2][0] += d[4];
        H[2][1] += d[5];
        if (H[0][0] < 1 || H[1][1] < 1 || H[2][2] < 1)
        {
            continue;
        }
        for (Int3& row : H)
        {
            for (int& entry : row)
            {
                entry *= coarsen;
            }
        }
        const Grid grid(H, box);
        // The error grows about as ratio^(p+1); a volume off by 10 % costs less than that.
        const double volume = std::log(std::pow(grid.unit(), 3) / wantedVolume);
        double score        = shapeRatio(grid.edges(), ws) * (1 + 0.15 * volume * volume);
        for (int length : grid.lengths())
        {
            score *= 1 + 0.03 * (transformPenalty(length) - 1);
        }
        if (score < bestScore * (1 - 1e-9))
        {
            bestScore = score;
            best      = H;
        }
    }
    return best;
}

} // namespace farfield
