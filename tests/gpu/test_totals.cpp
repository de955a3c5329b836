/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Energies, virials and forces of whole evaluations on both backends, and their bits.
 */
#include <utility>

#include "stage_pair.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Real>
class GpuTotals : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuTotals, Precisions);

TYPED_TEST(GpuTotals, MatchCpu)
{
    std::vector<Case> cases = c_trees;
    cases.insert(cases.end(), c_sizes.begin(), c_sizes.end());
    cases.push_back({ "octahedron", 1000, 0.25, 1, 5, 1, true, 0, 5.0 }); // background
    cases.push_back({ "octahedron", 1000, 0.25, 3, 5, 1, true, 0, 5.0 });
    cases.push_back({ "cube", 1000, 0.25, 2, 5, 2, true, 0, -5.0 });
    // so many wave vectors that blocks take several
    cases.push_back({ "cube", 2000, 0.075, 1, 2 });
    cases.push_back({ "triclinic", 1000, 0.105, 1, 3 });
    for (const Case& c : chosen(cases))
    {
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, particlesOf(c));
        pair.run();
        expectSameResults(pair, c, c.n);
    }
}

//! The operators follow a strain to first order, in a rotated frame if the box is sheared.
TYPED_TEST(GpuTotals, MatchCpuInAStrainedBox)
{
    for (const Case& c : chosen<Case>({ { "cube", 500, 0.3, 1, 5 },
                                        { "triclinic", 500, 0.3, 1, 5, 1, true, 0, 2.0 },
                                        { "rectangular", 500, 0.25, 3, 4 },
                                        { "octahedron", 500, 0.3, 2, 5 } }))
    {
        SCOPED_TRACE(describe(c));
        const System system = particlesOf(c);
        Pair<TypeParam> pair(c, system);
        pair.run();
        Mat3 strain;
        strain << 3e-3, 1e-3, -5e-4, 1e-3, -1e-3, 7e-4, -5e-4, 7e-4, -2e-3;
        const Mat3 sheared = matrixOf(system.box) * (Mat3::Identity() + strain);
        // sheared = L Q with a lower-triangular L, the new box: L = sheared Q^T
        const Eigen::HouseholderQR<Mat3> qr(sheared.transpose());
        Mat3 rotation = qr.householderQ();
        for (int k = 0; k < 3; ++k)
        {
            if ((sheared * rotation)(k, k) < 0)
            {
                rotation.col(k) *= -1;
            }
        }
        Mat3 box  = sheared * rotation;
        box(0, 1) = box(0, 2) = box(1, 2) = 0;
        const Mat3 change                 = matrixOf(system.box).inverse() * box;
        System moved                      = system;
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j < 3; ++j)
            {
                moved.box[i][j] = box(i, j);
            }
        }
        for (Vector& x : moved.positions)
        {
            const Eigen::RowVector3d r = Eigen::RowVector3d(x[0], x[1], x[2]) * change;
            x                          = { r[0], r[1], r[2] };
        }
        pair.cpu().setBox(box, strain, rotation);
        pair.gpu().setBox(box, strain, rotation);
        pair.setSystem(moved);
        pair.run();
        expectSame<TypeParam>(
                pair.onGpu.locals[0], pair.onCpu.locals[0], coefficientCount(c.order), "locals");
        expectSameResults(pair, c, c.n);
        // derivatives between those of two shapes of the cells
        pair.cpu().setVirialStrain(1.5 * strain);
        pair.gpu().setVirialStrain(1.5 * strain);
        pair.run();
        expectSameResults(pair, c, c.n);
    }
}

//! What is left from an evaluation must not enter the next one, of other particles and other cells.
TYPED_TEST(GpuTotals, DoNotDependOnEarlierEvaluations)
{
    const Case first  = { "cube", 1500, 0.25, 2, 5 };
    const Case second = { "cube", 1500, 0.25, 2, 5, 1, true, 0.4 };
    Pair<TypeParam> pair(first, particlesOf(first));
    for (const Case& c : { first, second, first, second })
    {
        SCOPED_TRACE(describe(c));
        System moved  = particlesOf(c);
        moved.charges = pair.system().charges;
        pair.setSystem(moved);
        pair.run();
        expectSameResults(pair, c, c.n);
    }
}

//! Molecules of three, none of whose pairs interact.
System withExclusions(System system)
{
    for (int i = 2; i < system.size(); i += 3)
    {
        system.exclusions.push_back({ i, i - 1 });
        system.exclusions.push_back({ i, i - 2 });
    }
    return system;
}

template<class Real>
class GpuReproducible : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuReproducible, Precisions);

TYPED_TEST(GpuReproducible, IsBitwiseEqual)
{
    const Case hierarchy = { "cube", 3000, 0.25, 2, 8 };
    const Case droplet   = { "triclinic", 2000, 0.1, 4, 4, 1, true, 0.4 };
    for (const auto& [c, engine] : chosen<std::pair<Case, M2lEngine>>({
                 { { "octahedron", 4097, 0.3, 1, 5 }, M2lEngine::Hierarchy },
                 { hierarchy, M2lEngine::Hierarchy },
                 { hierarchy, M2lEngine::Symmetric },
                 { hierarchy, M2lEngine::Gemm },
                 { droplet, M2lEngine::Hierarchy },
                 { droplet, M2lEngine::Symmetric },
                 { droplet, M2lEngine::Gemm },
         }))
    {
        SCOPED_TRACE(describe(c) + ", " + nameOf(engine));
        Pair<TypeParam> pair(c, withExclusions(particlesOf(c)), engine, true);
        const Record first = record(pair.gpu(), pair.system(), c.levels, {});
        for (int repeat = 0; repeat < 10; ++repeat)
        {
            const Record again = record(pair.gpu(), pair.system(), c.levels, {});
            EXPECT_EQ(again.forces, first.forces);
            EXPECT_EQ(again.multipoles, first.multipoles);
            EXPECT_EQ(again.locals, first.locals);
            EXPECT_EQ(again.totals.energy, first.totals.energy);
            for (int i = 0; i < 9; ++i)
            {
                EXPECT_EQ(again.totals.virial[i / 3][i % 3], first.totals.virial[i / 3][i % 3]);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
