/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A rank that fails in the midst of an evaluation whose messages pass between devices: all ranks throw
 *         what it throws, and no device waits for ever. Devices are made up here.
 */
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "in_process_ranks.h"
#include "parallel/awaited_messages.h"
#include "solver/agreement.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_ranks = 3, c_poor = 1;

//! How many messages have come from each rank to each device.
class Mailboxes
{
public:
    void put(int from, int to)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        arrived_[from][to]++;
        any_.notify_all();
    }
    //! Waits for so many messages of each other rank. \throws std::runtime_error  they do not come
    void await(int messages, int to)
    {
        const auto haveCome = [&]
        {
            for (int from = 0; from < c_ranks; from++)
            {
                if (from != to && arrived_[from][to] < messages)
                {
                    return false;
                }
            }
            return true;
        };
        std::unique_lock<std::mutex> lock(mutex_);
        if (!any_.wait_for(lock, std::chrono::seconds(5), haveCome))
        {
            throw std::runtime_error("a device waits for ever");
        }
    }

private:
    int arrived_[c_ranks][c_ranks] = {};
    std::mutex mutex_;
    std::condition_variable any_;
};

//! The device of a rank: messages are sent at once, and others awaited where the host waits for it.
class MadeUpDevice final : public DeviceCommunicator
{
public:
    MadeUpDevice(int rank, Mailboxes* mailboxes) : rank_(rank), mailboxes_(*mailboxes) {}
    void exchange(const void* /*send*/,
                  const Stretch* /*sent*/,
                  void* /*receive*/,
                  const Stretch* /*received*/,
                  void* /*stream*/) override
    {
        for (int r = 0; r < c_ranks; r++)
        {
            mailboxes_.put(rank_, r);
        }
        exchanges_++;
    }
    bool mayBeCaptured() const override { return true; }
    void synchronize() { mailboxes_.await(exchanges_, rank_); }

private:
    int rank_, exchanges_ = 0;
    Mailboxes& mailboxes_;
};

//! Places of an evaluation in which a rank may fail.
enum class Place
{
    AtTheBegin,
    AfterMeeting,
    BetweenMessages,
    AfterMessages,
    AtTheEnd,
    Nowhere
};

//! A rank with its device.
class MadeUpRank
{
public:
    MadeUpRank(Communicator* host, Mailboxes* mailboxes) :
        ranks_(host), device_(host->rank(), mailboxes), messages_(&device_)
    {
    }
    //! \param[in] isFirst  hosts meet before the first message, and tell of failures
    void evaluate(Place failing, bool isFirst)
    {
        const auto stages = [&]
        {
            try
            {
                runStages(failing);
            }
            catch (...)
            {
                while (messages_.awaited() > 0)
                {
                    exchange();
                }
                throw;
            }
        };
        isFirst ? together(&ranks_, stages) : stages();
    }
    void synchronize() { device_.synchronize(); }

private:
    void runStages(Place failing)
    {
        const auto mayFail = [&](Place place)
        {
            if (place == failing && ranks_.rank() == c_poor)
            {
                throw Error(ErrorCode::OutOfMemory,
                            "no memory in " + std::to_string(static_cast<int>(place)));
            }
        };
        mayFail(Place::AtTheBegin);
        ranks_.confirm();
        messages_.expect(2);
        mayFail(Place::AfterMeeting);
        exchange();
        device_.synchronize();
        mayFail(Place::BetweenMessages);
        exchange();
        mayFail(Place::AfterMessages);
        device_.synchronize();
        ranks_.confirm();
        mayFail(Place::AtTheEnd);
    }
    void exchange() { messages_.exchange(nullptr, nullptr, nullptr, nullptr, nullptr); }

    Ranks ranks_;
    MadeUpDevice device_;
    AwaitedMessages messages_;
};

//! What work() throws, "" if nothing.
template<class Work>
std::string errorOf(const Work& work)
{
    try
    {
        work();
    }
    catch (const Error& error)
    {
        return error.what();
    }
    return "";
}

TEST(RankFailures, InAnEvaluationThatHostsMeetInAreErrorsOfAll)
{
    for (int place = 0; place <= static_cast<int>(Place::AtTheEnd); place++)
    {
        SCOPED_TRACE(place);
        Mailboxes mailboxes;
        const auto run = [&](Communicator& communicator)
        {
            MadeUpRank rank(&communicator, &mailboxes);
            EXPECT_EQ(errorOf([&] { rank.evaluate(static_cast<Place>(place), true); }),
                      "no memory in " + std::to_string(place));
            rank.synchronize(); // devices have come to their end
            EXPECT_EQ(errorOf([&] { rank.evaluate(Place::Nowhere, true); }), "");
        };
        EXPECT_NO_THROW(onRanks(c_ranks, run));
    }
}

//! Where hosts do not meet only the rank that has failed throws, and devices come to their end.
TEST(RankFailures, AmongMessagesLetNoDeviceWait)
{
    for (const Place place : { Place::AfterMeeting, Place::BetweenMessages, Place::AfterMessages })
    {
        SCOPED_TRACE(static_cast<int>(place));
        Mailboxes mailboxes;
        const auto run = [&](Communicator& communicator)
        {
            MadeUpRank rank(&communicator, &mailboxes);
            rank.evaluate(Place::Nowhere, true);
            const std::string error = errorOf([&] { rank.evaluate(place, false); });
            EXPECT_EQ(error.empty(), communicator.rank() != c_poor) << error;
            rank.synchronize();
            EXPECT_EQ(errorOf([&] { rank.evaluate(Place::Nowhere, true); }), "");
        };
        EXPECT_NO_THROW(onRanks(c_ranks, run));
    }
}

//! It sends no byte, as nobody would come to take it; what is done together later is watched as before.
TEST(RankFailures, ThatAreSilentAreThoseOfOneRank)
{
    const auto run = [&](Communicator& communicator)
    {
        Ranks ranks(&communicator);
        const auto failSilently = [&]
        {
            ranks.failSilently();
            throw Error(ErrorCode::DeviceFailure, "silence");
        };
        if (communicator.rank() == c_poor)
        {
            EXPECT_EQ(errorOf([&] { together(&ranks, failSilently); }), "silence");
        }
        EXPECT_FALSE(ranks.isWatched());
        const auto fail = [&]
        {
            if (communicator.rank() == c_poor)
            {
                throw Error(ErrorCode::DeviceFailure, "aloud");
            }
        };
        EXPECT_EQ(errorOf([&] { together(&ranks, fail); }), "aloud");
    };
    EXPECT_NO_THROW(onRanks(c_ranks, run));
}

} // namespace
} // namespace test
} // namespace farfield
