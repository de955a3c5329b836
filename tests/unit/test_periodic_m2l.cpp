/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The CPU's periodic M2L against dense operators summed over images, and its derivatives.
 */
#include "cpu/m2l_periodic.h"

#include <cmath>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "far_sum.h"
#include "reference.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Cells of a box and how expansions are reduced.
struct Case
{
    const char* name;
    IntMat H;
    Mat3 edges;
    int order;
    int ws;
    bool leastSquares;
};

std::vector<Case> cases()
{
    const Mat3 cube = Mat3::Identity();
    Mat3 brick      = Mat3::Zero(), skewed;
    brick.diagonal() << 1, 1.3, 0.8;
    skewed << 1, 0, 0, 0.21, 1.1, 0, -0.37, 0.29, 0.9;
    const IntMat straight = { { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 4 } } };
    const IntMat oblique  = { { { 3, 0, 0 }, { 1, 2, 0 }, { -1, 1, 3 } } };
    return { { "one cell", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } }, cube, 4, 1, false },
             { "monopoles", straight, brick, 0, 1, false },
             { "brick", straight, brick, 5, 1, false },
             { "brick, least squares", straight, brick, 3, 1, true },
             { "skewed", oblique, skewed, 5, 1, false },
             { "skewed, least squares", oblique, skewed, 3, 1, true },
             { "skewed, wide", oblique, skewed, 3, 2, false } };
}

Grid gridOf(const Case& c, const Mat3& strain = Mat3::Zero())
{
    Mat3 rows;
    for (int k = 0; k < 9; ++k)
    {
        rows(k / 3, k % 3) = c.H[k / 3][k % 3];
    }
    return Grid(c.H, rows * c.edges * (Mat3::Identity() + strain));
}

Reduction reductionOf(const Case& c)
{
    return { c.order, c.leastSquares, gridOf(c).scaledEdges() };
}

constexpr double c_largestMultipole = 1.3;

//! Random multipoles, [coefficients][stride], zero behind the cells.
template<class Real>
AlignedVector<Real> randomMultipoles(const Case& c, int cells, int stride)
{
    std::mt19937 random(17);
    std::uniform_real_distribution<double> uniform(-1, 1);
    AlignedVector<Real> M(static_cast<size_t>(coefficientCount(c.order)) * stride, Real(0));
    for (int i = 0; i < coefficientCount(c.order); ++i)
    {
        for (int cell = 0; cell < cells; ++cell)
        {
            // a net charge and a net dipole, too
            M[static_cast<size_t>(i) * stride + cell] =
                    static_cast<Real>(c_largestMultipole - 1 + uniform(random));
        }
    }
    return M;
}

int strideOf(const Grid& grid)
{
    return static_cast<int>((grid.count() + c_slotPadding - 1) / c_slotPadding * c_slotPadding);
}

//! Sums of harmonics over the far images of each cell, by Grid::index(), and of the magnitudes in
//! all of them.
std::vector<std::vector<double>>
imageSums(const Grid& grid, int ws, int degree, std::vector<double>* magnitudes)
{
    const FarSum far(grid, ws);
    const int n = coefficientCount(degree);
    std::vector<std::vector<double>> sums(grid.count(), std::vector<double>(n, 0.0));
    std::vector<double> v(n);
    magnitudes->assign(n, 0);
    far.forHalf(
            [&](const Int3& D, const Vec3& r, double weight)
            {
                irregularHarmonics(degree, r, v.data());
                std::vector<double>& there = sums[grid.index(grid.reduce(D))];
                std::vector<double>& back  = sums[grid.index(grid.reduce({ -D[0], -D[1], -D[2] }))];
                for (int i = 0; i < n; ++i)
                {
                    there[i] += weight * v[i];
                    back[i] += (degreeOf(i) % 2 ? -1 : 1) * weight * v[i];
                    (*magnitudes)[i] += 2 * std::abs(weight * v[i]);
                }
            });
    for (auto& sum : sums)
    {
        sum[0] -= far.background() / static_cast<double>(grid.count());
    }
    return sums;
}

//! Sums over columns of what the neglected parts of the harmonics may add to operators.
Eigen::VectorXd remainderOf(const Case& c, const std::vector<double>& magnitudes)
{
    const Reduction reduction = reductionOf(c);
    const int high            = reduction.highOrder();
    const int n = coefficientCount(c.order), N = coefficientCount(high);
    std::vector<M2lEntry> entries = m2lEntries(high);
    for (M2lEntry& entry : entries)
    {
        entry.value = { std::abs(entry.value[0]), std::abs(entry.value[1]) };
    }
    farfield::Matrix A = farfield::Matrix::Zero(n, N);
    A.leftCols(n).setIdentity();
    A.rightCols(N - n) = farfield::Matrix(reduction.C()).cwiseAbs();
    return FarSum::remainder()
           * (A * m2lMatrix(entries, high, magnitudes.data()) * A.transpose()).rowwise().sum();
}

template<class Real>
class PeriodicM2lOf : public testing::Test
{
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(PeriodicM2lOf, Reals);

TYPED_TEST(PeriodicM2lOf, AllImagesIsTheirSum)
{
    using Real = TypeParam;
    for (const Case& c : cases())
    {
        const Grid grid           = gridOf(c);
        const int cells           = static_cast<int>(grid.count());
        const int stride          = strideOf(grid);
        const int n               = coefficientCount(c.order);
        const Reduction reduction = reductionOf(c);
        const int high            = reduction.highOrder();
        std::vector<double> magnitudes;
        const auto images  = imageSums(grid, c.ws, 2 * high, &magnitudes);
        const auto entries = m2lEntries(high);

        AlignedVector<Real> M = randomMultipoles<Real>(c, cells, stride), L(M.size(), Real(0));
        Team team(2);
        PeriodicM2l<Real>(grid, Boundary::Periodic, c.ws, reduction, &team)
                .apply(M.data(), L.data(), stride, nullptr);

        std::vector<farfield::Matrix> operators;
        Eigen::VectorXd bound = remainderOf(c, magnitudes);
        for (const auto& sum : images)
        {
            farfield::Matrix T = m2lMatrix(entries, high, sum.data());
            // conducting surroundings, see m2l_periodic.h: the sum over spheres lacks
            // (2 pi / 3V) |b - a|^2, of which -(4 pi / 3V) a.b is harmonic in both
            for (int i = 1; i < std::min<int>(4, T.rows()); ++i)
            {
                T(i, i) -= 4 * M_PI / 3 / cells;
            }
            operators.push_back(reduction.reduce(T, false));
            bound += std::numeric_limits<Real>::epsilon()
                     * operators.back().cwiseAbs().rowwise().sum();
        }
        // each product of operator and multipole is rounded, and so are the sums of all of them
        bound *= c_largestMultipole * std::log2(2.0 * n * cells);
        for (int target = 0; target < cells; ++target)
        {
            const Int3 t             = grid.cell(target);
            Eigen::VectorXd expected = Eigen::VectorXd::Zero(n);
            for (int source = 0; source < cells; ++source)
            {
                const Int3 s  = grid.cell(source);
                const int way = grid.index(grid.reduce({ t[0] - s[0], t[1] - s[1], t[2] - s[2] }));
                Eigen::VectorXd m(n);
                for (int i = 0; i < n; ++i)
                {
                    m[i] = M[static_cast<size_t>(i) * stride + grid.slot(s)];
                }
                expected += operators[way] * m;
            }
            for (int i = 0; i < n; ++i)
            {
                EXPECT_NEAR(
                        L[static_cast<size_t>(i) * stride + grid.slot(t)], expected[i], bound[i])
                        << c.name << ", cell " << target << ", coefficient " << i;
            }
        }
    }
}

//! Without images: M2L from each cell whose displacement is less than half the box.
TEST(OpenM2l, HasOneImageOfEachCell)
{
    for (const IntMat& H : { IntMat{ { { 5, 0, 0 }, { 0, 3, 0 }, { 0, 0, 7 } } },
                             IntMat{ { { 6, 0, 0 }, { 0, 4, 0 }, { 0, 0, 1 } } } })
    {
        constexpr int c_order = 4;
        Mat3 edges            = Mat3::Zero();
        edges.diagonal() << 0.9, 1.1, 1;
        const Case c     = { "open", H, edges, c_order, 1, false };
        const Grid grid  = gridOf(c);
        const int stride = strideOf(grid);
        const auto M     = randomMultipoles<double>(c, static_cast<int>(grid.count()), stride);
        AlignedVector<double> L(M.size(), 0.0);
        Team team(2);
        PeriodicM2l<double>(grid, Boundary::Open, c.ws, reductionOf(c), &team)
                .apply(M.data(), L.data(), stride, nullptr);
        const int n        = coefficientCount(c_order);
        const auto entries = m2lEntries(c_order);
        for (int target = 0; target < grid.count(); ++target)
        {
            std::vector<double> expected(n, 0.0);
            for (int source = 0; source < grid.count(); ++source)
            {
                Int3 D          = grid.cell(target);
                const Int3 from = grid.cell(source);
                bool isFar = false, isHalf = false;
                for (int k = 0; k < 3; ++k)
                {
                    const int length = H[k][k];
                    D[k]             = (D[k] - from[k] + length) % length;
                    isHalf           = isHalf || (length > 1 && 2 * D[k] == length);
                    D[k] -= 2 * D[k] > length ? length : 0;
                    isFar = isFar || std::abs(D[k]) > c.ws;
                }
                if (isHalf || !isFar)
                {
                    continue;
                }
                const Vec3 r = grid.displacement(D) / grid.unit();
                std::vector<double> v(coefficientCount(2 * c_order));
                irregularHarmonics(2 * c_order, r, v.data());
                const auto T = m2lMatrix(entries, c_order, v.data());
                for (int i = 0; i < n; ++i)
                {
                    for (int j = 0; j < n; ++j)
                    {
                        expected[i] +=
                                T(i, j)
                                * M[static_cast<size_t>(j) * stride + grid.slot(grid.cell(source))];
                    }
                }
            }
            for (int i = 0; i < n; ++i)
            {
                EXPECT_NEAR(L[static_cast<size_t>(i) * stride + grid.slot(grid.cell(target))],
                            expected[i],
                            1e-10)
                        << "cell " << target << ", coefficient " << i;
            }
        }
    }
}

//! Energy 1/2 M.L of fixed multipoles in strained cells.
double energyOf(const Case& c, const Mat3& strain)
{
    const Grid grid         = gridOf(c, strain);
    const int stride        = strideOf(grid);
    AlignedVector<double> M = randomMultipoles<double>(c, static_cast<int>(grid.count()), stride);
    AlignedVector<double> L(M.size(), 0.0);
    Team team(1);
    PeriodicM2l<double>(grid, Boundary::Periodic, c.ws, reductionOf(c), &team)
            .apply(M.data(), L.data(), stride, nullptr);
    double energy = 0;
    for (int i = 0; i < coefficientCount(c.order); ++i)
    {
        for (int cell = 0; cell < grid.count(); ++cell)
        {
            const size_t at = static_cast<size_t>(i) * stride + cell;
            energy += 0.5 * M[at] * L[at];
        }
    }
    return energy;
}

//! The virial is half of the strain derivative of the energy, exactly so without least squares.
TEST(PeriodicM2lVirial, IsHalfTheStrainDerivative)
{
    constexpr double c_step = 1e-4;
    for (const Case& c : cases())
    {
        if (c.leastSquares)
        {
            continue;
        }
        const Grid grid  = gridOf(c);
        const int stride = strideOf(grid);
        AlignedVector<double> M =
                randomMultipoles<double>(c, static_cast<int>(grid.count()), stride);
        AlignedVector<double> L(M.size(), 0.0);
        std::array<double, StrainCount> virial = {};
        Team team(2);
        PeriodicM2l<double>(grid, Boundary::Periodic, c.ws, reductionOf(c), &team)
                .apply(M.data(), L.data(), stride, &virial);
        // energies in units of those of all multipoles with all others
        double size = 0;
        for (size_t k = 0; k < M.size(); ++k)
        {
            size += std::abs(M[k] * L[k]);
        }
        for (int axis = 0; axis < StrainCount; ++axis)
        {
            const int a = c_strainAxes[axis][0], b = c_strainAxes[axis][1];
            Mat3 strain = Mat3::Zero();
            strain(a, b) += a == b ? c_step : 0.5 * c_step;
            strain(b, a) = strain(a, b);
            strain(2, 2) -= a == b ? c_step : 0;
            const double slope = (energyOf(c, strain) - energyOf(c, -strain)) / (2 * c_step);
            // third derivative of terms of degree up to 2 p, and rounding
            const double third = std::pow(2 * c.order + 3, 3);
            EXPECT_NEAR(virial[axis],
                        0.5 * slope,
                        size * (c_step * c_step * third / 6 + 1e-14 / c_step))
                    << c.name << ", strain " << axis;
        }
    }
}

//! A strain of cells. Those of rectangular cells rely on reflections, which a shear breaks: the solver
//! builds operators anew then.
Mat3 strainOf(const Case& c, double amount)
{
    Mat3 stretch = Mat3::Zero(), direction;
    stretch.diagonal() << 0.7, -0.4, -0.3;
    direction << 0.7, 0.3, -0.2, 0.3, -0.4, 0.5, -0.2, 0.5, -0.3;
    return amount * (c.edges.isDiagonal() ? stretch : direction);
}

//! setStrain() follows a strain to first order: what is left falls with its square.
TEST(PeriodicM2lStrain, IsFollowedToFirstOrder)
{
    for (const Case& c : cases())
    {
        if (c.leastSquares || c.order == 0)
        {
            continue;
        }
        const Grid grid  = gridOf(c);
        const int stride = strideOf(grid);
        AlignedVector<double> M =
                randomMultipoles<double>(c, static_cast<int>(grid.count()), stride);
        Team team(2);
        PeriodicM2l<double> followed(grid, Boundary::Periodic, c.ws, reductionOf(c), &team);
        const auto left = [&](double amount)
        {
            const Mat3 strain = strainOf(c, amount);
            AlignedVector<double> near(M.size(), 0.0), exact(M.size(), 0.0), M2 = M;
            followed.setStrain(strain);
            followed.apply(M2.data(), near.data(), stride, nullptr);
            M2 = M;
            PeriodicM2l<double>(gridOf(c, strain), Boundary::Periodic, c.ws, reductionOf(c), &team)
                    .apply(M2.data(), exact.data(), stride, nullptr);
            double squares = 0;
            for (size_t k = 0; k < exact.size(); ++k)
            {
                squares += std::pow(near[k] - exact[k], 2);
            }
            return std::sqrt(squares);
        };
        // four times as much, up to the next order
        const double once = left(1e-3), twice = left(2e-3);
        EXPECT_GT(once, 0) << c.name;
        EXPECT_NEAR(twice / once, 4, 4 * 2e-3 * (2 * c.order + 3)) << c.name;
    }
}

//! Derivatives are interpolated along a strain: at its end they are exact, elsewhere what is left
//! falls with its square.
TEST(PeriodicM2lVirial, IsInterpolatedAlongAStrain)
{
    for (const Case& c : cases())
    {
        if (c.order == 0)
        {
            continue;
        }
        const Grid grid  = gridOf(c);
        const int stride = strideOf(grid);
        AlignedVector<double> M =
                randomMultipoles<double>(c, static_cast<int>(grid.count()), stride);
        Team team(2);
        PeriodicM2l<double> followed(grid, Boundary::Periodic, c.ws, reductionOf(c), &team);
        double size     = 0;
        const auto left = [&](double end, double along)
        {
            const Mat3 line = strainOf(c, end);
            followed.setStrain(along * line);
            followed.setVirialStrain(line);
            std::array<double, StrainCount> virial = {}, exact = {};
            AlignedVector<double> M2 = M, L(M.size(), 0.0);
            followed.apply(M2.data(), L.data(), stride, &virial);
            M2 = M;
            PeriodicM2l<double>(
                    gridOf(c, along * line), Boundary::Periodic, c.ws, reductionOf(c), &team)
                    .apply(M2.data(), L.data(), stride, &exact);
            double squares = 0, all = 0;
            for (int k = 0; k < StrainCount; ++k)
            {
                squares += std::pow(virial[k] - exact[k], 2);
                all += std::pow(exact[k], 2);
            }
            size = std::sqrt(all);
            return std::sqrt(squares);
        };
        const double atEnd = left(2e-3, 1);
        EXPECT_LT(atEnd, 1e-12 * size) << c.name;
        // four times as much, up to the next order
        const double once = left(1e-3, -0.5), twice = left(2e-3, -0.5);
        EXPECT_GT(once, 1e-10 * size) << c.name;
        EXPECT_NEAR(twice / once, 4, 4 * 2e-3 * (2 * c.order + 4)) << c.name;
    }
}

} // namespace
} // namespace test
} // namespace farfield
