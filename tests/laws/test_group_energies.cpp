/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Energies between groups of particles.
 */
#include <numeric>

#include "test_support.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_groups = 3;

template<class Config>
class GroupEnergies : public ReproducibleTest<Config>
{
public:
    static Options options(M2lEngine engine = M2lEngine::Auto)
    {
        return withCells(ReproducibleTest<Config>::options(), engine, 9, 0.4);
    }
};
TYPED_TEST_SUITE(GroupEnergies, Configurations);

//! Bonded particles are of different groups, and one group has a net charge.
std::vector<int> groupsOf(const System& system)
{
    std::vector<int> groups(system.size());
    for (int i = 0; i < system.size(); ++i)
    {
        groups[i] = (i < 20) ? i % 2 : 2;
    }
    return groups;
}

//! The system with charges of one group, or of two.
System part(System system, const std::vector<int>& groups, int g, int h)
{
    for (int i = 0; i < system.size(); ++i)
    {
        if (groups[i] != g && groups[i] != h)
        {
            system.charges[i] = 0;
        }
    }
    return system;
}

//! By three energies for each two groups.
std::vector<double> reference(const System& system, const std::vector<int>& groups)
{
    std::vector<double> own, result(c_groups * c_groups, 0.0);
    for (int g = 0; g < c_groups; ++g)
    {
        own.push_back(ewald(part(system, groups, g, g)).energy);
    }
    for (int g = 0; g < c_groups; ++g)
    {
        for (int h = g; h < c_groups; ++h)
        {
            const double both        = ewald(part(system, groups, g, h)).energy;
            result[g * c_groups + h] = (g == h) ? own[g] : both - own[g] - own[h];
        }
    }
    return result;
}

template<class Real>
std::vector<double> energies(Solver<Real>& solver,
                             const System& system,
                             const std::vector<int>& groups,
                             double lambda = 0)
{
    Request request;
    request.lambda = lambda;
    return solver.groupEnergies(flatPositions<Real>(system).data(),
                                Box(system.box).rows,
                                groups.data(),
                                c_groups,
                                request);
}

TYPED_TEST(GroupEnergies, AreThoseOfChargesAlone)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const TwoStates& states : twoStates<Real>())
    {
        ++number;
        const System& system          = states.a;
        const std::vector<int> groups = groupsOf(system);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            if (!isTurnOf<Real>(number + (engine == M2lEngine::Fft ? 0 : 1)))
            {
                continue;
            }
            Solver<Real> solver(this->options(engine));
            load(solver, system);
            const Evaluation before            = evaluate(solver, system);
            const std::vector<double> result   = energies(solver, system, groups);
            const std::vector<double> expected = reference(system, groups);
            const Bounds bounds                = boundsFor<Real>(system, solver.setup(), before);
            for (size_t i = 0; i < expected.size(); ++i)
            {
                EXPECT_NEAR(result[i], expected[i], 2 * bounds.energy) << states.name << i;
            }
            EXPECT_NEAR(std::accumulate(result.begin(), result.end(), 0.0),
                        before.energy,
                        1e2 * roundingFloor<Real>() * pairEnergies(system));
            // what follows is as if nothing had been
            expectSameBits(evaluate(solver, system), before);
        }
    }
}

TYPED_TEST(GroupEnergies, AreMixed)
{
    using Real = typename TypeParam::Real;
    for (const TwoStates& states : twoStates<Real>())
    {
        const std::vector<int> groups = groupsOf(states.a);
        Solver<Real> solver(this->options());
        load(solver, states);
        const std::vector<double> result = energies(solver, states.a, groups, 0.3);
        const std::vector<double> a = reference(states.a, groups), b = reference(states.b, groups);
        Bounds bounds = boundsFor<Real>(states.a, solver.setup(), ewald(states.a));
        bounds.energy += boundsFor<Real>(states.b, solver.setup(), ewald(states.b)).energy;
        for (size_t i = 0; i < result.size(); ++i)
        {
            EXPECT_NEAR(result[i], 0.7 * a[i] + 0.3 * b[i], 2 * bounds.energy) << states.name << i;
        }
    }
}

TYPED_TEST(GroupEnergies, AreChecked)
{
    using Real          = typename TypeParam::Real;
    const System system = twoStates<Real>()[0].a;
    Solver<Real> solver(this->options());
    load(solver, system);
    std::vector<int> groups = groupsOf(system);
    groups[17]              = c_groups;
    expectError(
            ErrorCode::InvalidArgument, { "17", "3" }, [&] { energies(solver, system, groups); });
    const std::vector<Real> x = flatPositions<Real>(system);
    expectError(ErrorCode::InvalidArgument,
                { "number of groups, 0" },
                [&] { solver.groupEnergies(x.data(), Box(system.box).rows, groups.data(), 0); });
}

} // namespace
} // namespace test
} // namespace farfield
