/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Lattice sums against sums over shells of cells, and their strain derivatives.
 */
#include "operators/lattice_sums.h"

#include <cmath>

#include <vector>

#include <gtest/gtest.h>

#include "far_sum.h"

namespace farfield
{
namespace test
{
namespace
{

//! A box of few cells: no reciprocal vector is short, so that sums over shells converge soon.
struct Lattice
{
    const char* name;
    IntMat H;
    Mat3 edges; //!< of a cell, any unit
    int ws;
};

std::vector<Lattice> lattices()
{
    Mat3 cube = Mat3::Identity(), brick = Mat3::Zero(), skewed, octahedron;
    brick.diagonal() << 1, 1.3, 0.8;
    skewed << 1, 0, 0, 0.21, 1.1, 0, -0.37, 0.29, 0.9;
    octahedron << 1, 0, 0, 1.0 / 3, std::sqrt(8.0) / 3, 0, -1.0 / 3, std::sqrt(2.0) / 3,
            std::sqrt(6.0) / 3;
    return { { "one cube", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } }, cube, 1 },
             { "brick", { { { 3, 0, 0 }, { 0, 2, 0 }, { 0, 0, 4 } } }, brick, 1 },
             { "skewed", { { { 3, 0, 0 }, { 1, 2, 0 }, { -1, 1, 3 } } }, skewed, 1 },
             { "skewed, wide", { { { 3, 0, 0 }, { 1, 2, 0 }, { -1, 1, 3 } } }, skewed, 2 },
             { "octahedron", { { { 2, 0, 0 }, { 0, 3, 0 }, { 1, 1, 2 } } }, octahedron, 1 } };
}

Mat3 boxOf(const IntMat& H, const Mat3& edges)
{
    Mat3 rows;
    for (int k = 0; k < 9; ++k)
    {
        rows(k / 3, k % 3) = H[k / 3][k % 3];
    }
    return rows * edges;
}

std::vector<int> allWaves(const Grid& grid)
{
    std::vector<int> waves(grid.waveVectors());
    for (size_t k = 0; k < waves.size(); ++k)
    {
        waves[k] = static_cast<int>(k);
    }
    return waves;
}

//! The real w_i(k) of lattice_sums.h, [waves][coefficients], and sums of magnitudes,
//! [coefficients].
void sumShells(const Grid& grid,
               int ws,
               int degree,
               farfield::Matrix* sums,
               std::vector<double>* magnitudes)
{
    const FarSum far(grid, ws);
    const int n = coefficientCount(degree);
    sums->setZero(grid.waveVectors(), n);
    magnitudes->assign(n, 0);
    std::vector<double> v(n);
    far.forHalf(
            [&](const Int3& D, const Vec3& r, double weight)
            {
                irregularHarmonics(degree, r, v.data());
                for (int i = 0; i < n; ++i)
                {
                    v[i] *= 2 * weight;
                    (*magnitudes)[i] += std::abs(v[i]);
                }
                for (int k = 0; k < grid.waveVectors(); ++k)
                {
                    // exp(-i k.D) of D and -D: i^-l times twice the real or the imaginary part
                    const double phase    = grid.phases(k).dot(Vec3(D[0], D[1], D[2]));
                    const double parts[4] = {
                        std::cos(phase), -std::sin(phase), -std::cos(phase), std::sin(phase)
                    };
                    for (int l = 0; l <= degree; ++l)
                    {
                        for (int i = l * l; i < (l + 1) * (l + 1); ++i)
                        {
                            (*sums)(k, i) += parts[l % 4] * v[i];
                        }
                    }
                }
            });
    (*sums)(0, 0) -= far.background();
}

TEST(LatticeSums, AreSumsOverShells)
{
    constexpr int c_degree = 10;
    for (const Lattice& lattice : lattices())
    {
        const Grid grid(lattice.H, boxOf(lattice.H, lattice.edges));
        farfield::Matrix shells;
        std::vector<double> magnitudes;
        sumShells(grid, lattice.ws, c_degree, &shells, &magnitudes);
        for (const double ewald : { 0.7, 1.0, 1.4 })
        {
            const auto sums = latticeSums<double>(grid,
                                                  Boundary::Periodic,
                                                  lattice.ws,
                                                  c_degree,
                                                  0,
                                                  allWaves(grid),
                                                  1e-17,
                                                  ewald,
                                                  1);
            for (int k = 0; k < grid.waveVectors(); ++k)
            {
                for (int i = 0; i < coefficientCount(c_degree); ++i)
                {
                    EXPECT_NEAR(sums.value(k, i),
                                shells(k, i),
                                FarSum::remainder() * std::max(1.0, magnitudes[i]))
                            << lattice.name << ", wave vector " << k << ", degree " << degreeOf(i)
                            << ", coefficient " << i << ", Ewald parameter " << ewald;
                }
            }
        }
    }
}

//! Cells stacked along z, where they have no images.
std::vector<Lattice> slabs()
{
    Mat3 brick = Mat3::Zero(), skewed;
    brick.diagonal() << 1, 1.3, 0.8;
    skewed << 1, 0, 0, 0.21, 1.1, 0, 0, 0, 0.9;
    return { { "slab", { { { 3, 0, 0 }, { 0, 2, 0 }, { 0, 0, 7 } } }, brick, 1 },
             { "skewed slab, wide", { { { 3, 0, 0 }, { 1, 2, 0 }, { 0, 0, 6 } } }, skewed, 2 } };
}

//! What is cut off where, and how the sum is split, has no part in it.
TEST(LatticeSums, OfSlabsDoNotDependOnTheSplitting)
{
    constexpr int c_degree = 24;
    for (const Lattice& lattice : slabs())
    {
        const Grid grid(lattice.H, boxOf(lattice.H, lattice.edges));
        const auto sums = [&](double ewald)
        {
            return latticeSums<double>(
                    grid, Boundary::Slab, lattice.ws, c_degree, 2, allWaves(grid), 1e-17, ewald, 1);
        };
        const auto reference = sums(1.0);
        for (const double ewald : { 0.55, 0.8, 1.3 })
        {
            const auto other = sums(ewald);
            for (int i = 0; i < coefficientCount(c_degree); ++i)
            {
                // planes of some 10 cells, and what the nearest far cells have of that degree
                const double scale = std::max(1e3, reference.value.col(i).cwiseAbs().maxCoeff());
                EXPECT_LE((other.value.col(i) - reference.value.col(i)).cwiseAbs().maxCoeff(),
                          1e-13 * scale)
                        << lattice.name << ", coefficient " << i << ", " << ewald;
            }
            for (int c = 0; c < StrainCount; ++c)
            {
                EXPECT_LE((other.strain[c] - reference.strain[c]).cwiseAbs().maxCoeff(), 1e-9)
                        << lattice.name << ", strain " << c << ", " << ewald;
            }
        }
    }
}

//! The strain derivatives are those of the sums: differences of boxes that are strained.
void expectStatedStrainDerivatives(const std::vector<Lattice>& all,
                                   Boundary boundary,
                                   const std::vector<Strain>& components)
{
    constexpr int c_degree  = 6;
    constexpr double c_step = 1e-4;
    for (const Lattice& lattice : all)
    {
        const Mat3 box  = boxOf(lattice.H, lattice.edges);
        const auto sums = [&](const Mat3& strain, int strainDegree)
        {
            const Grid grid(lattice.H, box * (Mat3::Identity() + strain));
            return latticeSums<double>(grid,
                                       boundary,
                                       lattice.ws,
                                       c_degree,
                                       strainDegree,
                                       allWaves(grid),
                                       1e-17,
                                       1.0,
                                       1);
        };
        const auto exact = sums(Mat3::Zero(), c_degree);
        for (const Strain c : components)
        {
            const int a = c_strainAxes[c][0], b = c_strainAxes[c][1];
            Mat3 strain = Mat3::Zero();
            strain(a, b) += a == b ? c_step : 0.5 * c_step;
            strain(b, a) = strain(a, b);
            strain(2, 2) -= a == b ? c_step : 0;
            const farfield::Matrix difference =
                    (sums(strain, 0).value - sums(-strain, 0).value) / (2 * c_step);
            for (int k = 0; k < difference.rows(); ++k)
            {
                for (int i = 0; i < difference.cols(); ++i)
                {
                    // A harmonic of degree l of the nearest far cells, of which there are less
                    // than 100 and none nearer than 1, strained three times; and rounding.
                    const int l        = degreeOf(i);
                    const double third = 100.0 * (l + 1) * (l + 2) * (l + 3);
                    const double bound = c_step * c_step * third / 6 + 100e-15 / c_step;
                    EXPECT_NEAR(exact.strain[c](k, i), difference(k, i), bound)
                            << lattice.name << ", wave vector " << k << ", coefficient " << i
                            << ", strain " << c;
                }
            }
        }
    }
}

TEST(LatticeSums, HaveTheStatedStrainDerivatives)
{
    expectStatedStrainDerivatives(
            lattices(),
            Boundary::Periodic,
            { StrainXXminusZZ, StrainYYminusZZ, StrainXY, StrainXZ, StrainYZ });
    // strains with z tilt the planes, which the sums do not have: Slab.HasTheVirialOfForcesAlongZ
    expectStatedStrainDerivatives(
            slabs(), Boundary::Slab, { StrainXXminusZZ, StrainYYminusZZ, StrainXY });
}

} // namespace
} // namespace test
} // namespace farfield
