/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tests of the reference itself: it must be right before anything is compared with it.
 */
#include "reference.h"

#include <cmath>

#include <gtest/gtest.h>

namespace farfield
{
namespace test
{
namespace
{

//! Rounding of a sum of about 1e6 terms of either sign, relative to the largest partial sum.
constexpr double c_rounding = 2e-12;

//! A few charges with every peculiarity: net charge, excluded close, coinciding and wrapped pairs.
System awkwardSystem(const Matrix& box)
{
    System system = randomCharges(box, 40, 11, 1.7);
    // Sites 0 and 1 coincide, 2 and 3 nearly do, 4 and 5 are excluded through the boundary.
    system.positions[1] = system.positions[0];
    system.positions[3] = { system.positions[2][0] + 1e-5,
                            system.positions[2][1],
                            system.positions[2][2] };
    system.positions[4] = { 0.02, 0.1, 0.1 };
    system.positions[5] = { 0.02 - 0.05 + box[0][0], 0.1, 0.1 };
    system.exclusions   = { { 0, 1 }, { 3, 2 }, { 4, 5 } };
    return system;
}

TEST(Reference, DoesNotDependOnTheSplitting)
{
    for (const auto& named : allBoxes(2.0))
    {
        const System system = awkwardSystem(named.box);
        const Evaluation a  = ewald(system, 4.5);
        const Evaluation b  = ewald(system, 6.5);
        EXPECT_LT(relativeError(a.forces, b.forces), c_rounding) << named.name;
        EXPECT_NEAR(a.energy, b.energy, c_rounding * 1e4) << named.name;
        EXPECT_LT(largestDifference(a.virial, b.virial), c_rounding * 1e4) << named.name;
        EXPECT_NEAR(
                a.virial[0][0] + a.virial[1][1] + a.virial[2][2], -a.energy / 2, c_rounding * 1e4)
                << named.name;
        const Evaluation c = ewald(system);
        EXPECT_LT(relativeError(c.forces, b.forces), c_rounding) << named.name;
    }
}

TEST(Reference, HasMadelungEnergies)
{
    const double distance = 0.282;
    for (const System& crystal : { rockSalt(2, distance), caesiumChloride(3, distance) })
    {
        const double madelung =
                crystal.name == "rock salt" ? c_madelungRockSalt : c_madelungCaesiumChloride;
        const double expected   = -0.5 * crystal.size() * madelung * c_coulomb / distance;
        const Evaluation result = ewald(shifted(crystal, { 0.013, -0.21, 0.4 }));
        EXPECT_NEAR(result.energy / expected, 1, 1e-13) << crystal.name;
        EXPECT_LT(rootMeanSquare(result.forces), 1e-13 * c_coulomb / (distance * distance) * 100)
                << crystal.name;
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j < 3; ++j)
            {
                // Cubic symmetry: a third of -E/2 on the diagonal, nothing elsewhere.
                EXPECT_NEAR(result.virial[i][j] / expected, i == j ? -1.0 / 6 : 0.0, 1e-13);
            }
        }
    }
}

TEST(Reference, ForcesAreMinusGradient)
{
    System system           = awkwardSystem(namedBox("triclinic", 2.0));
    const Evaluation result = ewald(system);
    // Error of the central difference: step^2 times third derivatives (r^-4, r >= 0.1) plus
    // rounding / step.
    const double step  = 1e-5;
    const double bound = step * step * c_coulomb * 1e5 + 1e-13 * std::abs(result.energy) / step;
    for (const int i : { 0, 1, 2, 3, 4, 5, 17, 39 })
    {
        for (int k = 0; k < 3; ++k)
        {
            const double x         = system.positions[i][k];
            system.positions[i][k] = x + step;
            const double up        = ewald(system).energy;
            system.positions[i][k] = x - step;
            const double down      = ewald(system).energy;
            system.positions[i][k] = x;
            EXPECT_NEAR(result.forces[i][k], -(up - down) / (2 * step), bound) << i << " " << k;
        }
    }
}

TEST(Reference, VirialIsHalfTheStrainDerivative)
{
    const System system     = awkwardSystem(namedBox("octahedron", 2.0));
    const Evaluation result = ewald(system);
    const double step       = 1e-5;
    // As above, with positions of the order of 1 nm as lever.
    const double bound = step * step * c_coulomb * 1e5 + 1e-13 * std::abs(result.energy) / step;
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 3; ++j)
        {
            Matrix strain     = unitMatrix();
            strain[i][j]      = (i == j) + step;
            const double up   = ewald(deformed(system, strain)).energy;
            strain[i][j]      = (i == j) - step;
            const double down = ewald(deformed(system, strain)).energy;
            EXPECT_NEAR(result.virial[i][j], 0.25 * (up - down) / step, bound) << i << " " << j;
        }
    }
}

TEST(Reference, CoincidingExcludedSitesActAsOne)
{
    System two = randomCharges(namedBox("rectangular", 2.0), 30, 5);
    System one = two;
    two.positions.push_back(two.positions[29]);
    two.charges[29] -= 0.7;
    two.charges.push_back(0.7);
    two.exclusions         = { { 29, 30 } };
    const Evaluation split = ewald(two), whole = ewald(one);
    EXPECT_NEAR(split.energy, whole.energy, c_rounding * 1e4);
    for (int k = 0; k < 3; ++k)
    {
        EXPECT_NEAR(
                split.forces[29][k] + split.forces[30][k], whole.forces[29][k], c_rounding * 1e5);
    }
}

TEST(Reference, BipolarExpansionConvergesToTheInverseDistance)
{
    // |a| + |b| = 0.3 of |D|: the remainder at order 20 is below 0.3^21 = 1e-11 / |D|.
    const Vector d = { 1.1, -1.9, 1.4 };
    const Vector a = { 0.2, 0.15, -0.25 };
    const Vector b = { -0.3, 0.2, 0.05 };
    Vector gradient;
    const double value = bipolar(d, a, b, 20, &gradient);
    const Vector r     = { d[0] + b[0] - a[0], d[1] + b[1] - a[1], d[2] + b[2] - a[2] };
    const double r1    = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    EXPECT_NEAR(value, 1 / r1, 1e-10);
    for (int k = 0; k < 3; ++k)
    {
        EXPECT_NEAR(gradient[k], -r[k] / (r1 * r1 * r1), 1e-9);
    }
    // Order 0 is the distance of the centres, order 1 adds both dipoles.
    EXPECT_NEAR(bipolar({ 2, 0, 0 }, a, b, 0, &gradient), 0.5, 1e-15);
    EXPECT_EQ(gradient[0], 0);
    // (1 + (a - b).z + dipole-dipole term 2 a_z b_z + ... ) on the axis: a = (0.1), b = (0.2)
    const double onAxis = bipolar({ 0, 0, 1 }, { 0, 0, 0.1 }, { 0, 0, 0.2 }, 1, &gradient);
    EXPECT_NEAR(onAxis, 1 + 0.1 - 0.2 - 2 * 0.1 * 0.2, 1e-15);
}

TEST(Reference, SystemsAreWhatTheyClaim)
{
    const double pi    = 3.14159265358979323846;
    const System water = pseudoWater(namedBox("dodecahedron_hexagon", 8.0), 3);
    const int n        = water.size();
    EXPECT_EQ(n % 3, 0);
    EXPECT_EQ(static_cast<int>(water.exclusions.size()), n);
    // Six sites along each box vector; half a site of rounding in each is 25 %.
    EXPECT_NEAR(n / 3 / water.volume(), 33.4, 0.25 * 33.4);
    EXPECT_NEAR(water.netCharge(), 0, 1e-12);
    for (int i = 0; i < n; i += 3)
    {
        Vector u, v;
        for (int k = 0; k < 3; ++k)
        {
            u[k] = water.positions[i + 1][k] - water.positions[i][k];
            v[k] = water.positions[i + 2][k] - water.positions[i][k];
        }
        const double uv = u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
        EXPECT_NEAR(std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]), 0.09572, 1e-12);
        EXPECT_NEAR(std::acos(uv / (0.09572 * 0.09572)) * 180 / pi, 104.52, 1e-6);
    }
    for (const auto& named : allBoxes(7.0))
    {
        System box;
        box.box = named.box;
        EXPECT_NEAR(box.volume(), 7, 1e-12) << named.name;
        EXPECT_EQ(named.box[0][1], 0);
        EXPECT_EQ(named.box[0][2], 0);
        EXPECT_EQ(named.box[1][2], 0);
    }
    EXPECT_NEAR(randomCharges(namedBox("flat", 2.0), 50, 1, 2.5).netCharge(), 2.5, 1e-12);
}

} // namespace
} // namespace test
} // namespace farfield
