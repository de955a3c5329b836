/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Teams of OpenMP threads that are smaller than asked, and solvers in several threads.
 */
#include <array>
#include <memory>
#include <thread>

#include <omp.h>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#define FARFIELD_TESTS_WITH_TSAN __has_feature(thread_sanitizer)

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
    omp_set_dynamic(1); // no more threads than processors that are idle
    const Evaluation result = this->first(M2lEngine::Auto);
    omp_set_dynamic(0);
    expectSameBits(result, expected);
}

#if !FARFIELD_TESTS_WITH_TSAN // libarcher of LLVM 14 crashes in the construct that sets the limit
TYPED_TEST(Teams, OfALimitedSizeGiveTheBitsOfAll)
{
    const Evaluation expected = this->first(M2lEngine::Auto);
    Evaluation result;
#pragma omp teams num_teams(1) thread_limit(1)
    result = this->first(M2lEngine::Auto);
    expectSameBits(result, expected);
}
#endif

/*! \brief Each thread makes, uses and destroys solvers of its own: what they share, the planner of
 *         FFTW above all, has to be guarded by the library. */
TYPED_TEST(Teams, OfDifferentSolversDoNotMeet)
{
    using Real                = typename TypeParam::Real;
    constexpr int c_threads   = 4;
    const int solvers         = TypeParam::device == Device::Cpu ? 100 : 5;
    Options options           = this->options(M2lEngine::Auto);
    options.threads           = 1;
    options.order             = 2;
    const std::vector<Real> x = { 0, 0, 0, Real(0.3), Real(0.2), Real(0.1) }, q = { 1, -1 };
    // boxes of different numbers of cells, and so transforms of different lengths
    const auto forces = [&](int k)
    {
        const double edge      = 0.8 + 0.2 * (k % 5);
        const double box[3][3] = { { edge, 0, 0 }, { 0, 1.3 * edge, 0 }, { 0, 0, edge } };
        Solver<Real> solver(options);
        solver.setCharges(q.data(), 2);
        std::vector<Real> f(6);
        solver.evaluate(x.data(), box, f.data());
        return f;
    };
    std::array<std::vector<Real>, 5> expected;
    for (int k = 0; k < 5; ++k)
    {
        expected[k] = forces(k);
    }
    std::array<int, c_threads> wrong = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < c_threads; ++t)
    {
        threads.emplace_back(
                [&, t]
                {
                    for (int k = 0; k < solvers; ++k)
                    {
                        wrong[t] += forces(k + t) != expected[(k + t) % 5];
                    }
                });
    }
    for (std::thread& thread : threads)
    {
        thread.join();
    }
    EXPECT_EQ(wrong, (std::array<int, c_threads>{}));
}

//! A solver may be used from one thread after the other.
TYPED_TEST(Teams, ChangeWithTheCallingThread)
{
    using Real                = typename TypeParam::Real;
    const Evaluation expected = this->first(M2lEngine::Auto);
    std::unique_ptr<Solver<Real>> solver;
    Evaluation result;
    std::thread([&] { solver = std::make_unique<Solver<Real>>(this->options(M2lEngine::Auto)); })
            .join();
    std::thread([&] { load(*solver, this->system_); }).join();
    for (int k = 0; k < 2; ++k)
    {
        std::thread([&] { result = evaluate(*solver, this->system_); }).join();
        expectSameBits(result, expected);
    }
    Solver<Real> moved = std::move(*solver);
    std::thread([&] { solver.reset(); }).join();
    expectSameBits(evaluate(moved, this->system_), expected);
}

} // namespace
} // namespace test
} // namespace farfield
