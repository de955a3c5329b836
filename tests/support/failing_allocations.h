/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory that runs out: what holds when each allocation of the library fails in turn.
 *
 *  Programs of their own run these laws, as they take the place of what allocates: they ask
 *  isTurnToFail() whether to refuse.
 */
#ifndef FARFIELD_TESTS_FAILING_ALLOCATIONS_H
#define FARFIELD_TESTS_FAILING_ALLOCATIONS_H

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "farfield/farfield.h"

#include "test_support.h"

namespace farfield
{
namespace test
{

//! Counts down to the allocation that fails; far below that unless armed.
inline std::atomic<long long> g_left{ -1 };
inline std::atomic<bool> g_armed{ false }, g_goesOn{ false };

//! Whether allocations of this thread never fail.
inline thread_local bool t_isSpared = false;

//! Whether allocations fail at all at the moment.
inline bool isArmed()
{
    return g_armed.load(std::memory_order_relaxed) && !t_isSpared;
}
//! Counts an allocation while armed. \returns whether it is to fail
inline bool isTurnToFail()
{
    const long long left = g_left.fetch_sub(1);
    return left == 0 || (left < 0 && g_goesOn);
}

//! How an allocation fails: alone, or with all that follow until the call returns.
enum class Mode
{
    Once,
    FromThenOn
};

/*! \brief Calls work() with the k-th allocation failing.
 *  \param[out] failed  whether work() has reported missing memory
 *  \returns whether there was a k-th allocation */
template<class Work>
bool withFailure(long long k, Mode mode, bool* failed, const Work& work)
{
    g_left   = k;
    g_goesOn = mode == Mode::FromThenOn;
    g_armed  = true;
    *failed  = false;
    try
    {
        work();
        g_armed = false;
    }
    catch (const Error& error)
    {
        g_armed = false;
        *failed = true;
        EXPECT_EQ(error.code(), ErrorCode::OutOfMemory) << error.what();
    }
    catch (...)
    {
        g_armed = false;
        *failed = true;
        ADD_FAILURE() << "allocation " << k << ": something else than an Error has escaped";
    }
    return g_left < 0;
}

//! Particles in pairs that do not interact.
template<class Real>
struct Case
{
    std::vector<Real> x, q;
    std::vector<int> offsets = { 0 }, partners;
    int n                    = 0;

    explicit Case(int particles, double uncharged = 0)
    {
        n               = particles;
        unsigned random = 1;
        const auto next = [&]
        {
            random = random * 1664525u + 1013904223u;
            return static_cast<Real>((random >> 8) / 16777216.0);
        };
        for (int i = 0; i < n; i++)
        {
            for (int k = 0; k < 3; k++)
            {
                x.push_back(i % 2 ? x[x.size() - 3] + Real(0.02) : 2 * next());
            }
            q.push_back(i < uncharged * n ? Real(0) : (i % 2 ? next() : -next()));
            partners.push_back(i ^ 1);
            offsets.push_back(i + 1);
        }
    }
};

using BoxRows = std::array<std::array<double, 3>, 3>;

//! Everything that an evaluation returns.
template<class Real>
struct Result
{
    std::vector<Real> forces;
    double energy = 0;
    std::vector<double> virial;
    bool operator==(const Result& other) const
    {
        return forces == other.forces && energy == other.energy && virial == other.virial;
    }
    friend void PrintTo(const Result& result, std::ostream* out)
    {
        *out << std::hexfloat << "energy " << result.energy << ", virial "
             << ::testing::PrintToString(result.virial) << ", forces "
             << ::testing::PrintToString(result.forces);
    }
};

//! What is tested: a backend in a precision with an engine.
template<class RealType, M2lEngine engineValue, Device deviceValue>
struct MemoryKind
{
    using Real                        = RealType;
    static constexpr M2lEngine engine = engineValue;
    static constexpr Device device    = deviceValue;
    //! Further GPUs.
    static DeviceList helpers() { return {}; }
};

//! In the long form so many allocations of a call fail each. Others are ever farther apart: set-up repeats
//! itself, as it measures its error by evaluations.
constexpr long long c_all = 20;

template<class Config>
class OutOfMemory : public ::testing::Test
{
protected:
    using Real = typename Config::Real;

    void SetUp() override
    {
        const std::string why = whyUnavailable(Config::device);
        if (!why.empty())
        {
            GTEST_SKIP() << why;
        }
        // the runtimes allocate when they are used first
        result(*loaded(), many_, box_);
    }

    Options options(int threads = 1) const
    {
        Options options;
        options.device        = Config::device;
        options.helperDevices = Config::helpers();
        options.reproducible  = true;
        options.threads       = threads;
        options.order         = 1;
        options.directRange   = 1;
        options.accuracy      = 1e-2;
        options.leastSquares  = false;
        options.m2l           = Config::engine;
        options.cellSize      = 1;
        return options;
    }
    std::unique_ptr<Solver<Real>> loaded(int threads = 1) const
    {
        auto solver = std::make_unique<Solver<Real>>(options(threads));
        setCharges(*solver, many_);
        setExclusions(*solver, many_);
        return solver;
    }
    static void setCharges(Solver<Real>& solver, const Case<Real>& c)
    {
        solver.setCharges(c.q.data(), c.n);
    }
    static void setExclusions(Solver<Real>& solver, const Case<Real>& c)
    {
        solver.setExclusions(c.offsets.data(), c.partners.data(), c.n);
    }
    static void evaluate(Solver<Real>& solver,
                         const Case<Real>& c,
                         const BoxRows& box,
                         std::vector<Real>* forces,
                         Totals* totals)
    {
        double rows[3][3];
        for (int i = 0; i < 3; i++)
        {
            std::copy(box[i].begin(), box[i].end(), rows[i]);
        }
        *totals = solver.evaluate(c.x.data(), rows, forces->data());
    }
    static Result<Real> result(Solver<Real>& solver, const Case<Real>& c, const BoxRows& box)
    {
        Result<Real> result;
        result.forces.resize(c.x.size());
        Totals totals;
        evaluate(solver, c, box, &result.forces, &totals);
        result.energy = totals.energy;
        result.virial.assign(&totals.virial[0][0], &totals.virial[0][0] + 9);
        return result;
    }

    using Check = std::function<Result<Real>(Solver<Real>&)>;

    /*! \brief Lets each allocation of work(solver) fail.
     *  \param[in] make    returns a solver in the state before
     *  \param[in] before  its results if work() has failed
     *  \param[in] after   and if it has not
     *  \param[in] check   returns the results */
    template<class Make, class Work>
    void everyAllocation(const std::string& what,
                         const Make& make,
                         const Work& work,
                         const Check& before,
                         const Check& after)
    {
        const auto expect = [&](const Check& check)
        {
            auto solver = make();
            if (&check == &after)
            {
                work(*solver);
            }
            return check(*solver);
        };
        const Result<Real> resultBefore = expect(before), resultAfter = expect(after);
        for (const Mode mode : { Mode::Once, Mode::FromThenOn })
        {
            int failures = 0;
            for (long long k = 0;; k += k < c_all && isLong() ? 1 : 1 + k / 2)
            {
                auto solver = make();
                bool failed = false;
                if (!withFailure(k, mode, &failed, [&] { work(*solver); }))
                {
                    break;
                }
                failures += failed;
                if (failed)
                {
                    ASSERT_EQ(before(*solver), resultBefore) << what << ", allocation " << k;
                    work(*solver);
                }
                ASSERT_EQ(after(*solver), resultAfter) << what << ", allocation " << k;
            }
            if (Config::device == Device::Cpu)
            {
                EXPECT_GT(failures, 0) << what;
            }
            failures_ += failures;
        }
    }
    /*! \brief Lets each allocation of an evaluation fail.
     *  \param[in] before  the box whose results a solver still has after a failure
     *  \param[in] to      that of the evaluation */
    template<class Make>
    void everyAllocationOfEvaluate(const std::string& what,
                                   const Make& make,
                                   const BoxRows& before,
                                   const BoxRows& to)
    {
        std::vector<Real> f(many_.x.size());
        bool isUntouched      = true;
        const auto evaluation = [&](Solver<Real>& solver)
        {
            Totals totals;
            std::fill(f.begin(), f.end(), Real(42));
            try
            {
                evaluate(solver, many_, to, &f, &totals);
            }
            catch (...)
            {
                isUntouched = std::all_of(f.begin(), f.end(), [](Real v) { return v == 42; });
                throw;
            }
        };
        const auto resultBefore = [&](Solver<Real>& solver)
        {
            EXPECT_TRUE(isUntouched);
            return result(solver, many_, before);
        };
        const auto resultAfter = [&](Solver<Real>& solver) { return result(solver, many_, to); };
        everyAllocation(what, make, evaluation, resultBefore, resultAfter);
    }
    void TearDown() override
    {
        if (!IsSkipped())
        {
            EXPECT_GT(failures_, 0) << "no allocation has failed";
        }
    }

    Case<Real> many_ = Case<Real>(60);
    int failures_    = 0; //!< of everyAllocation(); on a GPU some calls need no memory
    BoxRows box_     = { { { 2, 0, 0 }, { 0, 2.1, 0 }, { 0, 0, 2.2 } } };
};
TYPED_TEST_SUITE_P(OutOfMemory);

TYPED_TEST_P(OutOfMemory, IsReportedByTheConstructor)
{
    for (const Mode mode : { Mode::Once, Mode::FromThenOn })
    {
        int failures = 0;
        for (long long k = 0;; k++)
        {
            bool failed = false;
            if (!withFailure(k,
                             mode,
                             &failed,
                             [&] { Solver<typename TypeParam::Real> solver(this->options()); }))
            {
                break;
            }
            failures += failed;
        }
        EXPECT_GT(failures, 0);
        this->failures_ += failures;
    }
}

//! The results of a solver whose charges, exclusions, cells or box fail to change.
TYPED_TEST_P(OutOfMemory, LeavesTheSolverAsItWas)
{
    using Real = typename TypeParam::Real;
    const Case<Real> other(40), uncharged(60, 0.5);
    const auto& many   = this->many_;
    const BoxRows& box = this->box_;
    BoxRows strained = box, larger = box;
    strained[0][0] *= 1.004;
    for (auto& row : larger)
    {
        for (double& entry : row)
        {
            entry *= 1.4;
        }
    }
    const auto resultsOf = [&](const Case<Real>& c, const BoxRows& b)
    { return [&](Solver<Real>& solver) { return this->result(solver, c, b); }; };
    const auto used = [&]
    {
        auto solver = this->loaded();
        this->result(*solver, many, box);
        return solver;
    };
    const auto unused = [&] { return this->loaded(); };

    // evaluations in the box of before, and in others
    this->everyAllocationOfEvaluate("evaluate, first", unused, box, box);
    this->everyAllocationOfEvaluate("evaluate", used, box, box);
    // operators that have followed a strain and back again have other last bits
    this->everyAllocationOfEvaluate("evaluate, strained box", used, strained, strained);
    this->everyAllocationOfEvaluate("evaluate, larger box", used, box, larger);
    this->everyAllocation(
            "setCharges",
            used,
            [&](Solver<Real>& solver) { this->setCharges(solver, other); },
            resultsOf(many, box),
            resultsOf(other, box));
    this->everyAllocation(
            "setCharges, some zero",
            used,
            [&](Solver<Real>& solver) { this->setCharges(solver, uncharged); },
            resultsOf(many, box),
            resultsOf(uncharged, box));
    Case<Real> chained = many;
    for (int& partner : chained.partners)
    {
        partner = (partner + 1) % many.n;
    }
    this->everyAllocation(
            "setExclusions",
            used,
            [&](Solver<Real>& solver) { this->setExclusions(solver, chained); },
            resultsOf(many, box),
            resultsOf(many, box));
    const std::vector<double> state = used()->state();
    this->everyAllocation(
            "restore",
            unused,
            [&](Solver<Real>& solver) { solver.restore(state); },
            resultsOf(many, box),
            resultsOf(many, box));
    this->everyAllocation(
            "setup and state",
            used,
            [&](Solver<Real>& solver)
            {
                solver.setup();
                solver.state();
                solver.timings();
            },
            resultsOf(many, box),
            resultsOf(many, box));
}

//! The same of what threads allocate: the set-up has them all. With one thread the rest is tested,
//! as there are hundreds of thousands of short parallel regions in it.
TYPED_TEST_P(OutOfMemory, OfSeveralThreadsLeavesTheSolverAsItWas)
{
    this->everyAllocationOfEvaluate(
            "evaluate, first", [this] { return this->loaded(2); }, this->box_, this->box_);
}

REGISTER_TYPED_TEST_SUITE_P(OutOfMemory,
                            IsReportedByTheConstructor,
                            LeavesTheSolverAsItWas,
                            OfSeveralThreadsLeavesTheSolverAsItWas);

} // namespace test
} // namespace farfield

#endif
