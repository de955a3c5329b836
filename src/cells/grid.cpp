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

namespace
{

//! A cyclic group whose order is a power of a prime.
struct Part
{
    int prime, power;
    int dimension; //!< the cyclic group that it is a part of
};

//! The parts of a product of cyclic groups.
std::vector<Part> primaryParts(const Int3& lengths)
{
    std::vector<Part> parts;
    for (int k = 0; k < 3; k++)
    {
        int rest = lengths[k];
        for (int prime = 2; rest > 1; prime++)
        {
            if (prime * prime > rest)
            {
                prime = rest;
            }
            int power = 1;
            while (rest % prime == 0)
            {
                rest /= prime;
                power *= prime;
            }
            if (power > 1)
            {
                parts.push_back({ prime, power, k });
            }
        }
    }
    // large ones first: what they leave decides little
    std::sort(parts.begin(),
              parts.end(),
              [](const Part& a, const Part& b) { return a.power > b.power; });
    return parts;
}

//! Combines parts of different primes into three cyclic groups of about equal order: the number of
//! the group of each part.
std::vector<int> balancedGroups(const std::vector<Part>& parts)
{
    std::vector<int> groups(parts.size(), 0), best;
    double least            = std::numeric_limits<double>::max();
    const auto isCompatible = [&](size_t i)
    {
        for (size_t j = 0; j < i; j++)
        {
            if (groups[j] == groups[i] && parts[j].prime == parts[i].prime)
            {
                return false;
            }
        }
        return true;
    };
    const auto search = [&](const auto& self, size_t i, Int3 orders) -> void
    {
        const double sum = double(orders[0]) + orders[1] + orders[2];
        if (sum >= least)
        {
            return;
        }
        if (i == parts.size())
        {
            least = sum;
            best  = groups;
            return;
        }
        // groups are alike until they have a part
        for (int group = 0; group < std::min<int>(3, static_cast<int>(i) + 1); group++)
        {
            groups[i] = group;
            if (isCompatible(i))
            {
                Int3 next = orders;
                next[group] *= parts[i].power;
                self(self, i + 1, next);
            }
        }
    };
    search(search, 0, { 1, 1, 1 });
    return best;
}

} // namespace

void Grid::diagonalise()
{
    // Column operations are collected in V; row operations only change the basis of the lattice.
    // Entries on the way grow beyond 32 bits where a box is much skewed.
    using Wide = std::array<std::array<long long, 3>, 3>;
    Wide A     = {};
    for (int r = 0; r < 3; r++)
    {
        std::copy(H_[r].begin(), H_[r].end(), A[r].begin());
    }
    Wide V            = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
    const auto divide = [](long long x, long long y)
    { return x / y - ((x % y != 0) && ((x < 0) != (y < 0))); };
    const auto addColumn = [&](int to, int from, long long factor)
    {
        for (int r = 0; r < 3; r++)
        {
            A[r][to] += factor * A[r][from];
            V[r][to] += factor * V[r][from];
        }
    };
    const auto swapColumns = [&](int a, int b)
    {
        for (int r = 0; r < 3; r++)
        {
            std::swap(A[r][a], A[r][b]);
            std::swap(V[r][a], V[r][b]);
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
                const long long q = divide(A[r][d], A[d][d]);
                for (int c = 0; c < 3; c++)
                {
                    A[r][c] -= q * A[d][c];
                }
                clean = clean && A[r][d] == 0;
            }
            for (int c = d + 1; c < 3; c++)
            {
                addColumn(c, d, -divide(A[d][c], A[d][d]));
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
    const std::vector<Part> parts = primaryParts({ static_cast<int>(std::abs(A[0][0])),
                                                   static_cast<int>(std::abs(A[1][1])),
                                                   static_cast<int>(std::abs(A[2][2])) });
    const std::vector<int> groups = balancedGroups(parts);
    Int3 lengths                  = { 1, 1, 1 };
    for (size_t i = 0; i < parts.size(); i++)
    {
        lengths[groups[i]] *= parts[i].power;
    }
    Int3 order = { 0, 1, 2 };
    std::stable_sort(
            order.begin(), order.end(), [&](int a, int b) { return lengths[a] < lengths[b]; });
    for (int k = 0; k < 3; k++)
    {
        const int n = lengths[order[k]];
        lengths_[k] = n;
        for (int r = 0; r < 3; r++)
        {
            long long sum = 0;
            for (size_t i = 0; i < parts.size(); i++)
            {
                if (groups[i] == order[k])
                {
                    // the number that is 1 modulo this power and 0 modulo the others of the group
                    const int power  = parts[i].power;
                    const int others = n / power;
                    int one          = 1 % power;
                    while (one * others % power != 1 % power)
                    {
                        one++;
                    }
                    const long long source = V[r][parts[i].dimension];
                    const long long rest   = source - divide(source, power) * power;
                    sum += rest * one % power * others;
                }
            }
            // only remainders matter, and small entries cannot overflow later
            V_[r][k] = static_cast<int>(sum % n);
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

} // namespace farfield
