/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the cost model counts, against cells that are filled with particles.
 */
#include "plan/cost_model.h"

#include <cmath>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operators/m2l_list_operators.h"
#include "operators/m2l_periodic_operators.h"

namespace farfield
{
namespace test
{
namespace
{

//! Edge of the smallest cells that Occupancy counts, nm; it merges them by twos from there.
constexpr double c_counted = 0.15;
//! Of the box: whole counted cells of every size.
constexpr double c_edge = 32 * c_counted;

//! Random positions in a cube, in all of it or in a ball inside.
std::vector<double> positionsIn(double radius, int n)
{
    std::mt19937 random(51);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<double> x;
    while (static_cast<int>(x.size()) < 3 * n)
    {
        Vec3 r(uniform(random), uniform(random), uniform(random));
        r *= c_edge;
        if (radius == 0 || (r - Vec3::Constant(0.5 * c_edge)).norm() < radius)
        {
            x.insert(x.end(), { r[0], r[1], r[2] });
        }
    }
    return x;
}

//! What a step does, counted cell by cell.
struct Counts
{
    double occupied  = 0; //!< leaf cells with particles
    double nearby    = 0; //!< mean number of particles in the near cells of a particle
    double exchanges = 0; //!< pairs of occupied cells in interaction lists
};

Counts countsIn(const std::vector<double>& x, int cells, int levels, int ws)
{
    Counts counts;
    const double n = static_cast<double>(x.size() / 3);
    for (int level = levels - 1; level >= 0; --level)
    {
        const int length = cells >> (levels - 1 - level);
        const IntMat H   = { { { length, 0, 0 }, { 0, length, 0 }, { 0, 0, length } } };
        const Grid grid(H, c_edge * Mat3::Identity());
        std::vector<int> inside(grid.count(), 0);
        for (size_t i = 0; i < x.size(); i += 3)
        {
            Int3 c;
            for (int k = 0; k < 3; ++k)
            {
                c[k] = static_cast<int>(x[i + k] / c_edge * length);
            }
            ++inside[grid.index(grid.reduce(c))];
        }
        const auto at = [&](const Int3& c, const Int3& D) {
            return inside[grid.index(grid.reduce({ c[0] + D[0], c[1] + D[1], c[2] + D[2] }))];
        };
        for (int cell = 0; cell < grid.count(); ++cell)
        {
            if (inside[cell] == 0)
            {
                continue;
            }
            const Int3 c = grid.cell(cell);
            if (level == levels - 1)
            {
                ++counts.occupied;
                for (const Int3& D : nearDisplacements(ws))
                {
                    counts.nearby += inside[cell] * at(c, D) / n;
                }
            }
            const int width = 4 * ws + 3;
            for (int code = 0; level > 0 && code < width * width * width; ++code)
            {
                const Int3 D = { code % width - 2 * ws - 1,
                                 code / width % width - 2 * ws - 1,
                                 code / width / width - 2 * ws - 1 };
                bool isNear = true, isParentNear = true;
                for (int k = 0; k < 3; ++k)
                {
                    isNear = isNear && std::abs(D[k]) <= ws;
                    isParentNear =
                            isParentNear
                            && std::abs(floorDivide(c[k] + D[k], 2) - floorDivide(c[k], 2)) <= ws;
                }
                counts.exchanges += !isNear && isParentNear && at(c, D) > 0 ? 1 : 0;
            }
        }
    }
    return counts;
}

Work workOf(const std::vector<double>& x, int cells, int levels, int ws)
{
    const int n        = static_cast<int>(x.size() / 3);
    const Mat3 box     = c_edge * Mat3::Identity();
    const Int3 lengths = { cells, cells, cells };
    return { 8, ws, lengths, levels, box.determinant(), Occupancy(x.data(), n, box), double(n) };
}

//! In a full box: cells as many as there are, the others up to the noise of random places.
TEST(CostModel, CountsAFullBox)
{
    constexpr int c_particles   = 40000;
    const std::vector<double> x = positionsIn(0, c_particles);
    for (const int ws : { 1, 2 })
    {
        for (const int levels : { 1, 2, 3 })
        {
            const int cells     = 8;
            const Work work     = workOf(x, cells, levels, ws);
            const Counts counts = countsIn(x, cells, levels, ws);
            SCOPED_TRACE("ws " + std::to_string(ws) + ", levels " + std::to_string(levels));
            EXPECT_EQ(work.cells, 512);
            EXPECT_DOUBLE_EQ(work.occupied, counts.occupied);
            EXPECT_EQ(work.nearCells, nearDisplacements(ws).size());
            EXPECT_DOUBLE_EQ(work.perCell, c_particles / counts.occupied);
            EXPECT_EQ(work.coarse, 512 / std::pow(8.0, levels - 1));
            // Lists are full, and an even filling has no more near neighbours in one place than in
            // another: only the particle itself, and numbers in cells of 78 that vary by their
            // roots, of which the mean square remains.
            EXPECT_NEAR(work.exchanges, counts.exchanges, 1e-9 * counts.exchanges);
            EXPECT_NEAR(work.nearby, counts.nearby, 2 + 5 * std::sqrt(counts.nearby / 512));
        }
    }
}

/*! In a droplet: cells of counted sizes exactly. Neighbours are counted in aligned cubes instead of
 *  those about particles: the faces of cubes of a width cut a body of a diameter into up to
 *  (1 + width / diameter)^3 times as many pieces. */
TEST(CostModel, CountsADroplet)
{
    constexpr int c_particles = 8000;
    for (const double radius : { 0.6, 1.2 })
    {
        const std::vector<double> x = positionsIn(radius, c_particles);
        for (const int ws : { 1, 2 })
        {
            for (const int levels : { 2, 3, 4 })
            {
                const int cells     = 32;
                const Work work     = workOf(x, cells, levels, ws);
                const Counts counts = countsIn(x, cells, levels, ws);
                SCOPED_TRACE("radius " + std::to_string(radius) + " nm, ws " + std::to_string(ws)
                             + ", levels " + std::to_string(levels));
                EXPECT_NEAR(work.occupied, counts.occupied, 1e-9 * counts.occupied);
                EXPECT_NEAR(work.perCell, c_particles / counts.occupied, 1e-9 * work.perCell);
                const double near = 1 + (2 * ws + 1) * c_edge / cells / (2 * radius);
                const double list = 1 + 2 * (2 * ws + 1) * c_edge / cells / (2 * radius);
                EXPECT_LT(std::abs(std::log(work.nearby / counts.nearby)), 3 * std::log(near));
                EXPECT_LT(std::abs(std::log(work.exchanges / counts.exchanges)),
                          3 * std::log(list));
                // far from what a full box would have
                EXPECT_LT(work.occupied, 0.5 * work.cells);
            }
        }
    }
}

//! Where the box begins has no meaning.
TEST(CostModel, CountsADropletAcrossTheBorder)
{
    const int n                         = 1000;
    const std::vector<double> inside    = positionsIn(0.15 * c_edge, n);
    std::vector<double> across          = inside;
    const Mat3 box                      = c_edge * Mat3::Identity();
    const std::array<double, 3> toNodes = { 0.5 * c_edge, 0.46 * c_edge, -0.52 * c_edge };
    for (size_t i = 0; i < across.size(); ++i)
    {
        across[i] += toNodes[i % 3];
    }
    const Occupancy here(inside.data(), n, box), there(across.data(), n, box);
    for (double edge = 0.5; edge < c_edge; edge *= 2)
    {
        const double volume = box.determinant();
        EXPECT_NEAR(there.density(edge, volume),
                    here.density(edge, volume),
                    0.3 * here.density(edge, volume))
                << edge;
        EXPECT_NEAR(
                there.cells(edge, volume), here.cells(edge, volume), 0.3 * here.cells(edge, volume))
                << edge;
    }
}

//! As many operators of the periodic M2L as wave vectors have representatives.
TEST(CostModel, CountsWaveVectors)
{
    struct Case
    {
        Int3 lengths;
        int shear; //!< cells
    };
    for (const Case& c : { Case{ { 6, 6, 6 }, 0 },
                           Case{ { 7, 8, 9 }, 0 },
                           Case{ { 40, 40, 1 }, 0 },
                           Case{ { 1, 1, 40 }, 0 },
                           Case{ { 8, 8, 8 }, 3 },
                           Case{ { 12, 6, 9 }, 5 } })
    {
        const Int3& n  = c.lengths;
        const IntMat H = { { { n[0], 0, 0 }, { c.shear, n[1], 0 }, { 0, 0, n[2] } } };
        Mat3 box       = Mat3::Zero();
        for (int i = 0; i < 9; ++i)
        {
            box(i / 3, i % 3) = H[i / 3][i % 3];
        }
        const Grid grid(H, box);
        const Reduction reduction(2, false, grid.scaledEdges());
        const PeriodicM2lOperators<double> operators(grid, Boundary::Periodic, 1, reduction, 0, 1);
        const Work work(2, 1, n, 1, box.determinant(), Occupancy(box.determinant()), 1000);
        const OperatorKind kind(2, false, box);
        ASSERT_EQ(operators.copies(), kind.copies);
        const double counted = operators.representatives();
        if (kind.copies == 4)
        {
            EXPECT_EQ(representatives(work, kind.copies), counted);
        }
        else
        {
            // The group of a sheared box has dimensions of its own, of which one is halved.
            EXPECT_GE(counted, 0.5 * work.coarse);
            EXPECT_NEAR(representatives(work, kind.copies), counted, 0.5 * work.coarse);
        }
    }
}

//! Operators of mirrored displacements are copies of each other, which the set-up counts once.
TEST(CostModel, CountsOperatorsOfLists)
{
    constexpr int c_order = 1;
    for (const int ws : { 1, 2 })
    {
        for (const bool isRectangular : { true, false })
        {
            Mat3 edges = Eigen::Vector3d(1, 1.1, 1.3).asDiagonal();
            if (!isRectangular)
            {
                edges(1, 0) = std::sqrt(0.02);
                edges(2, 0) = std::sqrt(0.05);
                edges(2, 1) = std::sqrt(0.03);
            }
            edges /= std::cbrt(edges.determinant());
            const Reduction reduction(c_order, false, edges);
            const ListM2lOperators<double> lists(edges, ws, reduction, 1);
            std::set<std::vector<double>> distinct;
            for (const auto& op : lists.operators())
            {
                std::vector<double> sizes;
                for (const double element : op.T)
                {
                    sizes.push_back(std::abs(element));
                }
                distinct.insert(sizes);
            }
            // one octant with its faces, or a half
            const int reach  = 2 * ws + 1;
            const double all = std::pow(2 * reach + 1, 3) - std::pow(2 * ws + 1, 3);
            const double once =
                    isRectangular ? std::pow(reach + 1, 3) - std::pow(ws + 1, 3) : 0.5 * all;
            EXPECT_EQ(lists.operators().size(), all);
            EXPECT_EQ(distinct.size(), once) << "ws " << ws;
        }
    }
}

//! Set-up takes longer for more cells, higher orders, and cells of fewer symmetries.
TEST(CostModel, SetUpGrowsWithTheWork)
{
    const Mat3 cube = c_edge * Mat3::Identity();
    Mat3 sheared    = cube;
    sheared(1, 0)   = 1;
    const auto time = [&](const Mat3& box, int cells, int levels, int order, bool leastSquares)
    {
        const Work work(order,
                        1,
                        { cells, cells, cells },
                        levels,
                        box.determinant(),
                        Occupancy(box.determinant()),
                        1000);
        return predictedSetUp(work, OperatorKind(order, leastSquares, box));
    };
    for (const int levels : { 1, 3 })
    {
        const double usual = time(cube, 32, levels, 8, true);
        EXPECT_GT(usual, 0);
        EXPECT_GT(time(cube, 40, levels, 8, true), usual);
        EXPECT_GT(time(cube, 32, levels, 9, true), usual);
        EXPECT_GT(time(sheared, 32, levels, 8, true), usual);
        EXPECT_LT(time(cube, 32, levels, 8, false), usual);
    }
    EXPECT_LT(time(cube, 32, 3, 8, true), time(cube, 32, 1, 8, true));
}

//! More of anything costs more, on either device.
TEST(CostModel, GrowsWithTheWork)
{
    const std::vector<double> x = positionsIn(0, 20000);
    for (const Device device : { Device::Cpu, Device::Gpu })
    {
        for (const int levels : { 1, 2 })
        {
            const Work work   = workOf(x, 8, levels, 1);
            const double cost = predictedCost(device, work);
            EXPECT_GT(cost, 0);
            Work more = work;
            more.particles *= 2;
            more.nearby *= 2;
            more.perCell *= 2;
            EXPECT_GT(predictedCost(device, more), cost);
            more              = work;
            more.coefficients = 2 * work.coefficients;
            EXPECT_GT(predictedCost(device, more), cost);
            EXPECT_GT(predictedCost(device, workOf(x, 8, levels, 2)), cost);
        }
    }
}

//! Further GPUs gain, but never more than their number, and more where cells are larger.
TEST(CostModel, HelpersShareTheNearField)
{
    const std::vector<double> x = positionsIn(0, 20000);
    const Work small = workOf(x, 16, 1, 1), large = workOf(x, 8, 1, 1);
    const auto gain = [](const Work& work, int helpers)
    {
        Network network;
        network.helpers = helpers;
        return predictedCost(Device::Gpu, work) / predictedCost(Device::Gpu, work, network);
    };
    for (const int helpers : { 1, 2, 3 })
    {
        SCOPED_TRACE(std::to_string(helpers) + " helpers");
        EXPECT_GT(gain(large, helpers), 1);
        EXPECT_LT(gain(large, helpers), 1 + helpers);
        EXPECT_GE(gain(large, helpers), gain(large, helpers - 1));
        EXPECT_GT(gain(large, helpers), gain(small, helpers));
    }
    EXPECT_EQ(gain(large, 0), 1);
}

//! A network of ranks of one thread.
Network networkOf(int ranks, double message, double number)
{
    Network network;
    network.parts   = evenDomains(ranks, Mat3::Identity());
    network.message = message;
    network.number  = number;
    return network;
}

TEST(CostModel, DomainsAreEven)
{
    const Mat3 cube  = 3 * Mat3::Identity();
    const Mat3 plate = Vec3(10, 5, 1).asDiagonal();
    EXPECT_EQ(evenDomains(1, cube), (Int3{ 1, 1, 1 }));
    EXPECT_EQ(evenDomains(8, cube), (Int3{ 2, 2, 2 }));
    EXPECT_EQ(evenDomains(12, cube), (Int3{ 3, 2, 2 }));
    EXPECT_EQ(evenDomains(7, plate), (Int3{ 7, 1, 1 }));
    EXPECT_EQ(evenDomains(8, plate), (Int3{ 4, 2, 1 }));
}

/*! \brief Without messages ranks gain, but never more than their number; messages cost what they are said
 *         to.
 *
 *  They are so cheap here that GPUs close the coarsest level together. */
TEST(CostModel, RanksShareTheWorkAndPayForMessages)
{
    const std::vector<double> x = positionsIn(0, 20000);
    for (const Device device : { Device::Cpu, Device::Gpu })
    {
        for (const int levels : { 1, 2 })
        {
            const Work work   = workOf(x, 16, levels, 1);
            const double cost = predictedCost(device, work);
            for (const int ranks : { 2, 4, 8 })
            {
                SCOPED_TRACE(std::to_string(ranks) + " ranks");
                const double free = predictedCost(device, work, networkOf(ranks, 0, 0));
                EXPECT_LT(free, cost);
                EXPECT_GT(free, cost / ranks);
                const PredictedTraffic sent =
                        predictedTraffic(device, work, networkOf(ranks, 0, 0));
                EXPECT_GE(sent.messages, 2 * (ranks - 1));
                EXPECT_NEAR(predictedCost(device, work, networkOf(ranks, 1, 0)) - free,
                            sent.messages,
                            1e-9 * cost);
                EXPECT_NEAR(predictedCost(device, work, networkOf(ranks, 0, 1e-3)) - free,
                            1e-3 * sent.numbers,
                            1e-9 * cost);
            }
        }
    }
}

//! Hosts share the closure of leaves, not the top of a tree; every GPU closes the whole.
TEST(CostModel, HostsCloseLeavesInShares)
{
    const std::vector<double> x = positionsIn(0, 20000);
    const Work leaves = workOf(x, 16, 1, 1), tree = workOf(x, 16, 2, 1);
    const Network one = networkOf(1, 0, 0), eight = networkOf(8, 0, 0);
    EXPECT_FALSE(closesInShares(Device::Cpu, leaves, one));
    EXPECT_FALSE(closesInShares(Device::Cpu, tree, eight));
    EXPECT_FALSE(closesInShares(Device::Gpu, leaves, eight));
    EXPECT_TRUE(closesInShares(Device::Cpu, leaves, eight));
}

//! Pairs of cells of a cube whose centres two domains divide, counted one by one.
TEST(CostModel, PairsAcrossAreCounted)
{
    constexpr int c_cells = 8;
    Work work             = workOf(positionsIn(0, 100), c_cells, 1, 1);
    int across = 0, all = 0;
    for (int cell = 0; cell < c_cells; cell++)
    {
        for (int D = -1; D <= 1; D++)
        {
            const int partner = (cell + D + c_cells) % c_cells;
            across += cell / 4 != partner / 4 ? 1 : 0;
            all++;
        }
    }
    EXPECT_NEAR(pairsAcross(work, networkOf(2, 0, 0)), double(across) / all, 1e-12);
}

//! A tree talks to neighbours, but for its top: what many ranks on slow networks take.
TEST(CostModel, ManyRanksTakeATree)
{
    const Mat3 box = 22.5 * Mat3::Identity();
    const Occupancy everywhere(box.determinant());
    Options options;
    options.threads       = 1;
    const auto levelsWith = [&](const Network& network)
    {
        PlanTask task = { options, Device::Cpu, box, 1118844, everywhere };
        task.network  = network;
        return chooseDiscretisation(task).levels;
    };
    EXPECT_EQ(levelsWith(networkOf(1, 0, 0)), 1);
    EXPECT_EQ(levelsWith(networkOf(8, 2e3, 0.8)), 1);
    EXPECT_EQ(levelsWith(networkOf(128, 2e3, 0.8)), 1);
    EXPECT_GT(levelsWith(networkOf(512, 2e4, 0.8)), 1);
}

} // namespace
} // namespace test
} // namespace farfield
