/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "grid.h"

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

Grid::Grid(const IntMat& H, const Mat3& box) : H_(H), box_(box)
{
    Mat3 h;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            h(i, j) = H[i][j];
        }
    }
    G_        = h.inverse() * box;
    GInverse_ = G_.inverse();
    unit_     = std::cbrt(std::abs(G_.determinant()));
    diagonalise();
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

void Grid::diagonalise()
{
    // Column operations are collected in V; row operations only change the basis of the lattice.
    IntMat A             = H_;
    V_                   = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
    const auto addColumn = [&](int to, int from, int factor)
    {
        for (int r = 0; r < 3; r++)
        {
            A[r][to] += factor * A[r][from];
            V_[r][to] += factor * V_[r][from];
        }
    };
    const auto swapColumns = [&](int a, int b)
    {
        for (int r = 0; r < 3; r++)
        {
            std::swap(A[r][a], A[r][b]);
            std::swap(V_[r][a], V_[r][b]);
        }
    };
    for (int d = 0; d < 3; d++)
    {
        for (bool clean = false; !clean;)
        {
            // the smallest non-zero entry of the remaining block becomes the pivot
            int row = d, column = d;
            for (int r = d; r < 3; r++)
            {
                for (int c = d; c < 3; c++)
                {
                    if (A[r][c] != 0
                        && (A[row][column] == 0 || std::abs(A[r][c]) < std::abs(A[row][column])))
                    {
                        row    = r;
                        column = c;
                    }
                }
            }
            std::swap(A[d], A[row]);
            if (column != d)
            {
                swapColumns(d, column);
            }
            clean = true;
            for (int r = d + 1; r < 3; r++)
            {
                const int q = floorDivide(A[r][d], A[d][d]);
                for (int c = 0; c < 3; c++)
                {
                    A[r][c] -= q * A[d][c];
                }
                clean = clean && A[r][d] == 0;
            }
            for (int c = d + 1; c < 3; c++)
            {
                addColumn(c, d, -floorDivide(A[d][c], A[d][d]));
                clean = clean && A[d][c] == 0;
            }
        }
    }
    // Transforms run fastest with the longest dimension last; a rectangular box keeps storage
    // order.
    const bool rectangular = H_[1][0] == 0 && H_[2][0] == 0 && H_[2][1] == 0;
    if (rectangular)
    {
        V_       = { { { 0, 0, 1 }, { 0, 1, 0 }, { 1, 0, 0 } } };
        lengths_ = { H_[2][2], H_[1][1], H_[0][0] };
        return;
    }
    Int3 order = { 0, 1, 2 };
    std::stable_sort(order.begin(),
                     order.end(),
                     [&](int a, int b) { return std::abs(A[a][a]) < std::abs(A[b][b]); });
    const IntMat V = V_;
    for (int k = 0; k < 3; k++)
    {
        lengths_[k] = std::abs(A[order[k]][order[k]]);
        for (int r = 0; r < 3; r++)
        {
            // only remainders matter, and small entries cannot overflow later
            V_[r][k] = V[r][order[k]] - floorDivide(V[r][order[k]], lengths_[k]) * lengths_[k];
        }
    }
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

double shapeRatio(const Mat3& edges, int ws)
{
    double diagonal = 0;
    for (int y : { -1, 1 })
    {
        for (int z : { -1, 1 })
        {
            diagonal = std::max(diagonal, (edges.transpose() * Vec3(1, y, z)).norm());
        }
    }
    double nearest = std::numeric_limits<double>::max();
    const int r    = ws + 1;
    for (int x = -r; x <= r; x++)
    {
        for (int y = -r; y <= r; y++)
        {
            for (int z = -r; z <= r; z++)
            {
                if (std::max({ std::abs(x), std::abs(y), std::abs(z) }) == r)
                {
                    nearest = std::min(nearest, (edges.transpose() * Vec3(x, y, z)).norm());
                }
            }
        }
    }
    return diagonal / nearest;
}

double transformPenalty(int length)
{
    double penalty = (length % 9 == 0) ? 1.7 : 1.0;
    for (int f : { 2, 3, 5, 7 })
    {
        while (length % f == 0)
        {
            length /= f;
            penalty *= (f == 7) ? 1.4 : 1.0;
        }
    }
    return length == 1 ? penalty : 2 * penalty;
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
