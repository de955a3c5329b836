/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Products of coefficients, summed by the harmonics that M2L makes them multiply.
 */
#include <unistd.h>

#include <fstream>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "base/fft.h"
#include "cpu/cpu_kernels.h"
#include "operators/product_table.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Real>
class Products : public testing::Test
{
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Products, Reals);

TYPED_TEST(Products, OfCoefficientsAddUpToM2l)
{
    using Real = TypeParam;
    std::mt19937 engine(41);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto& kernels = cpuKernels<Real>();
    const int lanes     = kernels.lanes;
    for (const int p : { 0, 1, 4, 9 })
    {
        for (const bool leastSquares : { false, true })
        {
            const Reduction reduction(p, leastSquares, Mat3::Identity());
            const int high = reduction.highOrder();
            const int n    = coefficientCount(p);
            const int N    = coefficientCount(high);
            const ProductTable<Real> table(high, reduction);
            AlignedVector<Real> x(2 * n * lanes), placed(2 * table.places * lanes, Real(0)),
                    products(coefficientCount(2 * high) * lanes);
            for (Real& value : x)
            {
                value = static_cast<Real>(uniform(engine));
            }
            kernels.products(table, x.data(), placed.data(), products.data());

            // T of the displacement of a far cell, between coefficients with phases
            std::vector<double> v(coefficientCount(2 * high));
            irregularHarmonics(2 * high, Vec3(1.3, -0.7, 1.8), v.data());
            Matrix T = m2lMatrix(m2lEntries(high), high, v.data());
            for (int j = 0; j < N; j++)
            {
                T.col(j) *= (degreeOf(j) % 2) ? -1 : 1;
            }
            const Matrix K = reduction.reduce(T, true);
            for (int lane = 0; lane < lanes; lane++)
            {
                double expected = 0, magnitude = 0, sum = 0;
                for (int i = 0; i < n; i++)
                {
                    for (int j = 0; j < n; j++)
                    {
                        for (int part = 0; part < 2; part++)
                        {
                            const double term =
                                    static_cast<double>(x[(2 * i + part) * lanes + lane]) * K(i, j)
                                    * static_cast<double>(x[(2 * j + part) * lanes + lane]);
                            expected += term;
                            magnitude += std::abs(term);
                        }
                    }
                }
                for (int h = 0; h < coefficientCount(2 * high); h++)
                {
                    sum += static_cast<double>(products[h * lanes + lane])
                           * static_cast<double>(table.harmonicScale[h]) * v[h];
                }
                // each factor and each sum over at most 2 (high + 1) products is rounded; terms
                // that cancel in the operators are up to a power of the continuation larger
                const double rounding = 1e2 * (high + 1) * std::numeric_limits<Real>::epsilon();
                EXPECT_NEAR(sum, expected, rounding * (magnitude + 1e-30))
                        << "p = " << p << ", lane " << lane;
            }
        }
    }
}

size_t residentBytes()
{
    size_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(NearForces, TakeMemoryWhereTheyAreTouched)
{
    constexpr int c_particles = 20000000;
    constexpr int c_touched   = 100000;
    const size_t before       = residentBytes();
    NearForces<float> forces;
    forces.resize(c_particles, false);
    forces.touch(c_particles / 2, c_particles / 2 + c_touched);
    // whole chunks and pages on either side, and a mark per chunk
    const size_t bytes = 3 * sizeof(float) * (c_touched + 2 * NearForces<float>::c_chunk);
    EXPECT_LT(residentBytes() - before, 2 * bytes + (1 << 20));
}

} // namespace
} // namespace test
} // namespace farfield
