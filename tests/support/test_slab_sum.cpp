/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tests of the sum over slabs: it must be right before anything is compared with it.
 */
#include "slab_sum.h"

#include <cmath>

#include <string>

#include <gtest/gtest.h>

namespace farfield
{
namespace test
{
namespace
{

//! Relative to energies and forces of some 1e3.
constexpr double c_rounding = 1e-11;

//! Charges in a skewed box, thicker than it is wide, with excluded pairs, one across the border.
System charges(double net)
{
    System system =
            randomCharges({ { { 1.7, 0, 0 }, { 0.6, 1.4, 0 }, { 0, 0, 2.3 } } }, 40, 5, net);
    system.positions[5] = { 0.02, 0.1, 1.1 };
    system.positions[6] = { 1.66, 0.12, 1.15 };
    system.exclusions   = { { 6, 5 }, { 0, 7 } };
    return system;
}

TEST(SlabSum, DoesNotDependOnTheSplitting)
{
    for (const double net : { 0.0, 1.7 })
    {
        const System system = charges(net);
        const Evaluation a = slabSum(system, 3), b = slabSum(system, 5);
        EXPECT_LT(relativeError(a.forces, b.forces), c_rounding);
        EXPECT_NEAR(a.energy, b.energy, 1e4 * c_rounding);
        // energies go with the inverse of all lengths
        const Matrix virial = virialOfSlab(system, 3);
        EXPECT_NEAR(virial[0][0] + virial[1][1] + virial[2][2],
                    -a.energy / 2,
                    1e-9 * std::abs(a.energy));
        // z has no images
        double zz = 0;
        for (int i = 0; i < system.size(); ++i)
        {
            zz -= 0.5 * system.positions[i][2] * a.forces[i][2];
        }
        EXPECT_NEAR(virial[2][2], zz, 1e-7 * std::abs(a.energy));
    }
}

TEST(SlabSum, HasTheMadelungEnergyOfASquareLattice)
{
    constexpr double c_madelungSquare = 1.61554262671282472; // OEIS A088537
    constexpr double c_distance       = 0.3;
    System system;
    system.box = { { { 2 * c_distance, 0, 0 }, { 0, 2 * c_distance, 0 }, { 0, 0, 1 } } };
    for (int k = 0; k < 4; ++k)
    {
        system.positions.push_back({ c_distance * (k % 2), c_distance * (k / 2), 0.1 });
        system.charges.push_back((k % 2 + k / 2) % 2 == 0 ? 1 : -1);
    }
    const Evaluation result = slabSum(system, 4);
    EXPECT_NEAR(
            result.energy / (-0.5 * 4 * c_madelungSquare * c_coulomb / c_distance), 1, c_rounding);
    EXPECT_LT(rootMeanSquare(result.forces), 1e-9);
}

//! A wall of charges has the field of a plane: two of opposite sign are a capacitor.
TEST(SlabSum, HasTheForceOfACapacitor)
{
    System system;
    system.box = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
    for (const double z : { 0.0, 5.0 })
    {
        system.positions.push_back({ 0.2, 0.3, z });
        system.charges.push_back(z > 0 ? 1 : -1);
    }
    const Evaluation result = slabSum(system, 3);
    EXPECT_NEAR(result.forces[1][2], -2 * M_PI * c_coulomb, 1e-9 * c_coulomb);
    EXPECT_NEAR(result.forces[0][2], 2 * M_PI * c_coulomb, 1e-9 * c_coulomb);
}

TEST(SlabSum, IsTheLimitOfSlabsFarApart)
{
    for (const double net : { 0.0, 1.7 })
    {
        const System system      = charges(net);
        const Evaluation exact   = slabSum(system, 4);
        const Evaluation stacked = stackedSlabs(system, 12);
        EXPECT_LT(relativeError(stacked.forces, exact.forces), 1e-10);
        EXPECT_NEAR(stacked.energy, exact.energy, 1e-9 * std::abs(exact.energy));
        EXPECT_LT(largestDifference(stacked.virial, virialOfSlab(system, 4)),
                  1e-7 * std::abs(exact.energy));
    }
}

} // namespace
} // namespace test
} // namespace farfield
