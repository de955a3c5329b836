/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Operators on expansions against the theorems that define them.
#include <cmath>

#include <gtest/gtest.h>

#include "operators/solid_harmonics.h"
#include "operators/strained_harmonics.h"

namespace farfield
{
namespace
{

const Vec3 c_source(0.31, -0.42, 0.23);
const Vec3 c_target(-0.27, 0.35, 0.44);
const Vec3 c_distance(2.1, -1.7, 2.6);

double legendre(int l, double x)
{
    double previous = 1;
    double current  = x;
    if (l == 0)
    {
        return 1;
    }
    for (int k = 2; k <= l; k++)
    {
        const double next = ((2 * k - 1) * x * current - (k - 1) * previous) / k;
        previous          = current;
        current           = next;
    }
    return current;
}

std::vector<double> regular(int p, const Vec3& r)
{
    std::vector<double> u(coefficientCount(p));
    solidHarmonics(p, r, u.data());
    return u;
}

std::vector<double> irregular(int p, const Vec3& r)
{
    std::vector<double> v(coefficientCount(p));
    irregularHarmonics(p, r, v.data());
    return v;
}

TEST(SolidHarmonics, ObeyTheAdditionTheorem)
{
    const int p     = 20;
    const auto u    = regular(p, c_source);
    const auto w    = regular(p, c_target);
    const double ra = c_source.norm();
    const double rb = c_target.norm();
    const double x  = c_source.dot(c_target) / (ra * rb);
    for (int l = 0; l <= p; l++)
    {
        double sum = 0;
        for (int m = -l; m <= l; m++)
        {
            sum += u[coefficientIndex(l, m)] * w[coefficientIndex(l, m)];
        }
        const double bound = std::pow(ra * rb, l);
        EXPECT_NEAR(sum, bound * legendre(l, x), 1e-13 * bound * (l + 1)) << "degree " << l;
    }
}

TEST(SolidHarmonics, FollowTheMonicRecurrence)
{
    const int p = 20;
    const MonicRecurrence monic(p);
    const auto u    = regular(p, c_source);
    const double r2 = c_source.squaredNorm();
    double c = 1, s = 0;
    for (int m = 0; m <= p; m++)
    {
        double ac = c, as = s, bc = 0, bs = 0;
        for (int l = m; l <= p; l++)
        {
            const int i = coefficientIndex(l, m);
            EXPECT_NEAR(u[i], monic.scale[i] * ac, 1e-13);
            if (m > 0)
            {
                const int j = coefficientIndex(l, -m);
                EXPECT_NEAR(u[j], monic.scale[j] * as, 1e-13);
            }
            const double beta = monic.beta[l * (p + 1) + m];
            const double nc   = c_source[2] * ac - beta * r2 * bc;
            const double ns   = c_source[2] * as - beta * r2 * bs;
            bc = ac, bs = as, ac = nc, as = ns;
        }
        const double c1 = c_source[0] * c - c_source[1] * s;
        s               = c_source[0] * s + c_source[1] * c;
        c               = c1;
    }
}

TEST(SolidHarmonics, HaveTheStatedGradients)
{
    const int p    = 12;
    const double h = 1e-5;
    const auto u   = regular(p, c_source);
    for (int axis = 0; axis < 3; axis++)
    {
        const auto plus  = regular(p, c_source + h * Vec3::Unit(axis));
        const auto minus = regular(p, c_source - h * Vec3::Unit(axis));
        std::vector<double> gradient(coefficientCount(p), 0);
        for (const DerivativeTerm& t : derivativeTerms(p))
        {
            if (t.axis == axis)
            {
                gradient[t.from] += t.value * u[t.to];
            }
        }
        for (int i = 0; i < coefficientCount(p); i++)
        {
            EXPECT_NEAR(gradient[i], (plus[i] - minus[i]) / (2 * h), 1e-8)
                    << "axis " << axis << " i " << i;
        }
    }
}

class M2l : public testing::TestWithParam<int>
{
};

TEST_P(M2l, ReproducesTheInverseDistance)
{
    const int p        = GetParam();
    const auto entries = m2lEntries(p);
    const auto v       = irregular(2 * p, c_distance);
    const Matrix T     = m2lMatrix(entries, p, v.data());
    const auto a       = regular(p, c_source);
    const auto b       = regular(p, c_target);
    const auto n       = static_cast<Eigen::Index>(a.size());
    const double phi   = Eigen::Map<const Eigen::VectorXd>(b.data(), n)
                               .dot(T * Eigen::Map<const Eigen::VectorXd>(a.data(), n));
    const double exact = 1 / (c_distance + c_target - c_source).norm();
    // geometric remainder of the double expansion
    const double rho   = (c_source.norm() + c_target.norm()) / c_distance.norm();
    const double bound = std::pow(rho, p + 1) / (1 - rho) / c_distance.norm() + 1e-14;
    EXPECT_NEAR(phi, exact, bound);
    // a source must see the target as the target sees the source
    const auto vBack = irregular(2 * p, -c_distance);
    EXPECT_LT((m2lMatrix(entries, p, vBack.data()) - T.transpose()).norm(), 1e-12 * T.norm());
}

INSTANTIATE_TEST_SUITE_P(Orders, M2l, testing::Values(0, 1, 2, 3, 5, 8, 12, 20));

TEST(M2m, TwoShiftsEqualOne)
{
    const int p = 10;
    const Vec3 s(0.5, -0.5, 0.5), t(0.1, 0.7, -0.3);
    const Matrix both = translation(p, s) * translation(p, t);
    EXPECT_LT((both - translation(p, s + t)).norm(), 1e-12 * both.norm());
}

TEST(M2m, MovesTheCentre)
{
    const int p = 20;
    const Vec3 s(0.5, -0.5, 0.5);
    const auto a     = regular(p, c_source);
    const auto moved = regular(p, c_source + s);
    const auto n     = static_cast<Eigen::Index>(a.size());
    const Eigen::VectorXd shifted =
            translation(p, s) * Eigen::Map<const Eigen::VectorXd>(a.data(), n);
    EXPECT_LT((shifted - Eigen::Map<const Eigen::VectorXd>(moved.data(), n)).norm(),
              1e-12 * shifted.norm());
}

TEST(StrainedHarmonics, AreEvenOrOddAlongEachAxis)
{
    constexpr int c_degree = 5, c_strainDegree = 3;
    const std::vector<double> radial = { 1, -0.7, 0.4, 0.3, -0.2, 0.1 };
    const std::vector<double> slope  = { 0.5, 0.2, -0.3, 0.7, 0.1, -0.4 };
    StrainedHarmonics terms(c_degree, c_strainDegree);
    const auto at = [&](const Vec3& r)
    {
        std::vector<double> values(terms.size(), 0.0);
        terms.add(r, radial.data(), slope.data(), true, values.data());
        // as the factor of slabs: of a product of two components
        terms.addStrain(
                StrainXZ, std::vector<double>(c_degree + 1, r[0] * r[2]).data(), values.data());
        return values;
    };
    const std::vector<double> values = at(c_source);
    for (int axis = 0; axis < 3; axis++)
    {
        Vec3 mirrored = c_source;
        mirrored[axis] *= -1;
        const std::vector<double> ofMirrored = at(mirrored);
        for (int f = 0; f < terms.size(); f++)
        {
            EXPECT_NEAR(ofMirrored[f], terms.isOdd(f, axis) ? -values[f] : values[f], 1e-14)
                    << "field " << f << ", axis " << axis;
        }
    }
}

TEST(LeastSquares, KeepsWhatIsInItsSpace)
{
    // r^2-like combinations aside, C must reproduce the L2 projection: residual orthogonal to the
    // space
    const int p = 4, high = 8;
    const Eigen::Matrix3d cell =
            (Eigen::Matrix3d() << 1, 0, 0, 0.1, 0.95, 0, -0.05, 0.1, 1.05).finished();
    const Matrix C = leastSquaresReduction(p, high, cell);
    const int n = coefficientCount(p), N = coefficientCount(high);
    // midpoint rule, independent of the quadrature under test
    const int points = 40;
    Matrix gram      = Matrix::Zero(n, N);
    for (int i = 0; i < points; i++)
    {
        for (int j = 0; j < points; j++)
        {
            for (int k = 0; k < points; k++)
            {
                const Vec3 f((i + 0.5) / points - 0.5,
                             (j + 0.5) / points - 0.5,
                             (k + 0.5) / points - 0.5);
                const auto u = regular(high, cell.transpose() * f);
                const Eigen::Map<const Eigen::VectorXd> all(u.data(), N);
                gram += all.head(n) * all.transpose();
            }
        }
    }
    gram /= std::pow(points, 3);
    const Matrix residual = gram.rightCols(N - n) - gram.leftCols(n) * C;
    EXPECT_LT(residual.cwiseAbs().maxCoeff(), 2.0 / (points * points) * gram.cwiseAbs().maxCoeff());
}

} // namespace
} // namespace farfield
