/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Ranks that are threads of one process, and a system divided among them.
 */
#ifndef FARFIELD_TESTS_IN_PROCESS_RANKS_H
#define FARFIELD_TESTS_IN_PROCESS_RANKS_H

#include <cmath>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "farfield/farfield_parallel.h"

#include "solver_input.h"

namespace farfield
{
namespace test
{

//! Where the threads of a run meet.
class Meeting
{
public:
    explicit Meeting(int ranks) : buffers_(ranks), ranks_(ranks) {}

    //! What a rank sends while all are in exchange().
    struct Buffer
    {
        const char* send;
        const size_t* offsets;
    };
    Buffer& buffer(int rank) { return buffers_[rank]; }
    //! Waits for all ranks; throws if one of them will not come.
    void wait()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        const long long round = round_;
        if (++waiting_ == ranks_)
        {
            waiting_ = 0;
            round_++;
            all_.notify_all();
        }
        all_.wait(lock, [&] { return round_ != round || isOver_; });
        if (round_ == round)
        {
            throw std::runtime_error("a rank waits for another that has ended");
        }
    }
    //! This rank will come no more.
    void end()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        isOver_ = true;
        all_.notify_all();
    }

private:
    std::vector<Buffer> buffers_;
    int ranks_, waiting_ = 0;
    long long round_ = 0;
    bool isOver_     = false;
    std::mutex mutex_;
    std::condition_variable all_;
};

//! One of the threads.
class ThreadRank final : public Communicator
{
public:
    ThreadRank(Meeting* meeting, int rank, int ranks) :
        meeting_(*meeting), rank_(rank), size_(ranks)
    {
    }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    void exchange(const char* send,
                  const size_t* sendOffsets,
                  char* receive,
                  const size_t* receiveOffsets) override
    {
        meeting_.buffer(rank_) = { send, sendOffsets };
        meeting_.wait();
        for (int r = 0; r < size_; r++)
        {
            const Meeting::Buffer& from = meeting_.buffer(r);
            const size_t bytes          = from.offsets[rank_ + 1] - from.offsets[rank_];
            if (bytes != receiveOffsets[r + 1] - receiveOffsets[r])
            {
                throw std::runtime_error("ranks do not agree on the size of a message");
            }
            std::copy_n(from.send + from.offsets[rank_], bytes, receive + receiveOffsets[r]);
        }
        meeting_.wait();
    }

private:
    Meeting& meeting_;
    int rank_, size_;
};

/*! \brief Runs work(communicator) on so many ranks; rethrows what the first of them has thrown.
 *
 *  One that waits for another that has ended throws instead of waiting for ever. */
inline void onRanks(int ranks, const std::function<void(Communicator&)>& work)
{
    Meeting meeting(ranks);
    std::vector<std::exception_ptr> failures;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; r++)
    {
        threads.emplace_back(
                [&, r]
                {
                    try
                    {
                        ThreadRank own(&meeting, r, ranks);
                        work(own);
                    }
                    catch (...)
                    {
                        const std::lock_guard<std::mutex> lock(mutex);
                        failures.push_back(std::current_exception());
                    }
                    meeting.end();
                });
    }
    for (auto& thread : threads)
    {
        thread.join();
    }
    if (!failures.empty())
    {
        std::rethrow_exception(failures.front());
    }
}

//! Systems that move: those of a run at its steps.
inline std::vector<System> trajectory(const System& start, int steps, double reach)
{
    std::vector<System> states = { start };
    for (int step = 1; step < steps; step++)
    {
        states.push_back(states[0]);
        for (int i = 0; i < start.size(); i++)
        {
            for (int k = 0; k < 3; k++)
            {
                states.back().positions[i][k] += reach * std::sin(0.7 * step + 0.01 * i + k);
            }
        }
    }
    return states;
}

//! A water film, or a droplet, in vacuum. \param[in] room  edges of the box over those that are filled
inline System inVacuum(const Matrix& filled, const Vector& room)
{
    System system = pseudoWater(filled, 5);
    for (int k = 0; k < 3; k++)
    {
        system.box[k][k] *= room[k];
    }
    return system;
}

//! Which rank has each particle.
using Division = std::vector<int>;

//! Domains: so many bricks along each box vector; neighbours along the last one have ranks that follow.
inline Division bricks(const System& system, const std::array<int, 3>& parts)
{
    Division rankOf;
    for (const Vector& x : system.positions)
    {
        // rows of the box, of which those after k do not reach back to component k
        Vector s = {};
        for (int k = 2; k >= 0; k--)
        {
            double left = x[k];
            for (int later = k + 1; later < 3; later++)
            {
                left -= s[later] * system.box[later][k];
            }
            s[k] = left / system.box[k][k];
        }
        int rank = 0;
        for (int k = 0; k < 3; k++)
        {
            const auto part = static_cast<int>(parts[k] * (s[k] - std::floor(s[k])));
            rank            = rank * parts[k] + std::min(parts[k] - 1, part);
        }
        rankOf.push_back(rank);
    }
    return rankOf;
}

//! Domains: slabs along the second box vector, then along the third in each of them.
inline Division domains(const System& system, int ranks)
{
    const int across = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
    return bricks(system, { 1, ranks / across, across });
}

//! The particles of one rank.
template<class Real>
struct Portion
{
    std::vector<int> index;
    //! Of the whole system.
    std::vector<Real> charges;
    std::vector<int> offsets, partners;

    //! \param[in] rankOf  of each particle of the system
    Portion(const System& system, const std::vector<int>& rankOf, int rank) :
        charges(system.charges.begin(), system.charges.end())
    {
        compressedRows(system, true, &offsets, &partners);
        for (int i = 0; i < system.size(); i++)
        {
            if (rankOf[i] == rank)
            {
                index.push_back(i);
            }
        }
    }
    //! Tells the solver of the system, too.
    void giveTo(DistributedSolver<Real>* solver) const
    {
        giveSystemTo(solver);
        giveLocalTo(solver);
    }
    void giveSystemTo(DistributedSolver<Real>* solver) const
    {
        SystemOfRanks<Real> all;
        all.count             = static_cast<int>(charges.size());
        all.charges           = charges.data();
        all.exclusionOffsets  = offsets.data();
        all.exclusionPartners = partners.data();
        solver->setSystem(all);
    }
    void giveLocalTo(DistributedSolver<Real>* solver) const
    {
        solver->setLocal(index.data(), static_cast<int>(index.size()));
    }
    //! Of the system's positions, [particles][3].
    std::vector<Real> positions(const System& system) const
    {
        std::vector<Real> x;
        for (const int i : index)
        {
            for (const double component : system.positions[i])
            {
                x.push_back(static_cast<Real>(component));
            }
        }
        return x;
    }
};

} // namespace test
} // namespace farfield

#endif
