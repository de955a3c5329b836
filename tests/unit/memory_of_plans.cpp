/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory that runs out while exchanges between ranks are planned; in the program of
 *         laws/out_of_memory.cpp.
 */
#include <cstring>

#include "evaluation/memory_errors.h"
#include "failing_allocations.h"
#include "in_process_ranks.h"
#include "parallel/partition.h"

namespace farfield
{
namespace test
{
namespace
{

//! The first of two ranks, of which the other has nothing and wants nothing.
class WithSilentOther final : public Communicator
{
public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    void exchange(const char* send,
                  const size_t* sendOffsets,
                  char* receive,
                  const size_t* receiveOffsets) override
    {
        std::memset(receive, 0, receiveOffsets[2]);
        std::copy(send + sendOffsets[0], send + sendOffsets[1], receive + receiveOffsets[0]);
    }
};

//! With more threads than one an exception has to leave a parallel region.
TEST(OutOfMemoryOfRanks, PlansReportIt)
{
    constexpr int c_count = 40, c_threads = 2;
    WithSilentOther communicator;
    Ranks ranks(&communicator);
    Discretisation d;
    const Mat3 box = 3 * Mat3::Identity();
    d.leafCells    = { { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } } };
    d.referenceBox = box;
    // each has a partner that is nowhere
    OwnParticles<double> own;
    std::vector<double> x;
    own.excluded.offsets = { 0 };
    for (int i = 0; i < c_count; i++)
    {
        own.index.push_back(i);
        own.charges.push_back(1);
        own.excluded.partners.push_back(c_count + i);
        own.excluded.offsets.push_back(i + 1);
        x.insert(x.end(), { 0.07 * i, 0.05 * i, 0.03 * i });
    }
    int failures    = 0;
    bool failed     = false;
    const auto plan = [&]
    {
        Partition<double> partition(&ranks, 0.35, c_threads);
        ASSERT_EQ(partition.locate(own, x.data(), d, box), -1);
        try
        {
            partition.plan(own);
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::InvalidArgument) // partners were not found
            {
                throw;
            }
        }
    };
    plan(); // starts the threads
    const auto reported = [&] { withMemoryErrors(plan); };
    for (long long k = 0; withFailure(k, Mode::Once, &failed, reported); k++)
    {
        failures += failed ? 1 : 0;
    }
    EXPECT_GT(failures, 10);
}

//! Of two ranks, which have half of the particles each.
class HalfOfSystem
{
public:
    HalfOfSystem(M2lEngine engine, Communicator* communicator) :
        isSecond_(communicator->rank() == 1), system_(60), solver_(options(engine), communicator)
    {
        for (int i = isSecond_ ? 1 : 0; i < system_.n; i += 2)
        {
            index_.push_back(i);
            x_.insert(x_.end(), system_.x.begin() + 3 * i, system_.x.begin() + 3 * i + 3);
        }
    }
    void tellSystem()
    {
        solver_.setSystem(
                { system_.n, system_.q.data(), system_.offsets.data(), system_.partners.data() });
    }
    void tellLocal() { solver_.setLocal(index_.data(), static_cast<int>(index_.size())); }
    //! Forces are added to.
    void evaluate()
    {
        const double box[3][3] = { { 2, 0, 0 }, { 0, 2.1, 0 }, { 0, 0, 2.2 } };
        Request request;
        request.replaceForces = true;
        solver_.evaluate(x_.data(), box, forces.data(), request);
    }
    std::vector<double> forces = std::vector<double>(90, 42);

private:
    static Options options(M2lEngine engine)
    {
        Options options;
        options.device       = Device::Cpu;
        options.threads      = 1;
        options.order        = 1;
        options.directRange  = 1;
        options.accuracy     = 1e-2;
        options.m2l          = engine;
        options.cellSize     = 0.7;
        options.leastSquares = false;
        return options;
    }
    bool isSecond_;
    Case<double> system_;
    DistributedSolver<double> solver_;
    std::vector<int> index_;
    std::vector<double> x_;
};

/*! \brief Two ranks, of which one lacks memory for its k-th allocation in a call: both throw, or
 *         neither does, and forces are untouched then; and both can go on.
 *  \param[in] before, work  (HalfOfSystem*) */
template<class Before, class Work>
void expectErrorsOfBoth(M2lEngine engine, const Before& before, const Work& work)
{
    using Forces = std::array<std::vector<double>, 2>;
    Forces right;
    onRanks(2,
            [&](Communicator& communicator)
            {
                HalfOfSystem half(engine, &communicator);
                half.tellSystem();
                half.tellLocal();
                half.evaluate();
                right[communicator.rank()] = half.forces;
            });
    for (const int poor : { 0, 1 })
    {
        std::atomic<int> failures{ 0 };
        std::atomic<bool> isOver{ false };
        for (long long k = 0; !isOver; k += isLong() ? 1 : 1 + k / 3)
        {
            SCOPED_TRACE("allocation " + std::to_string(k) + " of rank " + std::to_string(poor));
            std::array<std::atomic<bool>, 2> failed{};
            Forces forces;
            const auto run = [&](Communicator& communicator)
            {
                const int me = communicator.rank();
                HalfOfSystem half(engine, &communicator);
                before(&half);
                isTrueOnAll(&communicator, true);
                bool hasFailed = false;
                if (me == poor)
                {
                    isOver = !withFailure(k, Mode::Once, &hasFailed, [&] { work(&half); });
                }
                else
                {
                    t_isSpared = true; // and stays so, as the other may still be at work
                    try
                    {
                        work(&half);
                    }
                    catch (const Error& error)
                    {
                        hasFailed = true;
                        EXPECT_EQ(error.code(), ErrorCode::OutOfMemory) << error.what();
                    }
                }
                failed[me] = hasFailed;
                failures += hasFailed ? 1 : 0;
                if (hasFailed)
                {
                    EXPECT_EQ(half.forces, std::vector<double>(90, 42));
                }
                half.tellSystem();
                half.tellLocal();
                half.evaluate();
                forces[me] = half.forces;
            };
            ASSERT_NO_THROW(onRanks(2, run));
            EXPECT_EQ(failed[0], failed[1]);
            EXPECT_EQ(forces, right);
        }
        EXPECT_GT(failures, 0);
    }
}

class OutOfMemoryOfOneRank : public ::testing::TestWithParam<M2lEngine>
{
};

TEST_P(OutOfMemoryOfOneRank, IsAnErrorOfAllInEveryCall)
{
    const auto nothing = [](HalfOfSystem* /*half*/) {};
    const auto system  = [](HalfOfSystem* half) { half->tellSystem(); };
    const auto local   = [](HalfOfSystem* half)
    {
        half->tellSystem();
        half->tellLocal();
    };
    const auto evaluated = [&](HalfOfSystem* half)
    {
        local(half);
        half->evaluate();
        half->forces.assign(90, 42);
    };
    const auto evaluate = [](HalfOfSystem* half) { half->evaluate(); };
    expectErrorsOfBoth(GetParam(), evaluated, evaluate);
    if (GetParam() == M2lEngine::Fft) // what comes before knows no engines
    {
        expectErrorsOfBoth(GetParam(), nothing, system);
        expectErrorsOfBoth(GetParam(), system, [](HalfOfSystem* half) { half->tellLocal(); });
        expectErrorsOfBoth(GetParam(), local, evaluate);
    }
}
INSTANTIATE_TEST_SUITE_P(Engines,
                         OutOfMemoryOfOneRank,
                         ::testing::Values(M2lEngine::Fft, M2lEngine::Hierarchy));

} // namespace
} // namespace test
} // namespace farfield
