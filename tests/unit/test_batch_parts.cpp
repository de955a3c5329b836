/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What batches are made of: compact boxes, the function of pairs, splittings, waves.
 */
#include <cmath>

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "batch/ewald_plan.h"
#include "batch/reduced_box.h"
#include "batch/scaled_erfc.h"
#include "batch/wave_columns.h"

namespace farfield
{
namespace test
{
namespace
{

TEST(ReducedBox, HasTheShortestVectorOfTheLattice)
{
    std::mt19937 random(7);
    std::uniform_real_distribution<double> component(-1, 1);
    for (int repeat = 0; repeat < 50; ++repeat)
    {
        Mat3 box;
        for (int k = 0; k < 9; ++k)
        {
            box(k / 3, k % 3) = component(random);
        }
        if (std::abs(box.determinant()) < 0.05)
        {
            continue;
        }
        const ReducedBox reduced(box);
        EXPECT_NEAR(reduced.volume, std::abs(box.determinant()), 1e-12);
        const Mat3 multiples = reduced.vectors * box.inverse();
        EXPECT_LE((multiples - multiples.array().rint().matrix()).cwiseAbs().maxCoeff(), 1e-9);
        double shortest = reduced.vectors.rowwise().norm().minCoeff();
        for (int k = 0; k < 7 * 7 * 7; ++k)
        {
            const Eigen::RowVector3d vector(k / 49 - 3, k / 7 % 7 - 3, k % 7 - 3);
            if (vector.squaredNorm() > 0)
            {
                EXPECT_GE((vector * reduced.vectors).norm(), shortest * (1 - 1e-9));
            }
        }
        // so that a cut-off reaches few images
        EXPECT_GE(reduced.heights.minCoeff(), shortest / std::sqrt(2.0) * (1 - 1e-9));
    }
}

template<class Real>
void expectErfc(double tolerance)
{
    const ScaledErfc<Real>& constant = scaledErfc<Real>();
    for (double x = 0; x <= 6; x += 0.01)
    {
        const Real s = constant.alpha - constant.beta / (static_cast<Real>(x) + constant.middle);
        Real sum     = 0;
        for (int k = ScaledErfc<Real>::c_degree; k >= 0; --k)
        {
            sum = sum * s + constant.coefficients[k];
        }
        const double exact = std::exp(x * x) * std::erfc(x);
        EXPECT_NEAR(static_cast<double>(sum), exact, tolerance * exact) << x;
    }
}

TEST(ScaledErfc, IsThatOfTheStandardLibrary)
{
    expectErfc<float>(8 * std::numeric_limits<float>::epsilon());
    expectErfc<double>(64 * std::numeric_limits<double>::epsilon());
}

//! Errors of both sums are as the model says, and a detour changes none of them.
TEST(EwaldPlan, HasTheErrorsOfItsModel)
{
    for (const double error : { 1.0, 1e-3, 1e-6 })
    {
        const EwaldCase system = { 300, 1e4, 3.0, error };
        for (const double detour : { 0.7, 1.0, 1.4 })
        {
            const EwaldPlan plan = fastestPlan(system, detour);
            const double a = plan.splitting, rc = plan.cutoff, kc = plan.waveCutoff;
            const double ofPairs = 2e4 / std::sqrt(300 * rc * 3) * std::exp(-a * a * rc * rc);
            const double ofWaves =
                    a * 1e4 * std::sqrt(8 / (300 * 3 * kc)) * std::exp(-kc * kc / (4 * a * a));
            // a half of the squared error each, and a factor of two that the model may be off
            const double share = error / std::sqrt(8.0);
            EXPECT_NEAR(ofPairs, share, 0.05 * share);
            EXPECT_NEAR(ofWaves, share, 0.05 * share);
        }
    }
}

//! Costs of a device decide how both sums share the work, and not on the error.
TEST(EwaldPlan, HasShorterPairsWhereTheyCostMore)
{
    const EwaldCase system = { 300, 1e4, 3.0, 1e-3 };
    double before          = std::numeric_limits<double>::max();
    for (const double cost : { 2.0, 6.0, 10.0, 20.0 })
    {
        const EwaldPlan plan = fastestPlan(system, 1, cost);
        const double a = plan.splitting, rc = plan.cutoff;
        EXPECT_LT(rc, before);
        before               = rc;
        const double ofPairs = 2e4 / std::sqrt(300 * rc * 3) * std::exp(-a * a * rc * rc);
        EXPECT_NEAR(ofPairs, 1e-3 / std::sqrt(8.0), 0.05 * 1e-3 / std::sqrt(8.0));
        // where the slopes of both times by the splitting cancel: 3 pairs are 3 waves
        const double pairs = cost * 300 / 3.0 * 4 * M_PI / 3 * rc * rc * rc;
        const double waves = 3.0 * std::pow(plan.waveCutoff, 3) / (12 * M_PI * M_PI);
        EXPECT_NEAR(pairs, waves, 1e-6 * waves);
    }
}

//! Of opposite waves one, whatever the shape of the box.
TEST(WaveColumns, HaveEachWaveWithinTheCutoffOnce)
{
    Mat3 waves;
    waves << 3, 0.2, -0.1, 0.7, 4, 0.3, -1.2, 0.9, 2.5;
    constexpr double c_cutoff = 21;
    WaveColumns found;
    found.find(waves, c_cutoff);
    int count = 0;
    for (const WaveColumn& column : found.columns)
    {
        EXPECT_EQ(column.first, count);
        count += column.last + 1;
        EXPECT_LE(column.last, found.range[2]);
    }
    EXPECT_EQ(found.count, count);
    long expected = 0, own = 0;
    for (int h = -20; h <= 20; ++h)
    {
        for (int k = -20; k <= 20; ++k)
        {
            for (int l = -20; l <= 20; ++l)
            {
                const double length = (Eigen::RowVector3d(h, k, l) * waves).norm();
                expected += length > 0 && length <= c_cutoff;
            }
        }
    }
    for (const WaveColumn& column : found.columns)
    {
        for (int signK = firstSignK(column); signK <= 1; signK += 2)
        {
            for (int signL = firstSignL(column); signL <= 1; signL += 2)
            {
                for (int l = 0; l <= column.last; ++l)
                {
                    const Eigen::RowVector3d n(column.h, signK * column.k, signL * l);
                    own += countsWith(column, signL, l) && (n * waves).norm() <= c_cutoff;
                }
            }
        }
    }
    EXPECT_EQ(2 * own, expected);
}

} // namespace
} // namespace test
} // namespace farfield
