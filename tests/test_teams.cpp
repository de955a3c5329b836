/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Teams of OpenMP threads that are smaller than asked, and solvers in several threads.
 */
#include <cstring>

#include <thread>

#include <omp.h>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_team = 4;

template<class Config>
class Teams : public ConfiguredTest<Config>
{
public:
    using Real = typename Config::Real;

    Teams() : system_(rounded<Real>(pseudoWater(namedBox("triclinic", 4.0), 172))) {}

    static Options options(M2lEngine engine)
    {
        Options options      = Config::options();
        options.threads      = c_team;
        options.m2l          = engine;
        options.reproducible = true;
        return options;
    }

    //! The first evaluation of a new solver.
    Evaluation first(M2lEngine engine) const
    {
        Solver<Real> solver(options(engine));
        load(solver, system_);
        return evaluate(solver, system_);
    }

    System system_;
};
TYPED_TEST_SUITE(Teams, Configurations);

void expectSameBits(const Evaluation& result, const Evaluation& expected)
{
    EXPECT_EQ(result.energy, expected.energy);
    EXPECT_EQ(result.forces, expected.forces);
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 3; ++j)
        {
            EXPECT_EQ(result.virial[i][j], expected.virial[i][j]) << i << j;
        }
    }
}

//! Evaluations by a team of one: OpenMP does not nest unless it is asked to.
TYPED_TEST(Teams, OfOneInAParallelRegionGiveTheBitsOfAll)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Hierarchy, M2lEngine::Fft })
    {
        const Evaluation expected = this->first(engine);
        Evaluation firstInside, laterInside;
        Solver<Real> solver(this->options(engine));
        load(solver, this->system_);
        evaluate(solver, this->system_);
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            {
                firstInside = this->first(engine);
                laterInside = evaluate(solver, this->system_);
            }
        }
        expectSameBits(firstInside, expected);
        expectSameBits(laterInside, expected);
    }
}

TYPED_TEST(Teams, ThatTheRuntimeMakesSmallerGiveTheBitsOfAll)
{
    const Evaluation expected = this->first(M2lEngine::Auto);
    std::array<Evaluation, 2> results;
#pragma omp teams num_teams(1) thread_limit(1)
    results[0] = this->first(M2lEngine::Auto);
    omp_set_dynamic(1); // no more threads than processors that are idle
    results[1] = this->first(M2lEngine::Auto);
    omp_set_dynamic(0);
    for (const Evaluation& result : results)
    {
        expectSameBits(result, expected);
    }
}

} // namespace
} // namespace test
} // namespace farfield
