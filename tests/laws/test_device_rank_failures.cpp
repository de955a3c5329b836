/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A rank that fails in an evaluation on GPUs that send each other messages by themselves: that is
 *         an Error of all, no GPU waits for ever, and the solver goes on.
 */
#include "farfield/farfield_cuda.h"

#include <cmath>

#include <functional>
#include <memory>
#include <vector>

#include "device_caller.h"
#include "device_messages.h"
#include "in_process_ranks.h"

namespace farfield
{
namespace test
{
namespace
{

//! Passes messages on, but for one that fails before it is sent; a repetition of it does not.
class FailingMessages final : public DeviceCommunicator
{
public:
    explicit FailingMessages(DeviceCommunicator* passOn) : passOn_(*passOn) {}
    //! \param[in] exchange  that fails, of those to come
    void failAt(int exchange) { left_ = exchange; }
    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        if (left_-- == 0)
        {
            throw Error(ErrorCode::OutOfMemory, "made up: no memory for a message");
        }
        passOn_.exchange(send, sent, receive, received, stream);
    }
    bool mayBeCaptured() const override { return false; } // every evaluation comes to exchange()
    void reserve(size_t bytes) override { passOn_.reserve(bytes); }

private:
    DeviceCommunicator& passOn_;
    int left_ = -1;
};

constexpr int c_ranks = 2, c_poor = 1;

//! Nothing is left to choose.
Options withCells()
{
    Options options      = GpuFloat::options();
    options.reproducible = true;
    options.threads      = 1;
    options.m2l          = M2lEngine::Fft;
    options.order        = 4;
    options.directRange  = 1;
    options.cellSize     = 0.5;
    return options;
}

System water()
{
    return rounded<float>(pseudoWater(namedBox("cube", 4.0), 47));
}

//! A rank with its half of the water, and messages of which one may fail.
class FailingRank
{
public:
    FailingRank(Way way, Communicator* host) :
        isPoor_(host->rank() == c_poor), system_(water()), box_(system_.box),
        portion_(system_, domains(system_, c_ranks), host->rank()), between_(connected(way, host)),
        through_(host), messages_(between_ ? between_.get() : &through_),
        solver_(optionsOf(way, host), host, &messages_), x_(3 * portion_.index.size()),
        f_(3 * portion_.index.size())
    {
        portion_.giveSystemTo(&solver_);
        tellLocal();
        x_.put(portion_.positions(system_));
    }
    bool isPoor() const { return isPoor_; }
    void tellLocal() { portion_.giveLocalTo(&solver_); }
    void prepare() { solver_.prepare(portion_.positions(system_).data(), box_.rows); }
    //! One of the next two exchanges, if this rank is the one that fails.
    void failAt(int exchange) { messages_.failAt(isPoor_ ? exchange : -1); }

    void evaluate(std::vector<float>* forces)
    {
        solver_.evaluate(portion_.positions(system_).data(), box_.rows, forces->data(), request());
    }
    //! In a box without a volume: on all ranks an error before anything is sent.
    void evaluateInNoBox()
    {
        const double none[3][3]   = {};
        std::vector<float> forces = filled();
        expectError(ErrorCode::InvalidArgument,
                    { "box vectors" },
                    [&] {
                        solver_.evaluate(
                                portion_.positions(system_).data(), none, forces.data(), request());
                    });
        EXPECT_EQ(forces, filled());
    }
    //! Of the particles on the device the first is by so many cells from where it was.
    void moveFirst(double cells)
    {
        std::vector<float> x = portion_.positions(system_);
        x[1] += static_cast<float>(cells * solver_.setup().cellSize);
        x_.put(x);
    }
    //! The same on device arrays, with energies, so that no evaluation is like the one before.
    void enqueue() { enqueue(box_.rows, request()); }
    void enqueue(const double box[3][3], const Request& request)
    {
        farfield::enqueue(solver_, x_.data(), box, f_.data(), request, clock_.stream());
    }
    //! From here on the box is another one, for which operators are built anew.
    void shear() { box_.rows[1][0] = 0.1; }
    //! With something that is wrong.
    void enqueueWrong(bool isBox)
    {
        const double none[3][3] = {};
        Request wrong           = request();
        wrong.gridOffset[0]     = isBox ? 0 : 2;
        expectError(ErrorCode::InvalidArgument,
                    { isBox ? "box vectors" : "grid offset" },
                    [&] { enqueue(isBox ? none : box_.rows, wrong); });
    }
    void wait()
    {
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
        farfield::wait(solver_);
    }
    std::vector<float> onDevice() { return f_.get(); }
    std::vector<float> filled() const { return std::vector<float>(3 * portion_.index.size(), 42); }

private:
    static Options optionsOf(Way way, Communicator* host)
    {
        Options options  = withCells();
        options.deviceId = way == Way::Hosts ? -1 : host->rank();
        return options;
    }
    static Request request()
    {
        Request request;
        request.replaceForces = true;
        return request;
    }
    bool isPoor_;
    System system_;
    Box box_;
    Portion<float> portion_;
    std::unique_ptr<DeviceCommunicator> between_;
    ThroughHosts through_;
    FailingMessages messages_;
    DistributedSolver<float> solver_;
    const Clock clock_;
    DeviceArray<float> x_, f_;
};

void expectLike(const std::vector<float>& forces, const std::vector<float>& right)
{
    EXPECT_LT(relativeError(vectorsOf(forces), vectorsOf(right)), 1e-5);
}

//! Does work(rank, exchange that is to fail) with messages of every kind that there is here.
void onFailingRanks(const std::function<void(FailingRank*, int)>& work)
{
    std::vector<Way> ways = { Way::Hosts };
    if (gpus() >= c_ranks)
    {
        ways.push_back(Way::Peers);
#ifdef FARFIELD_TESTS_WITH_NCCL
        ways.push_back(Way::Nccl);
#endif
    }
    for (const Way way : ways)
    {
        for (const int exchange : { 0, 1 })
        {
            SCOPED_TRACE("way " + std::to_string(static_cast<int>(way)) + ", exchange "
                         + std::to_string(exchange));
            const auto run = [&](Communicator& communicator)
            {
                FailingRank rank(way, &communicator);
                work(&rank, exchange);
            };
            EXPECT_NO_THROW(onRanks(c_ranks, run));
        }
    }
}

class DeviceRankFailures : public ::testing::Test
{
protected:
    void SetUp() override
    {
        if (gpus() == 0)
        {
            GTEST_SKIP() << "there is no GPU";
        }
    }
};

//! In the first evaluation of a plan, and in a later one.
TEST_F(DeviceRankFailures, OnHostArraysAreErrorsOfAll)
{
    onFailingRanks(
            [](FailingRank* rank, int exchange)
            {
                std::vector<float> right = rank->filled();
                rank->evaluate(&right);
                for (const bool isFirst : { true, false })
                {
                    if (isFirst)
                    {
                        rank->tellLocal();
                        rank->prepare();
                    }
                    std::vector<float> forces = rank->filled();
                    rank->failAt(exchange);
                    expectError(ErrorCode::OutOfMemory,
                                { "made up" },
                                [&] { rank->evaluate(&forces); });
                    EXPECT_EQ(forces, rank->filled());
                    rank->evaluate(&forces);
                    expectLike(forces, right);
                }
            });
}

TEST_F(DeviceRankFailures, InTheFirstEvaluationOnDeviceArraysAreErrorsOfAll)
{
    onFailingRanks(
            [](FailingRank* rank, int exchange)
            {
                std::vector<float> right = rank->filled();
                rank->evaluate(&right);
                for (const bool isPrepared : { true, false })
                {
                    rank->tellLocal();
                    if (isPrepared)
                    {
                        rank->prepare();
                    }
                    rank->failAt(exchange);
                    expectError(ErrorCode::OutOfMemory, { "made up" }, [&] { rank->enqueue(); });
                    rank->enqueue();
                    rank->wait();
                    expectLike(rank->onDevice(), right);
                }
            });
}

//! Hosts do not wait for each other there: the other rank hears of it from its GPU.
TEST_F(DeviceRankFailures, InLaterEvaluationsOnDeviceArraysReachTheOthersByTheirGpus)
{
    onFailingRanks(
            [](FailingRank* rank, int exchange)
            {
                std::vector<float> right = rank->filled();
                rank->evaluate(&right);
                for (const bool isWrongNext : { false, true })
                {
                    SCOPED_TRACE(isWrongNext);
                    rank->enqueue();
                    rank->wait();
                    rank->failAt(exchange);
                    if (rank->isPoor())
                    {
                        expectError(
                                ErrorCode::OutOfMemory, { "made up" }, [&] { rank->enqueue(); });
                        expectError(ErrorCode::DeviceFailure,
                                    { "the other ranks do not know" },
                                    [&] { rank->enqueue(); });
                    }
                    else
                    {
                        EXPECT_NO_THROW(rank->enqueue());
                    }
                    if (isWrongNext)
                    {
                        rank->evaluateInNoBox(); // an error of its own
                    }
                    if (!rank->isPoor())
                    {
                        expectError(ErrorCode::DeviceFailure,
                                    { "Another rank has failed", "setLocal()" },
                                    [&] { rank->wait(); });
                        for (const float component : rank->onDevice())
                        {
                            EXPECT_TRUE(std::isnan(component));
                        }
                    }
                    rank->tellLocal();
                    rank->enqueue();
                    rank->wait();
                    expectLike(rank->onDevice(), right);
                }
            });
}

//! What is wrong on one rank alone is found before it sends anything.
TEST_F(DeviceRankFailures, BeforeTheirMessagesReachTheOthersByTheirGpus)
{
    onFailingRanks(
            [](FailingRank* rank, int which)
            {
                std::vector<float> right = rank->filled();
                rank->evaluate(&right);
                rank->enqueue();
                rank->wait();
                if (rank->isPoor())
                {
                    rank->enqueueWrong(which == 0);
                }
                else
                {
                    rank->enqueue();
                    expectError(ErrorCode::DeviceFailure,
                                { "Another rank has failed", "setLocal()" },
                                [&] { rank->wait(); });
                    EXPECT_TRUE(std::isnan(rank->onDevice().front()));
                }
                rank->tellLocal();
                rank->enqueue();
                rank->wait();
                expectLike(rank->onDevice(), right);
            });
}

//! There all build operators and meet after it: it is an error of all, whatever the others did.
TEST_F(DeviceRankFailures, WhereTheBoxNeedsOtherOperatorsAreErrorsOfAll)
{
    onFailingRanks(
            [](FailingRank* rank, int /*exchange*/)
            {
                rank->enqueue();
                rank->wait();
                rank->shear();
                if (rank->isPoor())
                {
                    rank->enqueueWrong(false);
                }
                else
                {
                    expectError(ErrorCode::InvalidArgument,
                                { "grid offset" },
                                [&] { rank->enqueue(); });
                }
                rank->enqueue();
                rank->wait();
                for (const float component : rank->onDevice())
                {
                    EXPECT_TRUE(std::isfinite(component));
                }
            });
}

//! What an evaluation has to report is not lost where the next call fails of something else.
TEST_F(DeviceRankFailures, DoNotSwallowThatParticlesHaveMovedTooFar)
{
    onFailingRanks(
            [](FailingRank* rank, int /*exchange*/)
            {
                std::vector<float> right = rank->filled();
                rank->evaluate(&right);
                rank->enqueue();
                rank->wait();
                rank->moveFirst(1.1);
                rank->enqueue();
                rank->evaluateInNoBox();
                expectError(ErrorCode::InvalidArgument,
                            { "most of a cell", "setLocal()" },
                            [&] { rank->wait(); });
                rank->moveFirst(0);
                rank->tellLocal();
                rank->enqueue();
                rank->wait();
                expectLike(rank->onDevice(), right);
            });
}

} // namespace
} // namespace test
} // namespace farfield
