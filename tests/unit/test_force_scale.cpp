/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What errors are relative to, and when forces have become others.
 */
#include "choice/force_scale.h"

#include <cmath>

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fake_backend.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_count       = 1000;
constexpr double c_pair     = 500; //!< kJ/mol/nm
constexpr double c_least    = 5;   //!< kJ/mol/nm
constexpr double c_strength = 400; //!< RMS force of a settled system, kJ/mol/nm

class Scale : public ::testing::Test
{
protected:
    Scale() : charges_(&backend_)
    {
        std::mt19937 random(1);
        std::normal_distribution<double> normal(0, c_strength / std::sqrt(3.0));
        std::vector<double> q(c_count);
        for (int i = 0; i < c_count; i++)
        {
            q[i] = i % 2 ? 0.5 : -0.5;
            for (int k = 0; k < 3; k++)
            {
                forces.push_back(normal(random));
            }
        }
        charges_.setCharges(q.data(), c_count);
    }
    ForceScale scale() const { return { forces, charges_, c_pair, c_least }; }
    double rms() const
    {
        double sum = 0;
        for (const double f : forces)
        {
            sum += f * f;
        }
        return std::sqrt(sum / c_count);
    }
    static double unitOf(const ForceScale& s) { return std::sqrt(s.square / c_count); }
    //! So many particles have a force so many times as large.
    void enlarge(int particles, double factor)
    {
        for (int k = 0; k < 3 * particles; k++)
        {
            forces[k] *= factor;
        }
    }
    std::vector<double> forces;
    FakeBackend backend_;
    ChargeSet<double> charges_;
};

TEST_F(Scale, IsTheRmsForceOfASettledSystem)
{
    EXPECT_DOUBLE_EQ(unitOf(scale()), rms());
    EXPECT_TRUE(scale().weights.empty());
    EXPECT_DOUBLE_EQ(scale().ofAll, scale().square);
}

//! One, some, a fifth of all: the RMS force grows without bounds, the scale does not.
TEST_F(Scale, DoesNotFollowParticlesInContact)
{
    const double settled = rms();
    for (const int particles : { 2, 50, 200 })
    {
        const std::vector<double> before = forces;
        enlarge(particles, 1e5);
        EXPECT_GT(rms(), 1e3 * settled);
        const ForceScale s = scale();
        EXPECT_LT(unitOf(s), 1.3 * settled) << particles;
        EXPECT_GT(unitOf(s), settled / 1.3) << particles;
        // a particle in contact is judged by its own force
        ASSERT_EQ(s.weights.size(), static_cast<size_t>(c_count));
        EXPECT_LT(s.weights[0], 1e-7);
        EXPECT_NEAR(std::sqrt(s.ofAll / c_count), rms(), 1e-9 * rms());
        forces = before;
    }
}

TEST_F(Scale, FollowsWhatAllParticlesHave)
{
    enlarge(c_count, 30);
    EXPECT_DOUBLE_EQ(unitOf(scale()), rms());
}

//! The few that are out of place in a crystal have all of its force: that is no contact.
TEST_F(Scale, IsThatOfADefectInACrystal)
{
    enlarge(c_count, 1e-9);
    enlarge(20, 1e9);
    ASSERT_LT(rms(), 0.3 * c_pair);
    EXPECT_DOUBLE_EQ(unitOf(scale()), rms());
}

TEST_F(Scale, IsNeverLessThanTheLeast)
{
    enlarge(c_count, 1e-9);
    EXPECT_DOUBLE_EQ(unitOf(scale()), c_least);
}

TEST_F(Scale, OfRoundingIsThatOfThePrecision)
{
    EXPECT_DOUBLE_EQ(leastPartOfPairForce(3e-4, 8), 0.01);
    EXPECT_DOUBLE_EQ(leastPartOfPairForce(1e-5, 8), 0.01);
    EXPECT_NEAR(leastPartOfPairForce(1e-5, 4), 40 * std::ldexp(1.0, -24) / 1e-5, 1e-12);
}

TEST_F(Scale, TellsFieldsThatHaveChanged)
{
    const ForceScale s = scale();
    const double least = weakestField(c_least, charges_.squaredCharges(), c_count);
    const auto sum     = [&](double factor)
    {
        const double level = factor * s.field.level / s.field.cap;
        return c_count * level * level;
    };
    const auto isLike = [&](double factor)
    { return isLikeField(fieldRatio(sum(factor), s.field, least, c_count), c_count); };
    EXPECT_TRUE(isLike(1));
    EXPECT_TRUE(isLike(0.8)); // fields of few charges vary by themselves
    EXPECT_FALSE(isLike(0.5));
    EXPECT_FALSE(isLike(1.6));
    // what is not known yet, and what is rounding
    EXPECT_EQ(fieldRatio(-1, s.field, least, c_count), 1);
    EXPECT_EQ(fieldRatio(sum(1), {}, least, c_count), 1);
    EXPECT_EQ(fieldRatio(0, { s.field.cap, 0.1 * least }, least, c_count), 1);
    // one charge without images has no field; others may come
    EXPECT_EQ(fieldRatio(0, { s.field.cap, 0 }, least, c_count), 1);
    EXPECT_GT(fieldRatio(sum(1), { s.field.cap, 0 }, least, c_count), 1.6);
    EXPECT_TRUE(isLikeField(0, 0));
}

} // namespace
} // namespace test
} // namespace farfield
