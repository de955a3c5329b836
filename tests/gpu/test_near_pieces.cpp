/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// How the near field of the GPU is cut into portions; runs on the host.
#include <vector>

#include <gtest/gtest.h>

#include "near/near_pieces.h"

namespace farfield
{
namespace
{

TEST(GpuNearPieces, WarpsThatShareACellTakeEveryPortionOnce)
{
    constexpr int c_batches = 37;
    for (int logShares = 0; logShares <= 5; logShares++)
    {
        for (int groups = 1; groups <= 40; groups++)
        {
            std::vector<int> taken(groups * c_batches, 0);
            for (int share = 0; share < (1 << logShares); share++)
            {
                const WarpShare warp(share, logShares, groups);
                for (int g = warp.firstGroup; g < groups; g += warp.groupStep)
                {
                    for (int b = warp.firstBatch; b < c_batches; b += warp.batchStep)
                    {
                        taken[g * c_batches + b]++;
                    }
                }
            }
            EXPECT_EQ(taken, std::vector<int>(taken.size(), 1))
                    << groups << " groups, " << (1 << logShares) << " warps";
        }
    }
}

TEST(GpuNearPieces, GroupsOfTargetsAreEvenAndHoldAll)
{
    constexpr int c_capacity = 28;
    for (int particles = 1; particles <= 1000; particles++)
    {
        const TargetGroups<c_capacity> groups(particles);
        EXPECT_LE(groups.size, c_capacity);
        EXPECT_GE(groups.size * groups.groups, particles);
        EXPECT_LT(groups.size * groups.groups - particles, groups.groups);
    }
}

TEST(GpuNearPieces, DivisionIsExact)
{
    for (int d : { 1, 2, 3, 5, 7, 12, 31, 64, 641, 46341, 1 << 30 })
    {
        const Divisor divisor(d);
        for (const long long n :
             { 0LL, 1LL, d - 1LL, 1LL * d, d + 1LL, 5LL * d - 1, 5LL * d, (1LL << 31) - 1 })
        {
            if (n < (1LL << 31))
            {
                EXPECT_EQ(divisor.quotient(static_cast<int>(n)), n / d) << n << " / " << d;
            }
        }
    }
}

TEST(GpuNearPieces, VisitEveryPairOfCellsOnce)
{
    using Half       = NearPieces<1, true>;
    using All        = NearPieces<1, false>;
    const auto index = [](const int* D) { return (D[2] * 3 + D[1]) * 3 + D[0] + 13; };
    std::vector<int> half(27, 0), all(27, 0);
    int D[3];
    for (int piece = 0; piece < Half::c_count; piece++)
    {
        Half::displacement(piece, D);
        const int opposite[3] = { -D[0], -D[1], -D[2] };
        half[index(D)]++;
        half[index(opposite)] += piece > 0 ? 1 : 0;
    }
    for (int piece = 0; piece < All::c_count; piece++)
    {
        All::displacement(piece, D);
        all[index(D)]++;
    }
    EXPECT_EQ(half, std::vector<int>(27, 1));
    EXPECT_EQ(all, std::vector<int>(27, 1));
}

} // namespace
} // namespace farfield
