/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{

std::vector<Int3> nearDisplacements(int ws)
{
    std::vector<Int3> all = { { 0, 0, 0 } };
    for (int sign : { 1, -1 })
    {
        for (int z = 0; z <= ws; z++)
        {
            for (int y = (z == 0) ? 0 : -ws; y <= ws; y++)
            {
                for (int x = (z == 0 && y == 0) ? 1 : -ws; x <= ws; x++)
                {
                    all.push_back({ sign * x, sign * y, sign * z });
                }
            }
        }
    }
    return all;
}

Grid::Grid(const IntMat& H, const Mat3& box) : H_(H), plain_(CellGrid::of(H)), box_(box)
{
    Mat3 h;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            h(i, j) = H[i][j];
        }
    }
    G_                        = h.inverse() * box;
    GInverse_                 = G_.inverse();
    unit_                     = std::cbrt(std::abs(G_.determinant()));
    const CyclicGroups groups = cyclicGroups(H);
    V_                        = groups.V;
    lengths_                  = groups.lengths;
}

Grid Grid::refined() const
{
    IntMat H = H_;
    for (Int3& row : H)
    {
        for (int& entry : row)
        {
            entry *= 2;
        }
    }
    return Grid(H, box_);
}

int Grid::slot(const Int3& c) const
{
    int position = 0;
    for (int k = 0; k < 3; k++)
    {
        const long long t = static_cast<long long>(c[0]) * V_[0][k]
                            + static_cast<long long>(c[1]) * V_[1][k]
                            + static_cast<long long>(c[2]) * V_[2][k];
        const int n = lengths_[k];
        position    = position * n + static_cast<int>(((t % n) + n) % n);
    }
    return position;
}

Vec3 Grid::phases(int waveVector) const
{
    const int half = lengths_[2] / 2 + 1;
    const int row  = waveVector / half;
    Vec3 kappa(row / lengths_[1], row % lengths_[1], waveVector % half);
    Vec3 w = Vec3::Zero();
    for (int k = 0; k < 3; k++)
    {
        for (int r = 0; r < 3; r++)
        {
            w[r] += 2 * M_PI * V_[r][k] * kappa[k] / lengths_[k];
        }
    }
    for (int r = 0; r < 3; r++)
    {
        w[r] -= 2 * M_PI * std::round(w[r] / (2 * M_PI));
    }
    return w;
}

int Grid::multiplicity(int waveVector) const
{
    const int last = waveVector % (lengths_[2] / 2 + 1);
    return (last == 0 || 2 * last == lengths_[2]) ? 1 : 2;
}

} // namespace farfield
