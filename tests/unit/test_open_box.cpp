/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boxes of particles without images: which cells keep these apart.
 */
#include "plan/open_box.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace farfield
{
namespace
{

/*! \brief Cells that particles of an extent may be apart, wherever the grid lies, and the closest that
 *         one of them may come to an image of another. */
struct Apart
{
    int most = 0, fromImages = 1 << 20;

    Apart(double extent, double cell, int cells)
    {
        for (double offset = 0; offset < 1; offset += 1.0 / 64)
        {
            const int last = static_cast<int>(std::floor(offset + extent / cell));
            most           = std::max(most, last);
            fromImages     = std::min(fromImages, cells - last);
        }
    }
};

TEST(OpenBox, HoldsWhatStaysApartFromImages)
{
    constexpr double c_length = 6;
    for (int cells = 1; cells < 20; ++cells)
    {
        const double cell = c_length / cells;
        for (const int ws : { 1, 2 })
        {
            for (double extent = 0.01; extent < c_length; extent += 0.0503)
            {
                const Apart apart(extent, cell, cells);
                const OpenCells open = { { cells, 40, 40 }, ws, Boundary::Open };
                const bool isHeld =
                        open.hold(c_length * Mat3::Identity(), Vec3(extent, 0.01, 0.01));
                // displacements that are not their own opposites, and no image that is near
                const bool isApart = 2 * apart.most < cells && apart.fromImages > ws;
                EXPECT_TRUE(!isHeld || isApart)
                        << cells << " cells, ws = " << ws << ", extent " << extent;
                // nothing is given away beyond one cell
                const Apart wider(extent + cell, cell, cells);
                EXPECT_TRUE(isHeld || 2 * wider.most >= cells || wider.fromImages <= ws)
                        << cells << " cells, ws = " << ws << ", extent " << extent;
            }
        }
    }
}

TEST(OpenBox, LeavesRoomToMove)
{
    const Vec3 extent(3, 2, 0);
    EXPECT_TRUE(isLikeExtent(extent, extent));
    EXPECT_TRUE(isLikeExtent(1.09 * extent, extent));
    EXPECT_TRUE(isLikeExtent(0.26 * extent, extent));
    EXPECT_FALSE(isLikeExtent(1.11 * extent, extent));
    EXPECT_FALSE(isLikeExtent(0.24 * extent, extent));
    EXPECT_TRUE(isLikeExtent(Vec3(3, 2, 0.3), extent)) << "a sheet that has undulations";
    EXPECT_FALSE(isLikeExtent(Vec3(3, 2, 1), extent));
    EXPECT_TRUE(isLikeExtent(Vec3::Zero(), Vec3::Zero()));
    const Mat3 box = openBox(Boundary::Open, Mat3::Identity(), extent, 0, 2.5);
    EXPECT_TRUE(box.isDiagonal());
    EXPECT_GT(box(0, 0), 2.5 * 3);
    EXPECT_GT(box(2, 2), 0);
    EXPECT_GE(openBox(Boundary::Open, Mat3::Identity(), Vec3::Zero(), 0.7, 3)(0, 0), 3 * 0.7)
            << "the cell that was asked for";
}

//! What has grown holds the particles, has room for more and for less, and no axis grows for another.
TEST(OpenBox, DoublesForWhatLeavesIt)
{
    const Vec3 chosen(3, 2, 0);
    for (const Boundary boundary : { Boundary::Open, Boundary::Slab })
    {
        EXPECT_FALSE(growthFor(boundary, chosen, chosen).any());
        EXPECT_FALSE(growthFor(boundary, 0.1 * chosen, chosen).any());
        for (const double height : { 0.34, 0.6, 1.0, 17.0 })
        {
            const Vec3 extent(3, 2, height);
            const Growth growth = growthFor(boundary, extent, chosen);
            EXPECT_TRUE(growth.any());
            EXPECT_EQ(growth.factors[0] * growth.factors[1], 1);
            EXPECT_TRUE(isLikeExtent(extent, growth.extent)) << height;
            EXPECT_LE(growth.extent[2], 2 * height);
            const double factor = growth.factors[2];
            EXPECT_EQ(std::exp2(std::round(std::log2(factor))), factor);
            EXPECT_LE(growth.extent[2], factor * 0.3 * (1 + 1e-12)) << "of a sheet this is held";
            EXPECT_GT(height, 0.5 * factor * 0.3);
        }
    }
    EXPECT_FALSE(growthFor(Boundary::Slab, Vec3(9, 9, 0), chosen).any()) << "its box is another";
    EXPECT_GT(growthFor(Boundary::Open, Vec3(9, 2, 0), chosen).factors[0], 2);
    const Growth beyond = growthFor(Boundary::Open, Vec3(3e6, 2, 1), Vec3::Zero());
    EXPECT_GE(beyond.extent[0], 3e6) << "of a single particle";
}

} // namespace
} // namespace farfield
