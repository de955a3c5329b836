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

//! As many operators as wave vectors have representatives, but for those on mirror planes.
TEST(CostModel, CountsWaveVectors)
{
    const std::vector<double> x = positionsIn(0, 1000);
    constexpr int c_order       = 2;
    for (const int cells : { 6, 8, 12 })
    {
        const Work work = workOf(x, cells, 1, 1);
        const IntMat H  = { { { cells, 0, 0 }, { 0, cells, 0 }, { 0, 0, cells } } };
        const Grid grid(H, c_edge * Mat3::Identity());
        const Reduction reduction(c_order, false, grid.scaledEdges());
        const PeriodicM2lOperators<double> rectangular(grid, 1, reduction, 0, 1);
        ASSERT_EQ(rectangular.copies(), 4);
        // bytes of an operator, its lattice sums and their derivatives before and after packing
        const int n          = coefficientCount(c_order);
        const int sums       = coefficientCount(2 * c_order);
        const double perWave = sizeof(double) * (0.5 * n * (n + 1) + sums + 2 * StrainCount * sums);
        const auto memory    = [&](int copies)
        { return predictedMemory(work, c_order, 1, false, copies, 1, sizeof(double)); };
        const double shared    = 0.5 * work.coarse / 4;
        const double predicted = (memory(1) - memory(4)) / perWave + shared;
        // a plane more along each halved dimension
        const double all    = grid.waveVectors();
        const double planes = 1 + 2.0 / cells;
        EXPECT_GE(all, predicted);
        EXPECT_LE(all, predicted * planes * (1 + 1e-9)) << cells;
        EXPECT_GE(rectangular.representatives(), shared);
        EXPECT_LE(rectangular.representatives(), shared * std::pow(planes, 3) * (1 + 1e-9));
    }
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

} // namespace
} // namespace test
} // namespace farfield
