/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Functions that take the place of 1/r, against Fourier integrals of charge densities.
 */
#include "operators/near_function.h"

#include <cmath>

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace farfield
{
namespace test
{
namespace
{

using LongDouble = long double;

//! A function that is not 1/r.
struct Named
{
    PairFunction function;
    const char* name;
    LongDouble atZero, slopeAtZero; //!< of width 1
};

std::vector<Named> functions()
{
    const LongDouble rootPi = std::sqrt(std::acos(LongDouble(-1)));
    return { { PairFunction::Gaussian, "Gaussian", 2 / rootPi, 4 / (3 * rootPi) },
             { PairFunction::Thole, "Thole", LongDouble(1) / 2, LongDouble(1) / 6 },
             { PairFunction::SoftCore, "soft core", 1, 0 } };
}

//! Distances in widths: 0, both sides of where series end, and far away.
std::vector<LongDouble> distances()
{
    return { 0,       1e-6L,   1e-3L,   0.05L,   0.3L, 0.5999L, 0.6001L, 0.7L,
             0.9999L, 1.0001L, 1.1999L, 1.2001L, 2,    3.5L,    7,       20 };
}

/*! \brief 2/pi times the integral of sin(k r)/(k r) rho(k), of the charge density that has the function
 *         as its potential, for b = 1.
 *
 *  The integrand is even and analytic: the trapezoidal rule with step h is off by what the potential
 *  is beyond 2 pi/h - r. */
LongDouble fourierIntegral(PairFunction function, LongDouble r)
{
    const bool isGaussian = function == PairFunction::Gaussian;
    const LongDouble pi   = std::acos(LongDouble(-1));
    const LongDouble h    = 2 * pi / (r + (isGaussian ? 9 : 45));
    const LongDouble last = isGaussian ? 14 : 2e4L;
    const auto density    = [=](LongDouble k)
    { return isGaussian ? std::exp(-k * k / 4) : 1 / ((1 + k * k) * (1 + k * k)); };
    LongDouble sum = 0.5L;
    for (LongDouble k = h; k < last; k += h)
    {
        const LongDouble z = k * r;
        sum += density(k) * (z > 0 ? std::sin(z) / z : 1);
    }
    return 2 / pi * h * sum;
}

TEST(NearFunction, IsTheFourierIntegralOfItsCharge)
{
    for (const Named& f : functions())
    {
        for (const LongDouble r : distances())
        {
            const bool isSoftCore      = f.function == PairFunction::SoftCore;
            const LongDouble reference = isSoftCore
                                                 ? std::pow(1 + std::pow(r, 6), LongDouble(-1) / 6)
                                                 : fourierIntegral(f.function, r);
            // where k is cut off, 2/(3 pi) of k^-3 is left for r = 0
            const double cutOff = f.function == PairFunction::Thole ? 3e-14 : 0;
            for (const double b : { 1.0, 0.03 })
            {
                const auto x       = static_cast<double>(r) * b;
                const double value = pairTerms(f.function, x * x, b).value * b;
                EXPECT_NEAR(value, static_cast<double>(reference), 1e-15 + cutOff)
                        << f.name << " at r/b = " << static_cast<double>(r) << ", b = " << b;
            }
            const auto x = static_cast<float>(r);
            EXPECT_NEAR(
                    pairTerms(f.function, x * x, 1.0F).value, static_cast<double>(reference), 3e-7)
                    << f.name << " at r/b = " << static_cast<double>(r) << " in single precision";
        }
    }
}

TEST(NearFunction, SlopeIsMinusTheDerivative)
{
    constexpr LongDouble h = 1e-5L;
    for (const Named& f : functions())
    {
        for (const LongDouble r : distances())
        {
            if (r < 0.01L)
            {
                continue; // the limit at 0 has a test of its own
            }
            const auto at = [&](LongDouble distance)
            { return pairTerms<LongDouble>(f.function, distance * distance, 1).value; };
            // central differences without the term in h^2
            const LongDouble derivative =
                    (8 * (at(r + h) - at(r - h)) - (at(r + 2 * h) - at(r - 2 * h))) / (12 * h);
            const auto expected = static_cast<double>(-derivative / r);
            const auto x        = static_cast<double>(r);
            const std::string where =
                    std::string(f.name) + " at r/b = " + std::to_string(static_cast<double>(r));
            // of rounding in long double, and of the difference in the slope
            EXPECT_NEAR(pairTerms(f.function, x * x, 1.0).slope,
                        expected,
                        1e-13 / x + 2e-14 * std::abs(expected))
                    << where;
            const auto single = static_cast<float>(r);
            EXPECT_NEAR(
                    pairTerms(f.function, single * single, 1.0F).slope, expected, 5e-6 * expected)
                    << where << " in single precision";
        }
    }
}

TEST(NearFunction, ScalesWithTheWidth)
{
    for (const Named& f : functions())
    {
        const auto ofOne  = pairTerms(f.function, 0.49, 1.0);
        const auto ofHalf = pairTerms(f.function, 0.49 / 4, 0.5);
        EXPECT_NEAR(ofHalf.value, 2 * ofOne.value, 1e-15) << f.name;
        EXPECT_NEAR(ofHalf.slope, 8 * ofOne.slope, 1e-14) << f.name;
    }
}

TEST(NearFunction, HasLimitsAtZero)
{
    for (const Named& f : functions())
    {
        for (const double r : { 0.0, 1e-150, 1e-9 })
        {
            const auto terms = pairTerms(f.function, r * r, 1.0);
            EXPECT_NEAR(terms.value, static_cast<double>(f.atZero), 4e-16) << f.name << ", " << r;
            EXPECT_NEAR(terms.slope, static_cast<double>(f.slopeAtZero), 1e-9)
                    << f.name << ", " << r;
        }
        EXPECT_NEAR(
                pairTerms(f.function, 0.0F, 1.0F).slope, static_cast<double>(f.slopeAtZero), 1e-7)
                << f.name << " in single precision";
    }
}

TEST(NearFunction, CorrectionIsTheDifferenceFromCoulomb)
{
    for (const Named& f : functions())
    {
        for (const LongDouble r : distances())
        {
            if (r < 0.2L)
            {
                continue; // 1/r is all of it there
            }
            const LongDouble r2  = r * r;
            const auto whole     = pairTerms<LongDouble>(f.function, r2, 1);
            const LongDouble one = 1 / r;
            const auto x         = static_cast<double>(r);
            const auto result    = pairCorrection(f.function, x * x, 1.0);
            EXPECT_NEAR(result.value, static_cast<double>(whole.value - one), 1e-15 / x)
                    << f.name << " at r/b = " << x;
            EXPECT_NEAR(
                    result.slope, static_cast<double>(whole.slope - one / r2), 2e-15 / (x * x * x))
                    << f.name << " at r/b = " << x;
            // small ones keep their digits
            const auto ofLong = pairCorrection<LongDouble>(f.function, r2, 1);
            // exp(-x^2) loses x^2 units of rounding
            const auto slack = static_cast<double>(4 + r2) * std::numeric_limits<double>::epsilon();
            EXPECT_NEAR(result.slope / static_cast<double>(ofLong.slope), 1, slack)
                    << f.name << " at r/b = " << x;
        }
    }
}

TEST(NearFunction, IsSmoothWhereSeriesEnd)
{
    const auto jump = [](PairFunction function, double r2)
    {
        const auto below = pairTerms(function, std::nextafter(r2, 0.0), 1.0);
        const auto above = pairTerms(function, std::nextafter(r2, 9.0), 1.0);
        EXPECT_NEAR(below.value, above.value, 5e-16);
        EXPECT_NEAR(below.slope, above.slope, 1e-14);
    };
    jump(PairFunction::Gaussian, 0.6 * 0.6);
    jump(PairFunction::Thole, 1.2 * 1.2);
    jump(PairFunction::SoftCore, 1);
}

TEST(NearFunction, IsCoulombBeyondItsRange)
{
    for (const Named& f : functions())
    {
        for (const double least : { 1e-5, 6e-8, 1.1e-16 })
        {
            const double range    = rangeInWidths(f.function, least);
            const auto difference = [&](double r)
            { return -pairCorrection(f.function, r * r, 1.0).slope * r * r * r; };
            EXPECT_LE(difference(range), least) << f.name;
            EXPECT_GT(difference(0.99 * range), least) << f.name;
        }
    }
    // the tail of the soft core is 7/6 x^-6
    EXPECT_NEAR(rangeInWidths(PairFunction::SoftCore, 1e-9), std::pow(7e9 / 6, 1 / 6.0), 1e-6);
    EXPECT_EQ(rangeInWidths(PairFunction::Coulomb, 1e-9), 0);
}

TEST(NearFunction, OfCoulombIsOneOverTheDistance)
{
    const auto terms = pairTerms(PairFunction::Coulomb, 4.0, 0.0);
    EXPECT_EQ(terms.value, 0.5);
    EXPECT_EQ(terms.slope, 0.125);
    const auto correction = pairCorrection(PairFunction::Coulomb, 4.0, 1.0);
    EXPECT_EQ(correction.value, 0);
    EXPECT_EQ(correction.slope, 0);
}

TEST(NearFunction, WidthsFollowTheirRule)
{
    EXPECT_DOUBLE_EQ(pairWidth(WidthRule::RootSumSquare, 0.3, 0.4), 0.5);
    EXPECT_DOUBLE_EQ(pairWidth(WidthRule::GeometricMean, 0.2, 0.8), 0.4);
    EXPECT_EQ(pairWidth(WidthRule::GeometricMean, 0.0, 0.8), 0);
    EXPECT_EQ(pairWidth(WidthRule::Larger, 0.3, 0.4), 0.4);
    EXPECT_EQ(pairWidth(WidthRule::Larger, 0.4, 0.0), 0.4);
}

//! B(k) = -(1/r) dB(k - 1)/dr, by differences of the fourth order, from the function and its slope on.
TEST(NearFunction, DerivativeFactorsAreThoseOfDerivatives)
{
    for (const PairFunction function : { PairFunction::Gaussian, PairFunction::Thole })
    {
        for (const double r : { 1e-3, 0.05, 0.3, 1.0, 1.4999, 1.5001, 3.0, 8.0 })
        {
            SCOPED_TRACE(std::to_string(r));
            const auto B = [&](int k, double at)
            {
                constexpr double c_ofCoulomb[4] = { 1, 1, 3, 15 };
                return c_ofCoulomb[k] * derivativeFactors<double>(function, at).of[k]
                       / std::pow(at, 2 * k + 1);
            };
            const PairTerms<double> terms = pairTerms(function, r * r, 1.0);
            EXPECT_NEAR(B(0, r) / terms.value, 1, 1e-13);
            EXPECT_NEAR(B(1, r) / terms.slope, 1, 1e-13);
            for (int k = 2; k < 4; k++)
            {
                const double h     = 1e-2 * r;
                const double slope = (8 * (B(k - 1, r + h) - B(k - 1, r - h))
                                      - (B(k - 1, r + 2 * h) - B(k - 1, r - 2 * h)))
                                     / (12 * h);
                EXPECT_NEAR(-slope / r / B(k, r), 1, 1e-4);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
