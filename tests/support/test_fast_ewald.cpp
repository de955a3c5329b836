/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tests of the fast reference and of the systems that it is used for.
 */
#include "fast_ewald.h"

#include <cmath>

#include <limits>

#include <gtest/gtest.h>

#include "changing_systems.h"
#include "system_building.h"
#include "systems.h"

namespace farfield
{
namespace test
{
namespace
{

//! Rounding of a sum of about 1e6 terms of either sign, relative to the largest partial sum.
constexpr double c_rounding = 2e-12;

//! Close, coinciding and wrapped excluded pairs, images far away, a net charge, no charge.
System awkwardSystem(const Matrix& box)
{
    System system       = randomCharges(box, 60, 21, 1.3);
    system.positions[1] = system.positions[0];
    system.positions[3] = system.positions[2];
    system.positions[3][1] += 1e-5;
    system.positions[4] = { 0.02, 0.1, 0.1 };
    system.positions[5] = { 0.02 - 0.05 + box[0][0], 0.1, 0.1 };
    for (int k = 0; k < 3; ++k)
    {
        system.positions[5][k] += 7 * box[1][k] - 3 * box[2][k];
    }
    system.charges[6] = 0;
    system.exclusions = { { 0, 1 }, { 3, 2 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 8 } };
    return system;
}

TEST(FastEwald, AgreesWithTheSimpleSum)
{
    for (const auto& named : allBoxes(2.5))
    {
        const System system     = awkwardSystem(named.box);
        const Evaluation simple = ewald(system);
        for (const double splitting : { 0.0, 3.0, 7.0 })
        {
            const Evaluation fast = fastEwald(system, splitting);
            EXPECT_LT(relativeError(fast.forces, simple.forces), c_rounding) << named.name;
            EXPECT_NEAR(fast.energy, simple.energy, c_rounding * 1e4) << named.name;
            EXPECT_LT(largestDifference(fast.virial, simple.virial), c_rounding * 1e4)
                    << named.name;
        }
    }
}

//! The shortest image may be many vectors of a thin skewed box away from the rounded one.
TEST(FastEwald, FindsExcludedPairsInAThinBox)
{
    const Matrix box = { { { 13.57, 0, 0 }, { -5.69, 0.665, 0 }, { 0.69, -0.057, 0.392 } } };
    System system    = randomCharges(box, 40, 3, 1.3);
    for (int i = 0; i < system.size(); ++i)
    {
        system.exclusions.emplace_back(i, (i + 7) % system.size());
    }
    const Evaluation simple = ewald(system);
    const Evaluation fast   = fastEwald(system);
    EXPECT_LT(relativeError(fast.forces, simple.forces), c_rounding);
    EXPECT_NEAR(fast.energy, simple.energy, c_rounding * 1e4);
}

TEST(FastEwald, HasMadelungEnergies)
{
    const double distance = 0.282;
    for (const System& crystal : { rockSalt(4, distance), caesiumChloride(5, distance) })
    {
        const double madelung =
                crystal.name == "rock salt" ? c_madelungRockSalt : c_madelungCaesiumChloride;
        const double expected          = -0.5 * crystal.size() * madelung * c_coulomb / distance;
        const CheckedEvaluation result = checkedEwald(shifted(crystal, { 0.013, -0.21, 0.4 }));
        EXPECT_NEAR(result.value.energy / expected, 1, 1e-13) << crystal.name;
        // The forces vanish as far as positions of up to 3 nm are rounded: each moves the force by
        // up to that times k q^2 / d^3 for each of eight neighbours.
        const double gradient = 8 * c_coulomb / (distance * distance * distance);
        const double rounding = 3 * std::numeric_limits<double>::epsilon() * gradient;
        EXPECT_LE(rootMeanSquare(result.value.forces), result.forceError + rounding)
                << crystal.name;
        EXPECT_LT(result.forceError, 1e-11 * c_coulomb / (distance * distance)) << crystal.name;
    }
}

TEST(FastEwald, BoundsItsOwnErrorInEveryKindOfSystem)
{
    for (const SystemKind& kind : systemKinds())
    {
        const Sample sample = kind.make();
        if (sample.copies == 1 && sample.system.size() > 300)
        {
            continue; // the same code, more time
        }
        const System& system            = sample.copies == 1 ? sample.system : sample.unit;
        const CheckedEvaluation checked = checkedEwald(system);
        const double scale              = forceScale(system, checked.value.forces);
        EXPECT_LT(checked.forceError, 1e-11 * scale) << kind.name;
    }
}

TEST(Supercells, HaveTheForcesOfTheirUnit)
{
    std::mt19937 random(22);
    System unit;
    unit.box = boxOf(0.9, 1.1, 1.0);
    fill(
            &unit,
            { threeSiteWater() },
            { 0, 0, 0 },
            unit.box,
            [](const Vector&) { return true; },
            30,
            random);
    const Sample sample    = supercell(unit, { 2, 2, 1 });
    const Evaluation small = fastEwald(sample.unit);
    const Evaluation large = fastEwald(sample.system);
    ASSERT_EQ(large.forces.size(), 4 * small.forces.size());
    std::vector<Vector> copies;
    for (int c = 0; c < sample.copies; ++c)
    {
        copies.insert(copies.end(), small.forces.begin(), small.forces.end());
    }
    EXPECT_LT(relativeError(large.forces, copies), c_rounding);
    EXPECT_NEAR(large.energy, 4 * small.energy, c_rounding * 1e5);
    // Single precision holds every coordinate.
    const System inFloat = rounded<float>(sample.system);
    EXPECT_EQ(inFloat.positions, sample.system.positions);
}

TEST(SystemKinds, AreDeterministicAndNeutralWhereTheyClaim)
{
    for (const SystemKind& kind : systemKinds())
    {
        const Sample sample  = kind.make();
        const System& system = sample.copies == 1 ? sample.system : sample.unit;
        EXPECT_GT(system.size(), 0) << kind.name;
        const bool hasNetCharge = kind.name == "net charge" || kind.name == "charges of one sign"
                                  || kind.name == "6 charges in 0.5 nm"
                                  || kind.name == "one ion in 3 nm"
                                  || kind.name == "three charges in 2 nm";
        EXPECT_EQ(std::abs(system.netCharge()) > 1e-9, hasNetCharge)
                << kind.name << " " << system.netCharge();
        // The same again is the same: no state is left in a generator.
        EXPECT_EQ(kind.make().system.positions, sample.system.positions) << kind.name;
    }
}

TEST(ForceScale, IsTheForceOrAHundredthOfTypicalPairs)
{
    System crystal       = rockSalt(2, 0.3);
    const double typical = c_coulomb / (0.3 * 0.3);
    const std::vector<Vector> none(crystal.size(), Vector{});
    EXPECT_NEAR(forceScale(crystal, none), 0.01 * typical, 1e-12 * typical);
    const std::vector<Vector> some(crystal.size(), Vector{ 3, 0, 4 * typical });
    EXPECT_NEAR(forceScale(crystal, some), std::hypot(3, 4 * typical), 1e-12 * typical);
    // Particles without charge are in the RMS, not in the distance.
    crystal.positions.resize(2 * crystal.size(), Vector{});
    crystal.charges.resize(crystal.positions.size());
    EXPECT_NEAR(forceScale(crystal, std::vector<Vector>(crystal.size())),
                0.01 * typical,
                1e-12 * typical);
}

//! Of ions at their sites there is no force but rounding, which in single precision is no error
//! where the accuracy asks for less than rounding can give.
TEST(JudgedForces, AreRelativeToWhatThePrecisionCanGive)
{
    const System crystal = rockSalt(2, 0.3);
    const double typical = c_coulomb / (0.3 * 0.3);
    const std::vector<Vector> none(crystal.size(), Vector{});
    const double rounding = 1e-6 * typical;
    const std::vector<double> forces(3 * none.size(), rounding / std::sqrt(3.0));
    for (const double accuracy : { 1e-3, 2e-6 })
    {
        const double part         = partOfTypicalForce<float>(accuracy);
        const JudgedForces judged = judgedForces(crystal, forces, none, part);
        EXPECT_NEAR(judged.scale, part * typical, 1e-12 * typical);
        EXPECT_NEAR(judged.error, 1e-6 / part, 1e-12);
        EXPECT_EQ(judged.inContact, 0);
        EXPECT_LE(judged.error, accuracy);
    }
}

} // namespace
} // namespace test
} // namespace farfield
