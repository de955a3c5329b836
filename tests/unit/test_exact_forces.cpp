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

//! \param[in] realSize  of the forces that are judged, bytes
template<class Real>
std::vector<double> exactForces(const System& system, int realSize)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    const std::vector<Real> q(system.charges.begin(), system.charges.end());
    ExcludedPairs pairs;
    compressedRows(system, false, &pairs.offsets, &pairs.partners);
    const ExactForces forces(Boundary::Periodic, matrixOf(system.box), 0, system.size(), realSize);
    return forces(PointCharges<Real>{ x.data(), q.data(), system.size(), pairs }, c_coulomb);
}

//! That they differ by rounding: of each displacement, and of the sums. Where single precision is
//! judged, by less than it tells.
template<class Real>
void expectExact(System input)
{
    const System system = rounded<Real>(std::move(input));
    SCOPED_TRACE(system.name);
    std::vector<double> magnitudes;
    const Evaluation reference          = fastEwald(system, 0, &magnitudes);
    const std::vector<double> forces    = exactForces<Real>(system, 8);
    const std::vector<double> forSingle = exactForces<Real>(system, 4);
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

TEST(ExactForces, AreLeftToFewParticles)
{
    const Mat3 unit = Mat3::Identity();
    EXPECT_TRUE(ExactForces(Boundary::Periodic, 2.0 * unit, 0, 800, 8).areCheap());
    EXPECT_TRUE(ExactForces(Boundary::Periodic, 100.0 * unit, 0, 800, 8).areCheap());
    EXPECT_FALSE(ExactForces(Boundary::Periodic, 5.0 * unit, 0, 10000, 8).areCheap());
    EXPECT_FALSE(ExactForces(Boundary::Periodic, 2.0 * unit, 0, 1200, 4).areCheap());
    // rows upon rows that hold no image
    Mat3 sheet  = 1e6 * unit;
    sheet(2, 2) = 1e-3;
    EXPECT_FALSE(ExactForces(Boundary::Periodic, sheet, 0, 500, 8).areCheap());
}

} // namespace
} // namespace test
} // namespace farfield
