/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The caller's OpenMP threads: GROMACS pins each of them to a core before the first step.
 */
#include <set>

#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_team = 4;

template<class Config>
class ThreadTeam : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(ThreadTeam, Configurations);

//! The kernel's numbers of the threads of a team.
std::set<long> members()
{
    std::set<long> ids;
#pragma omp parallel num_threads(c_team)
    {
        const long id = syscall(SYS_gettid);
#pragma omp critical
        ids.insert(id);
    }
    return ids;
}

/*! \brief A smaller team ends the threads that it has no use for; those that replace them later
 *         inherit the core of the thread that starts them, all the same one. */
TYPED_TEST(ThreadTeam, OutlivesSetUpAndEvaluations)
{
    using Real                   = typename TypeParam::Real;
    const System few             = rounded<Real>(randomCharges(namedBox("cube", 16.0), 20, 71));
    const System many            = rounded<Real>(pseudoWater(namedBox("triclinic", 5.0), 72));
    const std::set<long> pinned  = members();
    const std::set<long> another = members();
    if (static_cast<int>(pinned.size()) < c_team || another != pinned)
    {
        GTEST_SKIP() << "OpenMP makes no team of threads that stay";
    }
    for (const System* system : { &few, &many })
    {
        for (const M2lEngine engine : { M2lEngine::Hierarchy, M2lEngine::Fft })
        {
            Options options  = TypeParam::options();
            options.threads  = c_team;
            options.m2l      = engine;
            options.accuracy = 1e-4;
            options.tune     = true;
            Solver<Real> solver(options);
            load(solver, *system);
            EXPECT_EQ(members(), pinned) << "charges, " << describe(*system, solver.setup());
            evaluate(solver, *system);
            EXPECT_EQ(members(), pinned) << "evaluation, " << describe(*system, solver.setup());
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
