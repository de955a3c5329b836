/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The library's own exact forces against the reference of the tests.
 */
#include "choice/exact_forces.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "box_matrix.h"
#include "solver_input.h"
#include "systems.h"

namespace farfield
{
namespace test
{
namespace
{

//! \param[in] accuracy, realSize  of the forces that are judged
template<class Real>
std::vector<double> exactForces(const System& system, double accuracy, int realSize)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    const std::vector<Real> q(system.charges.begin(), system.charges.end());
    ExcludedPairs pairs;
    compressedRows(system, false, &pairs.offsets, &pairs.partners);
    const ExactForces forces(
            Boundary::Periodic, matrixOf(system.box), {}, system.size(), accuracy, realSize);
    return forces(PointCharges<Real>{ x.data(), q.data(), system.size(), pairs }, c_coulomb);
}

//! That they differ by rounding: of each displacement, and of the sums. Where single precision or a low
//! accuracy is judged, by less than these tell.
template<class Real>
void expectExact(System input)
{
    const System system = rounded<Real>(std::move(input));
    SCOPED_TRACE(system.name);
    std::vector<double> magnitudes;
    const Evaluation reference          = fastEwald(system, 0, &magnitudes);
    const double low                    = 3e-4;
    const std::vector<double> forces    = exactForces<Real>(system, c_bestAccuracy<double>, 8);
    const std::vector<double> forSingle = exactForces<Real>(system, c_bestAccuracy<float>, 4);
    const std::vector<double> forLow    = exactForces<Real>(system, low, 8);
    // an excluded pair has part of its force in reciprocal space
    double largest = 0;
    for (const double magnitude : magnitudes)
    {
        largest = std::max(largest, magnitude);
    }
    double charge = 0;
    for (const double q : system.charges)
    {
        charge = std::max(charge, std::abs(q));
    }
    const double spacing = std::cbrt(system.volume() / std::max(1, system.size()));
    largest += system.size() * c_coulomb * charge * charge / (spacing * spacing);
    const double bound = 256 * std::numeric_limits<double>::epsilon() * largest;
    for (size_t i = 0; i < forces.size(); ++i)
    {
        ASSERT_NEAR(forces[i], reference.forces[i / 3][i % 3], bound) << "particle " << i / 3;
        ASSERT_NEAR(forSingle[i], forces[i], 1e-10 * largest) << "particle " << i / 3;
        ASSERT_NEAR(forLow[i], forces[i], 1e-5 * low * largest) << "particle " << i / 3;
    }
}

TEST(ExactForces, AreThoseOfTheReferenceInEveryKindOfSystem)
{
    constexpr int c_most = 200;
    int compared         = 0;
    for (const SystemKind& kind : systemKinds())
    {
        const Sample sample = kind.make();
        if (sample.system.size() <= c_most)
        {
            expectExact<float>(sample.system);
            expectExact<double>(sample.system);
            ++compared;
        }
    }
    EXPECT_GT(compared, 10);
}

TEST(ExactForces, AreThoseOfTheReferenceInAnyBox)
{
    for (unsigned seed = 1; seed <= 40; ++seed)
    {
        std::mt19937 random(seed);
        expectExact<double>(randomSystem(random, 60));
    }
}

//! For the particles of a box, or of a slab of such heights.
ExactForces forcesOf(const Mat3& box,
                     int particles,
                     double accuracy,
                     int realSize,
                     const ExactForces::Heights& heights = {})
{
    const Boundary boundary = heights.all > 0 ? Boundary::Slab : Boundary::Periodic;
    return ExactForces(boundary, box, heights, particles, accuracy, realSize);
}

//! As many of them, whatever the accuracy.
TEST(ExactForces, AreLeftToFewParticles)
{
    const Mat3 unit = Mat3::Identity();
    for (const double accuracy : { 3e-4, c_bestAccuracy<double> })
    {
        SCOPED_TRACE(accuracy);
        EXPECT_TRUE(forcesOf(2.0 * unit, 800, accuracy, 8).areCheap());
        EXPECT_TRUE(forcesOf(100.0 * unit, 800, accuracy, 8).areCheap());
        EXPECT_FALSE(forcesOf(5.0 * unit, 10000, accuracy, 8).areCheap());
        EXPECT_FALSE(forcesOf(2.0 * unit, 1200, accuracy, 4).areCheap());
        // rows upon rows that hold no image
        Mat3 sheet  = 1e6 * unit;
        sheet(2, 2) = 1e-3;
        EXPECT_FALSE(forcesOf(sheet, 500, accuracy, 8).areCheap());
    }
}

//! What is told to 3e-4 takes no longer in double precision.
TEST(ExactForces, CostWhatTheirAccuracyNeeds)
{
    const Mat3 box = 2.5 * Mat3::Identity();
    for (const double thickness : { 0.0, 3.0, 9.0 })
    {
        const auto cost = [&](double accuracy, int realSize) {
            return forcesOf(box, 600, accuracy, realSize, { thickness, thickness }).cost();
        };
        EXPECT_EQ(cost(3e-4, 8), cost(3e-4, 4)) << thickness;
        EXPECT_LE(cost(3e-4, 8), 0.6 * cost(c_bestAccuracy<double>, 8)) << thickness;
    }
}

//! Pairs of a film are as near as they are, whatever is far from it: they have no fewer images in reach.
TEST(ExactForces, CostMoreWhereSomeAreFarAway)
{
    const Mat3 box  = 2.5 * Mat3::Identity();
    const auto cost = [&](const ExactForces::Heights& heights)
    { return forcesOf(box, 600, 3e-4, 8, heights).cost(); };
    EXPECT_GT(cost({ 9, 3 }), cost({ 3, 3 }));
    EXPECT_LT(cost({ 9, 3 }), 1.5 * cost({ 3, 3 }));
    for (const double accuracy : { 3e-4, 1e-5 })
    {
        EXPECT_TRUE(forcesOf(box, 600, accuracy, 8, { 9, 3 }).areCheap());
        EXPECT_TRUE(forcesOf(box, 600, accuracy, 4, { 9, 3 }).areCheap());
    }
}

} // namespace
} // namespace test
} // namespace farfield
