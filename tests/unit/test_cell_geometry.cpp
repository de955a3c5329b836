/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What host and device share about cells, against brute force in skewed boxes: shortest
 *         images, images of cells, the cell of a position.
 */
#include <cmath>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "box_matrix.h"
#include "cells/binning.h"
#include "cells/cell_index.h"
#include "cells/cell_shape.h"
#include "cells/grid.h"
#include "cells/minimum_image.h"
#include "reference.h"

namespace farfield
{
namespace test
{
namespace
{

//! Boxes of GROMACS, and those at the limits of its conditions on the skew.
std::vector<NamedBox> skewedBoxes()
{
    std::vector<NamedBox> boxes = allBoxes(8.0);
    boxes.push_back({ "as skewed as may be", { { { 2, 0, 0 }, { 1, 2, 0 }, { 1, 1, 2 } } } });
    boxes.push_back({ "skewed the other way", { { { 2, 0, 0 }, { -1, 2, 0 }, { 1, -1, 2 } } } });
    boxes.push_back({ "skewed and long", { { { 2, 0, 0 }, { 1, 1.5, 0 }, { -1, 0.75, 6 } } } });
    return boxes;
}

TEST(MinimumImage, IsTheShortestOfAllImages)
{
    constexpr int c_reach = 4; // positions up to 1.5 boxes away, and 2 more on each side
    std::mt19937 random(31);
    std::uniform_real_distribution<double> uniform(-1.5, 1.5);
    for (const NamedBox& named : skewedBoxes())
    {
        const Mat3 box           = matrixOf(named.box);
        const MinimumImage image = MinimumImage::of(box);
        for (int trial = 0; trial < 1000; ++trial)
        {
            const Vec3 d =
                    box.transpose() * Vec3(uniform(random), uniform(random), uniform(random));
            double shortest2 = std::numeric_limits<double>::max();
            for (int x = -c_reach; x <= c_reach; ++x)
            {
                for (int y = -c_reach; y <= c_reach; ++y)
                {
                    for (int z = -c_reach; z <= c_reach; ++z)
                    {
                        shortest2 = std::min(shortest2,
                                             (d + box.transpose() * Vec3(x, y, z)).squaredNorm());
                    }
                }
            }
            double found[3] = { d[0], d[1], d[2] };
            image.search(found);
            const Vec3 f(found[0], found[1], found[2]);
            // rounding of positions of up to 4 box vectors
            const double unit = 16 * std::numeric_limits<double>::epsilon() * box.norm();
            EXPECT_NEAR(f.norm(), std::sqrt(shortest2), unit) << named.name;
            // it is an image
            const Vec3 turns = box.transpose().inverse() * (f - d);
            for (int k = 0; k < 3; ++k)
            {
                EXPECT_NEAR(turns[k], std::round(turns[k]), unit) << named.name;
            }
            if (d.squaredNorm() < image.safe2)
            {
                EXPECT_NEAR(d.norm(), std::sqrt(shortest2), unit) << named.name << ": safe2";
            }
        }
    }
}

//! Many box vectors of a flat box are shorter than its first one.
TEST(MinimumImage, IsFoundInFlatBoxes)
{
    Mat3 box;
    box << 68.9, 0, 0, -15.2, 32.9, 0, -12.9, -14.8, 1.66;
    const MinimumImage image = MinimumImage::of(box);
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    for (int trial = 0; trial < 200; ++trial)
    {
        const Vec3 d = box.transpose() * Vec3(uniform(random), uniform(random), uniform(random));
        double shortest2 = d.squaredNorm();
        for (int z = -45; z <= 45; ++z)
        {
            for (int y = -25; y <= 25; ++y)
            {
                for (int x = -17; x <= 17; ++x)
                {
                    shortest2 = std::min(shortest2,
                                         (d + box.transpose() * Vec3(x, y, z)).squaredNorm());
                }
            }
        }
        double found[3] = { d[0], d[1], d[2] };
        image.search(found);
        EXPECT_NEAR(Vec3(found[0], found[1], found[2]).norm(), std::sqrt(shortest2), 1e-12);
    }
}

//! Cells of rectangular and skewed boxes, up to boxes of one cell and rows of H far off the box.
std::vector<IntMat> cellMatrices()
{
    return { { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } },
             { { { 4, 0, 0 }, { 0, 6, 0 }, { 0, 0, 5 } } },
             { { { 4, 0, 0 }, { 2, 3, 0 }, { -1, 1, 2 } } },
             { { { 3, 0, 0 }, { -11, 2, 0 }, { 7, -5, 4 } } } };
}

//! Whether two cells differ by rows of H; by search.
bool areImages(const IntMat& H, const Int3& a, const Int3& b)
{
    constexpr int c_reach = 40;
    for (int z = -c_reach; z <= c_reach; ++z)
    {
        if (a[2] - b[2] != z * H[2][2])
        {
            continue;
        }
        for (int y = -c_reach; y <= c_reach; ++y)
        {
            if (a[1] - b[1] != z * H[2][1] + y * H[1][1])
            {
                continue;
            }
            const int rest = a[0] - b[0] - z * H[2][0] - y * H[1][0];
            return rest % H[0][0] == 0;
        }
    }
    return false;
}

TEST(CellGrid, ReducesEveryCellToTheOneImageInTheBox)
{
    constexpr int c_range = 9;
    for (const IntMat& H : cellMatrices())
    {
        const CellGrid grid = CellGrid::of(H);
        EXPECT_EQ(grid.cells, H[0][0] * H[1][1] * H[2][2]);
        for (int code = 0; code < (2 * c_range + 1) * (2 * c_range + 1) * (2 * c_range + 1); ++code)
        {
            constexpr int c_width = 2 * c_range + 1;
            const Int3 c          = { code % c_width - c_range,
                                      code / c_width % c_width - c_range,
                                      code / c_width / c_width - c_range };
            Int3 quick = c, distant = c, back;
            grid.reduce(quick.data());
            grid.reduceDistant(distant.data());
            EXPECT_EQ(quick, distant);
            for (int k = 0; k < 3; ++k)
            {
                EXPECT_TRUE(quick[k] >= 0 && quick[k] < H[k][k]);
            }
            EXPECT_TRUE(areImages(H, c, quick)) << c[0] << " " << c[1] << " " << c[2];
            const int index = grid.index(quick.data());
            ASSERT_TRUE(index >= 0 && index < grid.cells);
            grid.cell(index, back.data());
            EXPECT_EQ(back, quick);
        }
    }
}

TEST(CellGrid, ReducesCellsABillionAway)
{
    std::mt19937 random(32);
    std::uniform_int_distribution<int> uniform(-1000000000, 1000000000);
    for (const IntMat& H : cellMatrices())
    {
        const CellGrid grid = CellGrid::of(H);
        for (int trial = 0; trial < 1000; ++trial)
        {
            const Int3 c = { uniform(random), uniform(random), uniform(random) };
            Int3 reduced = c;
            grid.reduceDistant(reduced.data());
            // the difference is a row vector of whole numbers times H: by forward substitution
            long long d[3];
            for (int k = 0; k < 3; ++k)
            {
                d[k] = static_cast<long long>(c[k]) - reduced[k];
                EXPECT_TRUE(reduced[k] >= 0 && reduced[k] < H[k][k]);
            }
            for (int k = 2; k >= 0; --k)
            {
                ASSERT_EQ(d[k] % H[k][k], 0);
                const long long turns = d[k] / H[k][k];
                for (int j = 0; j <= k; ++j)
                {
                    d[j] -= turns * H[k][j];
                }
            }
        }
    }
}

//! The cell is the one, of all images, whose fractional coordinates contain the position.
TEST(Binning, FindsTheCellThatContainsAPosition)
{
    std::mt19937 random(33);
    std::uniform_real_distribution<double> uniform(-1.5, 2.5);
    const double offset[3] = { 0.3, 0, 0.85 };
    for (const NamedBox& named : skewedBoxes())
    {
        const Mat3 box = matrixOf(named.box);
        const IntMat H = chooseCells(box, 0.4, 1, 1);
        const Grid grid(H, box);
        const CellGrid plain = grid.plain();
        const Mat3 rotation =
                Eigen::AngleAxisd(0.1, Vec3(2, -1, 2).normalized()).toRotationMatrix();
        const BinFrame frame = BinFrame::of(grid.edges(), grid.inverseEdges(), rotation);
        for (int trial = 0; trial < 200; ++trial)
        {
            const Vec3 s(uniform(random), uniform(random), uniform(random));
            const Vec3 inFrame = box.transpose() * s;
            const Vec3 r       = rotation.transpose() * inFrame;
            const double x[3]  = { r[0], r[1], r[2] };
            int cell           = -1;
            double relative[3];
            ASSERT_TRUE(binPosition(plain, frame, offset, x, &cell, relative));
            // all images of the position against all cells of the box
            int found         = 0;
            const double unit = 1e-12; // of an edge of cells whose positions are up to 50 away
            for (int image = 0; image < 343; ++image)
            {
                const Vec3 turns(image / 49 - 3, image / 7 % 7 - 3, image % 7 - 3);
                const Vec3 c = grid.inverseEdges().transpose() * (inFrame + box.transpose() * turns)
                               - Vec3(offset[0], offset[1], offset[2]);
                const Int3 index = { static_cast<int>(std::floor(c[0])),
                                     static_cast<int>(std::floor(c[1])),
                                     static_cast<int>(std::floor(c[2])) };
                if (index[0] < 0 || index[0] >= H[0][0] || index[1] < 0 || index[1] >= H[1][1]
                    || index[2] < 0 || index[2] >= H[2][2])
                {
                    continue;
                }
                ++found;
                EXPECT_EQ(cell, grid.index(index)) << named.name;
                const Vec3 due = grid.edges().transpose()
                                 * (c - Vec3(index[0] + 0.5, index[1] + 0.5, index[2] + 0.5));
                for (int k = 0; k < 3; ++k)
                {
                    EXPECT_NEAR(relative[k], due[k], unit) << named.name;
                }
            }
            EXPECT_EQ(found, 1) << named.name;
        }
    }
}

TEST(Binning, RefusesPositionsWithoutACell)
{
    const Mat3 box = 2 * Mat3::Identity();
    const IntMat H = { { { 4, 0, 0 }, { 0, 4, 0 }, { 0, 0, 4 } } };
    const Grid grid(H, box);
    const BinFrame frame = BinFrame::of(grid.edges(), grid.inverseEdges(), Mat3(Mat3::Identity()));
    const double offset[3] = { 0, 0, 0 };
    for (const double bad : { std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              1e10,
                              -1e10 })
    {
        for (int k = 0; k < 3; ++k)
        {
            double x[3]        = { 0.1, 0.2, 0.3 };
            x[k]               = bad;
            int cell           = 17;
            double relative[3] = { 1, 2, 3 };
            EXPECT_FALSE(binPosition(grid.plain(), frame, offset, x, &cell, relative));
            EXPECT_EQ(cell, 17);
            EXPECT_EQ(relative[0], 1);
        }
    }
    // the largest distance that has a cell
    const double x[3] = { 4.9e8, -4.9e8, 0.3 };
    int cell          = -1;
    double relative[3];
    EXPECT_TRUE(binPosition(grid.plain(), frame, offset, x, &cell, relative));
    EXPECT_TRUE(cell >= 0 && cell < 64);
}

//! Of the cells that are about as good, those whose transform is fast: FFTW has no kernel for larger
//! primes than 13.
TEST(CellShape, AvoidsLengthsWithLargePrimes)
{
    for (int wanted = 14; wanted <= 56; wanted++)
    {
        const Mat3 box = wanted * Mat3::Identity();
        const IntMat H = chooseCells(box, 1.0, 1, 1);
        int left       = H[0][0];
        for (const int factor : { 2, 3, 5, 7, 11, 13 })
        {
            while (left % factor == 0)
            {
                left /= factor;
            }
        }
        EXPECT_EQ(left, 1) << wanted << " cells were wanted, there are " << H[0][0];
        EXPECT_LE(std::abs(H[0][0] - wanted), 1);
    }
}

} // namespace
} // namespace test
} // namespace farfield
