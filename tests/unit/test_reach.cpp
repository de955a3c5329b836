/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>

#include <random>

#include <gtest/gtest.h>

#include "parallel/directory.h"
#include "parallel/reach.h"

namespace farfield
{
namespace
{

//! Grids with few and many cells, straight and skewed.
std::vector<Grid> grids()
{
    std::vector<Grid> all;
    for (const IntMat& H : { IntMat{ { { 6, 0, 0 }, { 0, 5, 0 }, { 0, 0, 7 } } },
                             IntMat{ { { 9, 0, 0 }, { 4, 8, 0 }, { 3, 2, 6 } } },
                             IntMat{ { { 1, 0, 0 }, { 0, 2, 0 }, { 0, 0, 30 } } } })
    {
        Mat3 box = Mat3::Zero();
        for (int i = 0; i < 9; i++)
        {
            box(i / 3, i % 3) = 0.5 * H[i / 3][i % 3];
        }
        all.emplace_back(H, box);
    }
    return all;
}

//! Cell coordinates anywhere, other images included.
Vec3 anywhere(std::mt19937& random)
{
    std::uniform_real_distribution<double> coordinate(-20, 20);
    return { coordinate(random), coordinate(random), coordinate(random) };
}

TEST(Reach, HoldsAllCellsThatAParticleComesTo)
{
    std::mt19937 random(1);
    for (const Grid& grid : grids())
    {
        for (const double drift : { 0.35, 0.5, 1.0 })
        {
            const Reach reach(grid, drift, 2);
            std::uniform_real_distribution<double> offset(0, 1), motion(-drift, drift);
            for (int particle = 0; particle < 20; particle++)
            {
                const Vec3 u = anywhere(random);
                std::vector<char> places(reach.parts() * grid.count(), 0);
                places[reach.place(u.data())]   = 1;
                const std::vector<char> reached = reach.reached(places);
                std::vector<char> hit(grid.count(), 0);
                for (int k = 0; k < 300; k++)
                {
                    Int3 cell;
                    for (int c = 0; c < 3; c++)
                    {
                        cell[c] = static_cast<int>(
                                std::floor(u[c] + motion(random) - offset(random)));
                    }
                    hit[grid.indexOfImage(cell)] = 1;
                }
                for (size_t cell = 0; cell < hit.size(); cell++)
                {
                    EXPECT_LE(hit[cell], reached[cell]);
                }
                // not many more than that: four along an axis at most
                EXPECT_LE(std::count(reached.begin(), reached.end(), 1), 64);
            }
        }
    }
}

TEST(Reach, PlacesReachWhatIsReachedFromThem)
{
    std::mt19937 random(2);
    for (const Grid& grid : grids())
    {
        for (const double drift : { 0.35, 1.0 })
        {
            const Reach reach(grid, drift, 1);
            std::vector<char> marked(grid.count(), 0);
            marked[random() % marked.size()] = 1;
            marked[random() % marked.size()] = 1;
            const std::vector<char> from     = reach.placesThatReach(marked);
            for (size_t place = 0; place < from.size(); place++)
            {
                std::vector<char> places(from.size(), 0);
                places[place]                   = 1;
                const std::vector<char> reached = reach.reached(places);
                bool meets                      = false;
                for (size_t cell = 0; cell < marked.size(); cell++)
                {
                    meets = meets || (marked[cell] && reached[cell]);
                }
                EXPECT_EQ(from[place] != 0, meets);
            }
        }
    }
}

TEST(Reach, NearCellsAreThoseOfTheGrid)
{
    for (const Grid& grid : grids())
    {
        const Reach reach(grid, 0.35, 1);
        for (const int ws : { 1, 2 })
        {
            std::vector<char> marked(grid.count(), 0), expected(grid.count(), 0);
            marked[3] = 1;
            for (const Int3& D : nearDisplacements(ws))
            {
                const Int3 c = grid.cell(3);
                expected[grid.indexOfImage({ c[0] + D[0], c[1] + D[1], c[2] + D[2] })] = 1;
            }
            EXPECT_EQ(reach.near(marked, ws), expected);
        }
    }
}

TEST(Directory, FindsParticlesInATableAndBySearch)
{
    for (const int distance : { 1, 7, 100000 })
    {
        std::vector<int> index;
        for (int i = 0; i < 50; i++)
        {
            index.push_back(distance * ((i * 17) % 50));
        }
        Directory directory;
        directory.add({ distance * 50 });
        directory.clear();
        directory.add({ index.begin(), index.begin() + 20 });
        directory.add({ index.begin() + 20, index.end() });
        for (int i = 0; i < 50; i++)
        {
            EXPECT_EQ(directory.find(index[i]), i);
        }
        EXPECT_EQ(directory.find(distance * 50), -1);
        EXPECT_EQ(directory.find(-1), -1);
        EXPECT_EQ(directory.find(1), distance == 1 ? 3 : -1);
    }
    EXPECT_EQ(Directory().find(0), -1);
    // a table that would become too long
    Directory directory;
    directory.add({ 2, 0, 1 });
    directory.add({ 1000000, 7 });
    EXPECT_EQ(directory.find(0), 1);
    EXPECT_EQ(directory.find(1000000), 3);
    EXPECT_EQ(directory.find(7), 4);
    EXPECT_EQ(directory.find(3), -1);
}

} // namespace
} // namespace farfield
