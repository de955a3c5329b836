/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M, M2M, M2L, L2L and L2P of the CUDA backend against those of the CPU backend.
 */
#include <set>

#include "stage_pair.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Real>
class GpuP2m : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuP2m, Precisions);

TYPED_TEST(GpuP2m, MatchesCpu)
{
    std::vector<Case> cases = c_sizes;
    for (const int order : { 0, 1, 13, 20 })
    {
        cases.push_back({ "triclinic", 300, 0.5, 1, order, 1, false });
    }
    for (const Case& c : chosen(cases))
    {
        SCOPED_TRACE(describe(c));
        const System system = particlesOf(c);
        Pair<TypeParam> pair(c, system);
        pair.run();
        const int leaf = c.levels - 1;
        expectSame<TypeParam>(
                pair.onGpu.multipoles[leaf], pair.onCpu.multipoles[leaf], 1, "multipoles");
    }
}

template<class Real>
class GpuM2m : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuM2m, Precisions);

TYPED_TEST(GpuM2m, MatchesCpu)
{
    for (const Case& c : chosen(c_trees))
    {
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, particlesOf(c));
        pair.run();
        // those of coarse cells may cancel
        const double chargeOfLeaf = largest(pair.onCpu.multipoles[c.levels - 1]);
        for (int level = c.levels - 1; level >= 0; --level)
        {
            SCOPED_TRACE("level " + std::to_string(level));
            // eight children, shifted
            expectSame<TypeParam>(pair.onGpu.multipoles[level],
                                  pair.onCpu.multipoles[level],
                                  8 * (c.order + 1),
                                  "multipoles",
                                  chargeOfLeaf);
        }
    }
}

template<class Real>
class GpuPeriodicM2l : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuPeriodicM2l, Precisions);

TYPED_TEST(GpuPeriodicM2l, MatchesCpu)
{
    std::vector<Case> cases;
    for (const NamedBox& named : allBoxes(8.0))
    {
        cases.push_back({ named.name, 800, 0.3, 1, 5 });
    }
    for (const int order : { 0, 1, 2, 8 })
    {
        cases.push_back({ "cube", 800, 0.3, 1, order });
        cases.push_back({ "triclinic", 800, 0.3, 1, order, 2 });
    }
    cases.push_back({ "cube", 300, 0.4, 1, 13, 1, false });
    cases.push_back({ "triclinic", 300, 0.5, 1, 20, 1, false });
    // a transform of 2 x 12 x 48
    cases.push_back({ "dodecahedron_square", 800, 0.187, 1, 8 });
    cases.push_back({ "cube", 100, 1.9, 1, 8 });
    cases.push_back({ "cube", 100, 1.0, 1, 8 });
    cases.push_back({ "cube", 800, 0.3, 1, 5, 1, true, 0, 7.0 });
    for (const Case& c : chosen(cases))
    {
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, particlesOf(c));
        pair.run();
        expectSame<TypeParam>(pair.onGpu.locals[0],
                              pair.onCpu.locals[0],
                              coefficientCount(c.order),
                              "local expansions");
    }
}

template<class Real>
class GpuM2l : public GpuStages<Real>
{
protected:
    //! The part of M2L in the local expansions of all levels but the coarsest.
    static void expectSameM2l(const Case& c, M2lEngine engine)
    {
        SCOPED_TRACE(describe(c) + ", " + nameOf(engine));
        Pair<Real> pair(c, particlesOf(c), engine);
        pair.run();
        // up to 6^3 - 3^3 sources for each of 8 targets, n coefficients each
        const double terms = 189.0 * coefficientCount(c.order);
        for (int level = 1; level < c.levels; ++level)
        {
            SCOPED_TRACE("level " + std::to_string(level));
            const auto part = [&](const Record& r)
            { return minus(r.locals[level], r.handedDown[level]); };
            const std::vector<double> onCpu = part(pair.onCpu);
            expectSame<Real>(onlyPresent(part(pair.onGpu), onCpu, c.order), onCpu, terms, "M2L");
        }
        expectSame<Real>(pair.onGpu.forces, pair.onCpu.forces, c.n, "forces");
    }
    static void expectSameM2l(M2lEngine engine)
    {
        for (const Case& c : chosen(c_trees))
        {
            expectSameM2l(c, engine);
        }
    }
};
TYPED_TEST_SUITE(GpuM2l, Precisions);

TYPED_TEST(GpuM2l, MatchesCpu)
{
    this->expectSameM2l(M2lEngine::Hierarchy);
}
TYPED_TEST(GpuM2l, SymmetricMatchesCpu)
{
    this->expectSameM2l(M2lEngine::Symmetric);
}
TYPED_TEST(GpuM2l, GemmMatchesCpu)
{
    this->expectSameM2l(M2lEngine::Gemm);
}

template<class Real>
class GpuL2l : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuL2l, Precisions);

TYPED_TEST(GpuL2l, MatchesCpu)
{
    std::vector<Case> cases = c_trees;
    cases.push_back({ "triclinic", 1000, 0.25, 2, 5, 1, true, 0, -3.0 }); // background
    for (const Case& c : chosen(cases))
    {
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, particlesOf(c));
        pair.run();
        // operators are about 1, and what they give may cancel
        const double chargeOfLeaf = largest(pair.onCpu.multipoles[c.levels - 1]);
        for (int level = 1; level < c.levels; ++level)
        {
            SCOPED_TRACE("level " + std::to_string(level));
            const std::vector<double>& onCpu = pair.onCpu.handedDown[level];
            expectSame<TypeParam>(onlyPresent(pair.onGpu.handedDown[level], onCpu, c.order),
                                  onCpu,
                                  189.0 * coefficientCount(c.order),
                                  "local expansions",
                                  chargeOfLeaf);
        }
    }
}

template<class Real>
class GpuL2p : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuL2p, Precisions);

//! Single particles in cells of which no two are near: their forces are those of the far field.
TYPED_TEST(GpuL2p, MatchesCpu)
{
    for (const std::string box : { "cube", "triclinic" })
    {
        for (const int order : { 1, 2, 5, 8, 13, 20 })
        {
            Case c = { box, 1, 0.3, 1, order, 1, order < 10 };
            System system;
            system.box = namedBox(c.box, 8.0);
            const Grid grid =
                    discretisationOf(c, system, M2lEngine::Fft).leafGrid(matrixOf(system.box));
            std::mt19937 random(static_cast<unsigned>(order));
            std::uniform_real_distribution<double> uniform(0, 1);
            std::set<Int3> taken;
            for (int index = 0; index < grid.count(); ++index)
            {
                const Int3 cell = grid.cell(index);
                bool free       = true;
                for (const Int3& D : nearDisplacements(c.ws))
                {
                    free = free
                           && taken.count(grid.reduce(
                                      { cell[0] + D[0], cell[1] + D[1], cell[2] + D[2] }))
                                      == 0;
                }
                if (free)
                {
                    taken.insert(cell);
                    const Vec3 r = grid.edges().transpose()
                                   * Vec3(cell[0] + 0.05 + 0.9 * uniform(random),
                                          cell[1] + 0.05 + 0.9 * uniform(random),
                                          cell[2] + 0.05 + 0.9 * uniform(random));
                    system.positions.push_back({ r[0], r[1], r[2] });
                    system.charges.push_back(uniform(random));
                }
            }
            c.n      = system.size();
            c.charge = system.netCharge(); // pulled by the background
            SCOPED_TRACE(describe(c));
            ASSERT_GT(c.n, 8);
            Pair<TypeParam> pair(c, system);
            pair.run();
            expectSameResults(pair, c, coefficientCount(c.order));
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
