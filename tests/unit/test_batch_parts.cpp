/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What batches are made of: compact boxes, the function of pairs, splittings.
 */
#include <cmath>

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "batch/batch_kernels.h"
#include "batch/ewald_plan.h"
#include "batch/reduced_box.h"

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

} // namespace
} // namespace test
} // namespace farfield
