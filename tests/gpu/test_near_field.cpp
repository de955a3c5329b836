/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2P and exclusions of the CUDA backend against those of the CPU backend.
 */
#include "stage_pair.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Real>
class GpuP2p : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuP2p, Precisions);

//! At order 0 there are no far forces.
TYPED_TEST(GpuP2p, MatchesCpu)
{
    std::vector<Case> cases = c_sizes;
    for (const Case& c : c_sizes)
    {
        cases.push_back(c);
        cases.back().ws = 2;
    }
    cases.push_back({ "triclinic", 1500, 0.1, 3, 0, 1, true, 0.3 });
    // several warps share a full cell; most other cells are empty, or none
    cases.push_back({ "cube", 2000, 0.3, 1, 0, 1, true, 0.5 });
    cases.push_back({ "rectangular", 5000, 0.5, 1, 0 });
    for (Case c : chosen(cases))
    {
        c.order = 0;
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, particlesOf(c));
        for (const bool virial : { true, false })
        {
            Request request;
            request.virial     = virial;
            request.energy     = virial;
            request.gridOffset = { 0.3, virial ? 0.0 : 0.7, 0.9 };
            pair.run(request);
            expectSameResults(pair, c, c.n);
        }
    }
}

template<class Real>
class GpuExclusions : public GpuStages<Real>
{
};
TYPED_TEST_SUITE(GpuExclusions, Precisions);

TYPED_TEST(GpuExclusions, MatchesCpu)
{
    for (const Case& base : chosen(c_sizes))
    {
        Case c              = base;
        System system       = particlesOf(c);
        const auto distance = [](int i) {
            return i % 5 == 0   ? 0.0
                   : i % 5 == 1 ? 1e-3
                   : i % 5 == 2 ? 0.039
                   : i % 5 == 3 ? 0.041
                                : 0.11;
        };
        // chains: bonds of every length down to coinciding sites, each particle in two of them
        for (int i = 1; i < c.n; ++i)
        {
            if (i % 7 != 0)
            {
                system.positions[i] = system.positions[i - 1];
                system.positions[i][i % 3] += distance(i);
                system.exclusions.push_back({ i - 1, i });
            }
            if (i % 7 > 1)
            {
                system.exclusions.push_back({ i, i - 2 });
            }
            if (i % 7 > 2)
            {
                system.exclusions.push_back({ i, i - 3 });
            }
            for (int j = 4; j <= i % 7; ++j)
            {
                system.exclusions.push_back({ i, i - j });
            }
        }
        // pairs across the box, the same pair twice, a particle with itself
        for (int i = 0; i + 11 < c.n; i += 50)
        {
            system.exclusions.push_back({ i, c.n - 1 - i / 2 });
            system.exclusions.push_back({ i, c.n - 1 - i / 2 });
            system.exclusions.push_back({ i, i });
        }
        SCOPED_TRACE(describe(c));
        Pair<TypeParam> pair(c, system);
        pair.run();
        // what is subtracted at 0.041 nm is larger than what is left
        double charge2 = 0;
        for (const double q : pair.system().charges)
        {
            charge2 = std::max(charge2, q * q);
        }
        const double subtracted = c_coulomb * charge2 / (0.041 * 0.041);
        expectSameResults(pair, c, 1, subtracted);
    }
}

} // namespace
} // namespace test
} // namespace farfield
