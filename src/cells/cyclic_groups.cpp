/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/cyclic_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace farfield
{
namespace
{

// Entries grow beyond 32 bits on the way where a box is much skewed.
using Wide = std::array<std::array<long long, 3>, 3>;

long long divide(long long x, long long y)
{
    return x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
}

//! A matrix on its way to a diagonal one.
class Diagonalisation
{
public:
    explicit Diagonalisation(const IntMat& H) :
        numCells_(static_cast<long long>(H[0][0]) * H[1][1] * H[2][2])
    {
        for (int r = 0; r < 3; r++)
        {
            std::copy(H[r].begin(), H[r].end(), A_[r].begin());
        }
        for (int d = 0; d < 3; d++)
        {
            do
            {
                bringPivot(d);
            } while (!clearCross(d));
        }
    }
    //! Orders of the cyclic groups.
    Int3 diagonal() const
    {
        return { static_cast<int>(std::abs(A_[0][0])),
                 static_cast<int>(std::abs(A_[1][1])),
                 static_cast<int>(std::abs(A_[2][2])) };
    }
    //! The column operations, modulo the number of cells, which each order divides; row operations
    //! only change the basis of the lattice.
    const Wide& V() const { return V_; }

private:
    //! The smallest non-zero entry of the block from d on becomes its first.
    void bringPivot(int d)
    {
        int row = d, column = d;
        for (int r = d; r < 3; r++)
        {
            for (int c = d; c < 3; c++)
            {
                if (A_[r][c] != 0
                    && (A_[row][column] == 0 || std::abs(A_[r][c]) < std::abs(A_[row][column])))
                {
                    row    = r;
                    column = c;
                }
            }
        }
        std::swap(A_[d], A_[row]);
        for (int r = 0; column != d && r < 3; r++)
        {
            std::swap(A_[r][d], A_[r][column]);
            std::swap(V_[r][d], V_[r][column]);
        }
    }
    //! Subtracts multiples of row and column d. \returns whether nothing is left beside the pivot
    bool clearCross(int d)
    {
        bool clean = true;
        for (int r = d + 1; r < 3; r++)
        {
            const long long q = divide(A_[r][d], A_[d][d]);
            for (int c = 0; c < 3; c++)
            {
                A_[r][c] -= q * A_[d][c];
            }
            clean = clean && A_[r][d] == 0;
        }
        for (int c = d + 1; c < 3; c++)
        {
            const long long q = divide(A_[d][c], A_[d][d]);
            for (int r = 0; r < 3; r++)
            {
                A_[r][c] -= q * A_[r][d];
                V_[r][c] = (V_[r][c] - q % numCells_ * V_[r][d]) % numCells_;
            }
            clean = clean && A_[d][c] == 0;
        }
        return clean;
    }

    long long numCells_;
    Wide A_ = {};
    Wide V_ = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
};

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

//! The number that is 1 modulo a power and 0 modulo the other powers of a group, whose order it is
//! reduced by.
long long unitOf(int power, int order)
{
    const int others = order / power;
    int one          = 1 % power;
    while (one * others % power != 1 % power)
    {
        one++;
    }
    return static_cast<long long>(one) % power * others;
}

} // namespace

CyclicGroups cyclicGroups(const IntMat& H)
{
    // a rectangular box keeps storage order
    if (H[1][0] == 0 && H[2][0] == 0 && H[2][1] == 0)
    {
        return { { { { 0, 0, 1 }, { 0, 1, 0 }, { 1, 0, 0 } } }, { H[2][2], H[1][1], H[0][0] } };
    }
    const Diagonalisation smith(H);
    const std::vector<Part> parts = primaryParts(smith.diagonal());
    const std::vector<int> groups = balancedGroups(parts);
    Int3 orders                   = { 1, 1, 1 };
    for (size_t i = 0; i < parts.size(); i++)
    {
        orders[groups[i]] *= parts[i].power;
    }
    Int3 sorted = { 0, 1, 2 };
    std::stable_sort(
            sorted.begin(), sorted.end(), [&](int a, int b) { return orders[a] < orders[b]; });
    CyclicGroups result;
    for (int k = 0; k < 3; k++)
    {
        const int order   = orders[sorted[k]];
        result.lengths[k] = order;
        for (int r = 0; r < 3; r++)
        {
            long long sum = 0;
            for (size_t i = 0; i < parts.size(); i++)
            {
                if (groups[i] == sorted[k])
                {
                    const int power        = parts[i].power;
                    const long long source = smith.V()[r][parts[i].dimension];
                    const long long rest   = source - divide(source, power) * power;
                    sum += rest * unitOf(power, order);
                }
            }
            // only remainders matter, and small entries cannot overflow later
            result.V[r][k] = static_cast<int>(sum % order);
        }
    }
    return result;
}

} // namespace farfield
