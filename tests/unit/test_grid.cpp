/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The cells of a box as a group, and its characters.
#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cells/cell_shape.h"
#include "cells/grid.h"

namespace farfield
{
namespace
{

//! Cells of rectangular and skewed boxes, as chooseCells() makes them and others.
const std::vector<IntMat> c_cells = {
    { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } },
    { { { 4, 0, 0 }, { 0, 6, 0 }, { 0, 0, 5 } } },
    { { { 12, 0, 0 }, { 0, 12, 0 }, { 6, 6, 8 } } },
    { { { 10, 0, 0 }, { 4, 10, 0 }, { -3, 5, 8 } } },
    { { { 15, 0, 0 }, { 5, 14, 0 }, { -5, 7, 12 } } },
    { { { 7, 0, 0 }, { 3, 1, 0 }, { 2, 0, 1 } } },
    { { { 8, 0, 0 }, { 4, 8, 0 }, { -4, 4, 8 } } },
    { { { 9, 0, 0 }, { 3, 9, 0 }, { 3, 3, 9 } } },
    { { { 2, 0, 0 }, { 1, 30, 0 }, { -1, 7, 3 } } },
};

Grid gridOf(const IntMat& H)
{
    Mat3 box;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            box(i, j) = H[i][j];
        }
    }
    return Grid(H, box);
}

TEST(Grid, NumbersEveryCellOnce)
{
    for (const IntMat& H : c_cells)
    {
        const Grid grid = gridOf(H);
        const Int3 n    = grid.lengths();
        EXPECT_EQ(1LL * n[0] * n[1] * n[2], grid.count());
        std::set<int> slots;
        for (int index = 0; index < grid.count(); index++)
        {
            const Int3 c = grid.cell(index);
            EXPECT_EQ(grid.index(c), index);
            EXPECT_EQ(grid.reduce(c), c);
            slots.insert(grid.slot(c));
        }
        EXPECT_EQ(static_cast<long long>(slots.size()), grid.count());
        EXPECT_EQ(*slots.begin(), 0);
        EXPECT_EQ(*slots.rbegin(), grid.count() - 1);
    }
}

TEST(Grid, SeesImagesOfACellAsTheCell)
{
    std::mt19937 random(1);
    std::uniform_int_distribution<int> uniform(-1000000000, 1000000000);
    for (const IntMat& H : c_cells)
    {
        const Grid grid = gridOf(H);
        for (int repeat = 0; repeat < 100; repeat++)
        {
            const Int3 c       = { uniform(random), uniform(random), uniform(random) };
            const Int3 reduced = grid.reduce(c);
            for (int k = 0; k < 3; k++)
            {
                EXPECT_GE(reduced[k], 0);
                EXPECT_LT(reduced[k], H[k][k]);
            }
            // the difference is a sum of rows of H
            EXPECT_EQ(grid.slot(reduced), grid.slot(c));
        }
    }
}

TEST(Grid, HasTheWaveVectorsOfItsTransform)
{
    for (const IntMat& H : c_cells)
    {
        const Grid grid = gridOf(H);
        const Int3 n    = grid.lengths();
        long long waves = 0;
        for (int wave = 0; wave < grid.waveVectors(); wave++)
        {
            waves += grid.multiplicity(wave);
            const Vec3 w = grid.phases(wave);
            // periodic in the box
            for (const Int3& row : H)
            {
                const double turns = (w[0] * row[0] + w[1] * row[1] + w[2] * row[2]) / (2 * M_PI);
                EXPECT_NEAR(turns, std::round(turns), 1e-9);
            }
            // what a transform over the slots does to a cell
            const int half     = n[2] / 2 + 1;
            const int kappa[3] = { wave / half / n[1], wave / half % n[1], wave % half };
            for (int index = 0; index < grid.count(); index += 7)
            {
                const Int3 c   = grid.cell(index);
                const int slot = grid.slot(c);
                const int t[3] = { slot / (n[1] * n[2]), slot / n[2] % n[1], slot % n[2] };
                double turns   = 0;
                for (int k = 0; k < 3; k++)
                {
                    turns += static_cast<double>(kappa[k]) * t[k] / n[k];
                }
                const double phase = w[0] * c[0] + w[1] * c[1] + w[2] * c[2];
                EXPECT_NEAR(std::abs(std::polar(1.0, phase) - std::polar(1.0, 2 * M_PI * turns)),
                            0,
                            1e-9);
            }
        }
        EXPECT_EQ(waves, grid.count());
    }
}

//! Cyclic groups of coprime orders make up one, so no length has to be long.
TEST(Grid, HasTransformsOfBalancedLengths)
{
    const auto lengths = [](const IntMat& H) { return gridOf(H).lengths(); };
    EXPECT_EQ(lengths({ { { 12, 0, 0 }, { 0, 12, 0 }, { 6, 6, 8 } } }), (Int3{ 6, 12, 16 }));
    EXPECT_EQ(lengths({ { { 15, 0, 0 }, { 5, 14, 0 }, { -5, 7, 12 } } }), (Int3{ 8, 15, 21 }));
    // a rectangular box keeps its dimensions, the first fastest
    EXPECT_EQ(lengths({ { { 4, 0, 0 }, { 0, 6, 0 }, { 0, 0, 5 } } }), (Int3{ 5, 6, 4 }));
    // a cyclic group whose order is the power of a prime stays as it is
    EXPECT_EQ(lengths({ { { 7, 0, 0 }, { 3, 1, 0 }, { 2, 0, 1 } } }), (Int3{ 1, 1, 7 }));
}

//! Images of a cell have the same place in the groups where products of entries exceed 64 bits, too.
TEST(Grid, HasItsGroupsInSkewedBoxesOfMillionsOfCells)
{
    std::mt19937 random(4);
    std::uniform_int_distribution<int> length(200, 400), shift(-400, 400);
    for (int k = 0; k < 4000; k++)
    {
        const IntMat H            = { { { length(random), 0, 0 },
                                        { shift(random), length(random), 0 },
                                        { shift(random), shift(random), length(random) } } };
        const CyclicGroups groups = cyclicGroups(H);
        const Int3& orders        = groups.lengths;
        ASSERT_EQ(1LL * orders[0] * orders[1] * orders[2], 1LL * H[0][0] * H[1][1] * H[2][2]);
        for (const Int3& image : H)
        {
            for (int d = 0; d < 3; d++)
            {
                long long place = 0;
                for (int c = 0; c < 3; c++)
                {
                    place += 1LL * image[c] * groups.V[c][d];
                }
                EXPECT_EQ(place % orders[d], 0) << "box " << k << ", group " << d;
            }
        }
    }
}

} // namespace
} // namespace farfield
