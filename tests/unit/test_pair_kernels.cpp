/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What sums of other kernels than 1/r are made of, against the integrals that define it.
 */
#include <cmath>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "farfield/farfield_kernels.h"

#include "cells/cell_hash.h"
#include "pair_kernels/ewald_sums.h"
#include "pair_kernels/kernel_operators.h"
#include "pair_kernels/sorted_points.h"

namespace farfield
{
namespace test
{
namespace
{

Mat3 skewed()
{
    Mat3 edges;
    edges << 1, 0, 0, 0.21, 1.1, 0, -0.37, 0.29, 0.9;
    return edges;
}

//! P_a at a place in a cell.
double polynomial(const Int3& powers, const Vec3& xi)
{
    double value = 1;
    for (int k = 0; k < 3; k++)
    {
        value *= std::sqrt(2.0 * powers[k] + 1) * (xi[k] < 0 && powers[k] % 2 ? -1 : 1)
                 * std::legendre(powers[k], std::abs(2 * xi[k]));
    }
    return value;
}

//! Midpoints and the weight of each of n intervals of a cell.
std::vector<double> midpoints(int n)
{
    std::vector<double> points(n);
    for (int i = 0; i < n; i++)
    {
        points[i] = (i + 0.5) / n - 0.5;
    }
    return points;
}

struct Point
{
    Vec3 xi;
    double q;
};

std::vector<Point> pointsInACell(int n)
{
    std::mt19937 random(5);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    std::vector<Point> points(n);
    for (Point& point : points)
    {
        point = { Vec3(uniform(random), uniform(random), uniform(random)), uniform(random) };
    }
    return points;
}

Eigen::VectorXd multipoles(const LegendreBasis& basis, const std::vector<Point>& points)
{
    Eigen::VectorXd M = Eigen::VectorXd::Zero(basis.count());
    for (int a = 0; a < basis.count(); a++)
    {
        for (const Point& point : points)
        {
            M[a] += point.q * polynomial(basis.powers()[a], point.xi);
        }
    }
    return M;
}

std::vector<Kernel> kernels()
{
    return { Kernel::yukawa(0.8),
             Kernel::yukawa(5),
             Kernel::inversePower(4),
             Kernel::inversePower(6),
             Kernel::inversePower(12) };
}

TEST(LegendreBasis, InteractionsAreIntegralsOverTwoCells)
{
    const LegendreBasis basis(2);
    const Int3 D        = { 2, -1, 1 };
    const Mat3 edges    = skewed();
    const auto function = [](double r) { return 1 / r; };
    const Matrix found  = basis.interaction(edges, D, function);
    // midpoints have errors of the order of the square of their distance: extrapolated
    const auto integral = [&](int a, int b, int n)
    {
        const std::vector<double> at = midpoints(n);
        double sum                   = 0;
        for (int i = 0; i < n * n * n; i++)
        {
            const Vec3 xi(at[i % n], at[i / n % n], at[i / n / n]);
            const double ofTarget = polynomial(basis.powers()[a], xi);
            for (int j = 0; j < n * n * n; j++)
            {
                const Vec3 eta(at[j % n], at[j / n % n], at[j / n / n]);
                const Vec3 d = edges.transpose() * (Vec3(D[0], D[1], D[2]) + xi - eta);
                sum += ofTarget * polynomial(basis.powers()[b], eta) * function(d.norm());
            }
        }
        return sum / std::pow(n, 6);
    };
    for (const auto& [a, b] :
         { std::pair(0, 0), std::pair(1, 0), std::pair(3, 6), std::pair(9, 4) })
    {
        const double expected = (9 * integral(a, b, 9) - integral(a, b, 3)) / 8;
        EXPECT_NEAR(found(a, b), expected, 3e-4) << a << " " << b;
    }
    EXPECT_GT(std::abs(found(3, 6)), 1e-3);
}

TEST(LegendreBasis, PotentialsOfFarCellsConverge)
{
    const std::vector<Point> sources = pointsInACell(20);
    const Mat3 edges                 = skewed();
    const Int3 D                     = { 2, 0, -1 };
    const Vec3 target(0.31, -0.44, 0.2);
    for (const Kernel& kernel : kernels())
    {
        // errors are relative to charges one cell away
        double expected = 0, size = 0;
        for (const Point& source : sources)
        {
            const Vec3 d = edges.transpose() * (Vec3(D[0], D[1], D[2]) + target - source.xi);
            expected += source.q * kernel.value(d.norm());
            size += std::abs(source.q) * kernel.value(1);
        }
        double before = 0.2;
        for (const int degree : { 2, 6, 10 })
        {
            const LegendreBasis basis(degree);
            const Matrix K = basis.interaction(edges, D, [&](double r) { return kernel.value(r); });
            const Eigen::VectorXd L = K * multipoles(basis, sources);
            double found            = 0;
            for (int a = 0; a < basis.count(); a++)
            {
                found += L[a] * polynomial(basis.powers()[a], target);
            }
            const double error = std::abs(found - expected) / size;
            EXPECT_LT(error, 0.1 * before) << kernel.name() << " " << degree;
            before = std::max(error, 1e-9);
        }
        EXPECT_LT(before, 2e-5) << kernel.name();
    }
}

TEST(LegendreBasis, ParentsHaveThePolynomialsOfTheirChildren)
{
    const LegendreBasis basis(7);
    const std::vector<Point> points = pointsInACell(5);
    for (int octant = 0; octant < 8; octant++)
    {
        std::vector<Point> inParent = points;
        for (Point& point : inParent)
        {
            for (int k = 0; k < 3; k++)
            {
                point.xi[k] = (point.xi[k] + ((octant >> k) & 1) - 0.5) / 2;
            }
        }
        const Eigen::VectorXd up = basis.childToParent(octant) * multipoles(basis, points);
        EXPECT_LT((up - multipoles(basis, inParent)).norm(), 1e-12) << octant;
    }
}

TEST(LegendreBasis, TransformsAreIntegralsOfWaves)
{
    const LegendreBasis basis(9);
    for (const double k : { 0.0, 1e-9, 0.3, -4.0, 31.0 })
    {
        const std::vector<double> found = basis.transforms(Vec3(k, 0, 0));
        const int n                     = 4000;
        for (int a = 0; a < basis.count(); a++)
        {
            const Int3& powers = basis.powers()[a];
            if (powers[1] != 0 || powers[2] != 0)
            {
                continue;
            }
            // i^j times the transform
            double sum = 0;
            for (const double xi : midpoints(n))
            {
                const double wave = powers[0] % 2 == 0 ? std::cos(k * xi) : std::sin(k * xi);
                sum += polynomial(powers, Vec3(xi, 0, 0)) * wave / n;
            }
            const int sign = powers[0] / 2 % 2 == 0 ? 1 : -1;
            EXPECT_NEAR(found[a], sign * sum, 3e-5) << k << " " << powers[0];
        }
    }
}

TEST(PairKernels, HaveTheirSlopes)
{
    auto all = kernels();
    all.push_back(Kernel::table(0.1, 3.1, { 3, 2, 2.5, -1 }, { 0, 1, -1, 2 }));
    for (const Kernel& kernel : all)
    {
        for (const double r : { 0.4, 1.3, 2.9 })
        {
            const double step  = 1e-6 * r;
            const double slope = (kernel.value(r + step) - kernel.value(r - step)) / (2 * step);
            EXPECT_NEAR(kernel.slope(r), slope, 1e-7 * (1 + std::abs(slope))) << kernel.name();
        }
    }
}

TEST(PairKernels, AreTheSumOfASharpAndASmoothPart)
{
    for (const Kernel& kernel : kernels())
    {
        const PairKernel& parts = kernel.pairKernel();
        for (const double b : { 0.7, 2.5 })
        {
            for (const double r : { 1e-4, 0.01, 0.3, 1.0, 2.2, 7.0 })
            {
                const double smooth = parts.smooth(r, b);
                EXPECT_NEAR(parts.sharp(r, b) + smooth, parts.value(r), 1e-13 * parts.value(r))
                        << kernel.name() << " " << r;
                EXPECT_LE(smooth, parts.smooth(0.5 * r, b) * (1 + 1e-9)) << kernel.name();
            }
            // finite at 0, without a slope
            EXPECT_NEAR(parts.smooth(1e-9, b), parts.smooth(2e-3, b), 1e-4 * parts.smooth(0, b))
                    << kernel.name();
        }
    }
}

TEST(PairKernels, HaveTheTransformOfTheSmoothPart)
{
    for (const Kernel& kernel : kernels())
    {
        const PairKernel& parts = kernel.pairKernel();
        for (const double b : { 0.9, 2.0 })
        {
            for (const double k : { 0.0, 0.5, 3.0 })
            {
                // the integral over space: Simpson's rule, and the rest of an inverse power beyond
                const double end = 60;
                const int n      = 60000;
                double sum       = 0;
                for (int i = 0; i <= n; i++)
                {
                    const double r    = std::max(end * i / n, 1e-12);
                    const double wave = k > 0 ? std::sin(k * r) / (k * r) : 1;
                    const int weight  = i == 0 || i == n ? 1 : i % 2 == 1 ? 4 : 2;
                    sum += weight * 4 * M_PI * r * r * wave * parts.smooth(r, b) * end / n / 3;
                }
                const double rest  = k == 0 && parts.exponent() == 4 ? 4 * M_PI / end
                                                                     : 0; // others: below the bound
                const double found = parts.smoothTransform(k, b);
                EXPECT_NEAR(found, sum + rest, 2e-5 * parts.smoothTransform(0, b))
                        << kernel.name() << " b " << b << " k " << k;
            }
        }
    }
}

TEST(PairKernels, OperatorsOfMirroredAndTurnedDisplacementsAreThoseOfTheIntegrals)
{
    Mat3 brick = Mat3::Zero();
    brick.diagonal() << 1, 1.3, 0.8;
    const LegendreBasis basis(3);
    const Kernel kernel = Kernel::yukawa(1);
    const auto function = [&](double r) { return 2 * kernel.value(r); };
    for (const Mat3& edges : { Mat3(Mat3::Identity()), brick, skewed() })
    {
        const auto all =
                kernelOperators<double>(basis, kernel.pairKernel(), 2, edges, 1, c_derivatives, 1);
        ASSERT_EQ(all.size(), static_cast<size_t>(c_derivatives));
        for (size_t i = 0; i < all[0].size(); i++)
        {
            const auto found = [&](int k)
            { return Eigen::Map<const Matrix>(all[k][i].T.data(), basis.count(), basis.count()); };
            const Matrix expected = basis.interaction(edges, all[0][i].D, function);
            ASSERT_LT((found(0) - expected).norm(), 1e-13 * expected.norm());
            // derivatives beside differences of cells that are strained, of some
            constexpr double c_step = 1e-4;
            for (int k = 1; i % 7 == 0 && k < c_derivatives; k++)
            {
                const auto [a, b] = c_strains[k - 1];
                Mat3 up = Mat3::Identity(), down = up;
                up(a, b) += c_step;
                down(a, b) -= c_step;
                const Matrix difference = (basis.interaction(edges * up, all[k][i].D, function)
                                           - basis.interaction(edges * down, all[k][i].D, function))
                                          / (2 * c_step);
                ASSERT_LT((found(k) - difference).norm(), 1e-6 * expected.norm()) << i << " " << k;
            }
        }
    }
}

TEST(PairKernels, PeriodicSumsDoNotDependOnTheSplitting)
{
    const LegendreBasis basis(3);
    for (const bool isSkewed : { false, true })
    {
        const Mat3 box = 3 * (isSkewed ? skewed() : Mat3(Mat3::Identity()));
        const Grid grid(IntMat{ { { 3, 0, 0 }, { 0, 2, 0 }, { 0, 0, 4 } } }, box);
        const WaveVectors waves(grid);
        for (const Kernel& kernel : kernels())
        {
            // the splitting follows from the accuracy
            std::vector<Matrix> rough(waves.representatives()), fine = rough;
            for (auto* all : { &rough, &fine })
            {
                const PeriodicKernelSums sums(
                        basis, kernel.pairKernel(), grid, 1, 1, all == &rough ? 1e-7 : 1e-12, 1, 2);
                sums.forEach(waves,
                             0,
                             waves.representatives(),
                             [&](int k, const std::vector<Matrix>& kappas)
                             { (*all)[k] = kappas[0]; });
            }
            double size = kernel.value(1); // of charges one cell away
            for (const Matrix& kappa : fine)
            {
                size = std::max(size, kappa.norm());
            }
            for (int k = 0; k < waves.representatives(); k++)
            {
                EXPECT_LT((rough[k] - fine[k]).norm(), 3e-5 * size) << kernel.name() << " " << k;
                EXPECT_LT((fine[k] - fine[k].transpose()).norm(), 1e-10 * size) << kernel.name();
            }
        }
    }
}

template<class Real>
void expectLaw(const Kernel& kernel, double tolerance)
{
    const double unit  = 0.7;
    const auto law     = lawOf<Real>(kernel.pairKernel(), unit);
    const int staged   = c_stagePadding;
    const Real nowhere = 50;
    AlignedVector<Real> x(staged, 2 * nowhere), y(staged, 0), z(staged, 0), q(2 * staged, 0);
    std::vector<double> expected(8, 0);
    const Real at[3] = { Real(0.1), Real(-0.2), Real(0.3) };
    for (int i = 0; i < 11; i++)
    {
        x[i]          = Real(0.5 + 0.13 * i);
        y[i]          = Real(-0.4 + 0.07 * i);
        z[i]          = Real(0.9 - 0.1 * i);
        q[i]          = Real(1 + 0.3 * i);
        q[staged + i] = Real(2 - i);
        if (i == 4)
        {
            continue; // the target itself, below
        }
        const Vec3 d = unit
                       * Vec3(double(at[0]) - double(x[i]),
                              double(at[1]) - double(y[i]),
                              double(at[2]) - double(z[i]));
        for (int s = 0; s < 2; s++)
        {
            expected[4 * s] += double(q[s * staged + i]) * kernel.value(d.norm());
            for (int k = 0; k < 3; k++)
            {
                expected[4 * s + 1 + k] -=
                        double(q[s * staged + i]) * kernel.slope(d.norm()) / d.norm() * d[k];
            }
        }
    }
    std::vector<Real> found(8, 0);
    pointKernels<Real>().pairs({ &law,
                                 { &at[0], &at[1], &at[2], 1 },
                                 x.data(),
                                 y.data(),
                                 z.data(),
                                 q.data(),
                                 staged,
                                 2,
                                 4,
                                 nowhere,
                                 found.data(),
                                 1 });
    for (int c = 0; c < 8; c++)
    {
        const double factor = c % 4 == 0 ? law.factor : law.factor / unit;
        EXPECT_NEAR(factor * double(found[c]), expected[c], tolerance * std::abs(expected[0]) * 20)
                << kernel.name() << " " << c;
    }
}

TEST(PairKernels, VectorsHaveTheSameLaw)
{
    auto all = kernels();
    all.push_back(Kernel::inversePower(1));
    all.push_back(Kernel::inversePower(3));
    all.push_back(Kernel::table(0.1, 3.1, { 3, 2, 2.5, -1 }, { 0, 1, -1, 2 }));
    for (const Kernel& kernel : all)
    {
        expectLaw<float>(kernel, 1e-6);
        expectLaw<double>(kernel, 1e-15);
    }
}

//! Points in a box, and the sum of their r^-6 with virials.
struct Periodic
{
    int n = 300;
    std::vector<double> x;
    std::vector<float> q;
    KernelOptions options;

    Periodic()
    {
        std::mt19937_64 random(7);
        std::uniform_real_distribution<double> uniform(0, 1);
        for (int i = 0; i < n; i++)
        {
            for (int k = 0; k < 3; k++)
            {
                x.push_back(uniform(random));
            }
            q.push_back(1);
        }
        options.accuracy = 1e-3;
        options.boundary = Boundary::Periodic;
        options.threads  = 1;
    }
    std::vector<float> fields(KernelSum<float>* sum, const Mat3& box, bool virial) const
    {
        std::vector<double> places;
        for (int i = 0; i < n; i++)
        {
            const Vec3 at = box.transpose() * Vec3(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
            places.insert(places.end(), at.data(), at.data() + 3);
        }
        double rows[3][3], virials[1][3][3];
        for (int k = 0; k < 9; k++)
        {
            rows[k / 3][k % 3] = box(k / 3, k % 3);
        }
        std::vector<float> result(3 * n);
        KernelInput<float> input;
        input.x   = places.data();
        input.q   = q.data();
        input.n   = n;
        input.box = rows;
        KernelOutput<float> output;
        output.fields  = result.data();
        output.virials = virial ? virials : nullptr;
        sum->evaluate(input, output);
        return result;
    }
};

TEST(KernelSums, ContinueFromTheirState)
{
    const Periodic system;
    const Mat3 box = 3 * Mat3::Identity();
    // the operators are those of the first box, strained
    Mat3 later  = box;
    later(0, 0) = 3.0006;
    later(2, 2) = 2.9997;
    for (const bool virial : { true, false })
    {
        KernelSum<float> first(Kernel::inversePower(6), system.options);
        EXPECT_TRUE(first.state().empty());
        system.fields(&first, box, virial);
        system.fields(&first, later, false);
        KernelSum<float> second(Kernel::inversePower(6), system.options);
        second.resume(first.state());
        const Mat3 next = 1.001 * later;
        EXPECT_EQ(system.fields(&first, next, virial), system.fields(&second, next, virial));
        EXPECT_EQ(first.setup().degree, second.setup().degree);
        EXPECT_EQ(first.state(), second.state());
    }
    KernelSum<float> other(Kernel::inversePower(6), system.options);
    EXPECT_THROW(other.resume({ 1, 2, 3 }), Error);
    other.resume({});
    EXPECT_TRUE(other.state().empty());
}

TEST(KernelSums, MayGoOnWithTheBest)
{
    constexpr int c_points = 400;
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<double> cube, line;
    for (int i = 0; i < c_points; i++)
    {
        cube.insert(cube.end(), { uniform(random), uniform(random), uniform(random) });
        // pairs so close that single precision has few digits of their distances in any leaf
        const double at = i % 2 == 0 ? uniform(random) : line[3 * (i - 1)] + 1e-9;
        line.insert(line.end(), { at, 0, 0 });
    }
    const std::vector<float> q(c_points, 1);
    std::vector<float> fields(3 * c_points);
    for (const bool goesOn : { false, true })
    {
        KernelOptions options;
        options.accuracy   = 1e-5;
        options.bestEffort = goesOn;
        KernelSum<float> sum(Kernel::inversePower(1), options);
        KernelInput<float> input;
        input.x = cube.data();
        input.q = q.data();
        input.n = c_points;
        KernelOutput<float> output;
        output.fields = fields.data();
        sum.evaluate(input, output);
        EXPECT_LE(sum.setup().measuredError, options.accuracy);
        input.x = line.data();
        if (goesOn)
        {
            sum.evaluate(input, output);
            EXPECT_GT(sum.setup().measuredError, options.accuracy);
            EXPECT_LT(sum.setup().measuredError, 1);
        }
        else
        {
            EXPECT_THROW(sum.evaluate(input, output), Error);
        }
    }
}

TEST(KernelSums, AgreeWithEwaldSumsOfAnotherSplitting)
{
    const Periodic system;
    Mat3 box  = 3 * Mat3::Identity();
    box(1, 0) = 1;
    box(2, 1) = -0.8;
    std::vector<double> places;
    for (int i = 0; i < system.n; i++)
    {
        const Vec3 at =
                box.transpose() * Vec3(system.x[3 * i], system.x[3 * i + 1], system.x[3 * i + 2]);
        places.insert(places.end(), at.data(), at.data() + 3);
    }
    Team team(2);
    const Region region{ Vec3::Zero(), box, true };
    PointSystem<float> points;
    points.n                    = system.n;
    points.x                    = places.data();
    points.q                    = system.q.data();
    const std::vector<int> some = { 0, 5, 17, 299 };
    for (const Kernel& kernel :
         { Kernel::inversePower(4), Kernel::inversePower(6), Kernel::yukawa(0.9) })
    {
        const auto rough = ewaldSums(kernel.pairKernel(), points, region, some, 1e-6, &team);
        const auto fine  = ewaldSums(kernel.pairKernel(), points, region, some, 1e-12, &team);
        for (size_t i = 0; i < fine.size(); i++)
        {
            // potentials, and fields over a length
            EXPECT_NEAR(rough[i], fine[i], 1e-5 * std::abs(fine[i % some.size()])) << kernel.name();
        }
    }
}

TEST(SortedPoints, KeysAreInOrder)
{
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> keys(5000);
    for (auto& key : keys)
    {
        key = random() >> 30; // 34 bits; some are the same
        key &= ~std::uint64_t(0xff00);
    }
    std::vector<int> expected(keys.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(
            expected.begin(), expected.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    EXPECT_EQ(orderOfKeys(keys, 34), expected);
}

TEST(CellHash, FindsItsCells)
{
    std::mt19937 random(4);
    std::vector<Int3> cells;
    const int most = (1 << c_keyBits) - 1;
    for (int i = 0; i < 3000; i++)
    {
        cells.push_back({ i, static_cast<int>(random()) & most, most - 2 * i });
    }
    CellHash hash;
    EXPECT_EQ(hash.find(cells[0]), -1);
    hash.set(cells);
    for (int i = 0; i < 3000; i++)
    {
        EXPECT_EQ(hash.find(cells[i]), i);
        EXPECT_EQ(hash.find({ cells[i][0], cells[i][1], cells[i][2] - 1 }), -1);
    }
}

} // namespace
} // namespace test
} // namespace farfield
