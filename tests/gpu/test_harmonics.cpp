/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The arithmetic of the GPU's P2M, L2P and binning against the definitions; runs on the host.
#include <cmath>

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "cells/binning.h"
#include "cells/grid.h"
#include "expansions/harmonics.h"
#include "operators/solid_harmonics.h"
#include "runtime/order_dispatch.h"

namespace farfield
{
namespace
{

std::vector<Vec3> positions()
{
    std::mt19937 generator(7);
    std::uniform_real_distribution<double> coordinate(-0.5, 0.5);
    std::vector<Vec3> r = { Vec3(0, 0, 0), Vec3(0, 0, 0.5), Vec3(0.5, 0, 0), Vec3(0, -0.5, 0) };
    while (r.size() < 12)
    {
        r.emplace_back(coordinate(generator), coordinate(generator), coordinate(generator));
    }
    return r;
}

template<class Real>
class GpuHarmonics : public testing::Test
{
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuHarmonics, Precisions);

TYPED_TEST(GpuHarmonics, MultipolesAreSolidHarmonics)
{
    using Real = TypeParam;
    for (int order = 0; order <= c_maxOrder; order++)
    {
        dispatchOrder(
                order,
                [](auto constant)
                {
                    constexpr int P = decltype(constant)::value;
                    const MonicRecurrence monic(P);
                    const auto r = positions();
                    for (size_t i = 0; i + 1 < r.size(); i++)
                    {
                        const double q[2] = { 0.7, -0.4 };
                        std::vector<double> wanted(coefficientCount(P), 0.0);
                        std::vector<double> u(coefficientCount(P));
                        // all m at once, and in two parts
                        constexpr int c_second          = P / 2;
                        Real all[coefficientCount(P)]   = {};
                        Real parts[coefficientCount(P)] = {};
                        Real* second                    = parts + multipolesBelow<P>(c_second);
                        for (int a = 0; a < 2; a++)
                        {
                            solidHarmonics(P, r[i + a], u.data());
                            for (size_t k = 0; k < u.size(); k++)
                            {
                                wanted[k] += q[a] * u[k];
                            }
                            const Real x      = static_cast<Real>(r[i + a][0]);
                            const Real y      = static_cast<Real>(r[i + a][1]);
                            const Real z      = static_cast<Real>(r[i + a][2]);
                            const Real charge = static_cast<Real>(q[a]);
                            addMultipoles<P, 0, P + 1>(x, y, z, charge, all);
                            if constexpr (c_second > 0)
                            {
                                addMultipoles<P, 0, c_second>(x, y, z, charge, parts);
                            }
                            addMultipoles<P, c_second, P + 1>(x, y, z, charge, second);
                        }
                        for (const Real* sums : { all, parts })
                        {
                            for (int m = 0; m <= P; m++)
                            {
                                for (int l = m; l <= P; l++)
                                {
                                    // each step of the recurrences rounds values below 1
                                    const double tolerance =
                                            8 * (l + 1) * std::numeric_limits<Real>::epsilon();
                                    const int ci = coefficientIndex(l, m);
                                    const int si = coefficientIndex(l, -m);
                                    const int at = multipolesBelow<P>(m) + l - m;
                                    EXPECT_NEAR(sums[at] * monic.scale[ci], wanted[ci], tolerance);
                                    if (m > 0)
                                    {
                                        EXPECT_NEAR(sums[at + P - m + 1] * monic.scale[si],
                                                    wanted[si],
                                                    tolerance);
                                    }
                                }
                            }
                        }
                    }
                });
    }
}

TYPED_TEST(GpuHarmonics, GradientsAreThoseOfTheExpansion)
{
    using Real = TypeParam;
    for (int order = 0; order <= c_maxOrder; order++)
    {
        dispatchOrder(order,
                      [](auto constant)
                      {
                          constexpr int P = decltype(constant)::value;
                          std::mt19937 generator(11);
                          std::uniform_real_distribution<double> coefficient(-1, 1);
                          std::vector<double> L(coefficientCount(P));
                          for (double& value : L)
                          {
                              value = static_cast<double>(
                                      static_cast<Real>(coefficient(generator)));
                          }
                          const GradientWeights<Real, P> weights = gradientWeights<Real, P>();
                          for (const Vec3& r : positions())
                          {
                              std::vector<double> u(coefficientCount(P));
                              solidHarmonics(P, r, u.data());
                              double wanted[3] = { 0, 0, 0 };
                              double size      = 1;
                              for (const DerivativeTerm& t : derivativeTerms(P))
                              {
                                  wanted[t.axis] += t.value * L[t.from] * u[t.to];
                                  size += std::abs(t.value * L[t.from] * u[t.to]);
                              }
                              Real g[3];
                              localGradient<P>([&](int i)
                                               { return static_cast<Real>(L[i]) * weights.w[i]; },
                                               static_cast<Real>(r[0]),
                                               static_cast<Real>(r[1]),
                                               static_cast<Real>(r[2]),
                                               g);
                              const double tolerance =
                                      4 * (P + 1) * std::numeric_limits<Real>::epsilon() * size;
                              for (int k = 0; k < 3; k++)
                              {
                                  EXPECT_NEAR(g[k], wanted[k], tolerance) << "order " << P;
                              }
                          }
                      });
    }
}

TYPED_TEST(GpuHarmonics, BinsAsTheGrid)
{
    using Real                       = TypeParam;
    const std::vector<IntMat> shapes = { { { { 5, 0, 0 }, { 0, 4, 0 }, { 0, 0, 3 } } },
                                         { { { 6, 0, 0 }, { 3, 5, 0 }, { -3, 2, 4 } } },
                                         { { { 1, 0, 0 }, { 0, 2, 0 }, { 0, 0, 1 } } },
                                         { { { 40, 0, 0 }, { 17, 2, 0 }, { 19, 1, 1 } } } };
    for (const IntMat& H : shapes)
    {
        Mat3 box;
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                box(i, j) = 0.51 * H[i][j] + ((i == j) ? 0.02 : 0.0);
            }
        }
        const Grid grid(H, box);
        const CellGrid& cells = grid.plain();
        const BinFrame frame =
                BinFrame::of<Mat3>(grid.edges(), grid.inverseEdges(), Mat3::Identity());
        const double offset[3] = { 0.3, -0.2, 0.9 };
        std::mt19937 generator(3);
        for (const double reach : { 1.0, 30.0, 3e8 })
        {
            std::uniform_real_distribution<double> coordinate(-reach, reach);
            for (int sample = 0; sample < 200; sample++)
            {
                const Real x[3] = { static_cast<Real>(coordinate(generator)),
                                    static_cast<Real>(coordinate(generator)),
                                    static_cast<Real>(coordinate(generator)) };
                int cell        = -1;
                Real relative[3];
                ASSERT_TRUE(binPosition(cells, frame, offset, x, &cell, relative));
                const Vec3 r(x[0], x[1], x[2]);
                const Vec3 scaled =
                        grid.inverseEdges().transpose() * r - Vec3(offset[0], offset[1], offset[2]);
                Int3 c;
                for (int k = 0; k < 3; k++)
                {
                    c[k] = static_cast<int>(std::floor(scaled[k]));
                }
                // a position on a boundary may round to either side
                const Vec3 inCell = scaled - Vec3(c[0], c[1], c[2]);
                if (inCell.minCoeff() < 1e-6 || inCell.maxCoeff() > 1 - 1e-6)
                {
                    continue;
                }
                // the difference of the two cells is a vector of the lattice
                const Int3 reduced = grid.cell(cell);
                long long left[3]  = { 0, 0, 0 };
                for (int k = 0; k < 3; k++)
                {
                    left[k] = static_cast<long long>(c[k]) - reduced[k];
                }
                for (int k = 2; k >= 0; k--)
                {
                    EXPECT_EQ(left[k] % H[k][k], 0);
                    const long long boxes = left[k] / H[k][k];
                    for (int j = 0; j <= k; j++)
                    {
                        left[j] -= boxes * H[k][j];
                    }
                }
                EXPECT_GE(cell, 0);
                EXPECT_LT(cell, grid.count());
                const Vec3 expected = grid.edges().transpose() * (inCell - Vec3(0.5, 0.5, 0.5));
                for (int k = 0; k < 3; k++)
                {
                    EXPECT_NEAR(relative[k], expected[k], 1e-6 + 1e-15 * reach);
                }
            }
        }
        int cell = -1;
        Real relative[3];
        const Real bad[3]  = { 0, std::numeric_limits<Real>::quiet_NaN(), 0 };
        const Real past[3] = { 0, 0, Real(1e12) };
        EXPECT_FALSE(binPosition(cells, frame, offset, bad, &cell, relative));
        EXPECT_FALSE(binPosition(cells, frame, offset, past, &cell, relative));
        EXPECT_EQ(cell, -1);
    }
}

} // namespace
} // namespace farfield
