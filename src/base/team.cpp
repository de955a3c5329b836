/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "base/team.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <hwy/cache_control.h>
#include <omp.h>

namespace farfield
{
namespace
{

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
}

//! Whether a thread that waits for long may sleep: others do its work then.
enum class Patience
{
    Yields,
    Sleeps
};

/*! \brief Waits until a condition holds.
 *
 *  Whoever waits longer than he has worked lets others have the processor: perhaps it is the one that
 *  he waits for. Spinning costs no more than the work then.
 *  \param[in] worked  s */
template<class Condition>
void waitFor(double worked, Patience patience, const Condition& holds)
{
    constexpr double c_least   = 50e-6;
    constexpr double c_long    = 2e-3; // a message, or a long part of the calling thread
    constexpr unsigned c_spins = 32;   // between two looks at the clock
    constexpr std::chrono::microseconds c_nap(50);
    double begin   = -1;
    bool spins     = true;
    double waiting = 0;
    for (unsigned looks = 1; !holds(); looks++)
    {
        if (looks % c_spins == 0)
        {
            begin   = begin < 0 ? now() : begin;
            waiting = now() - begin;
            spins   = waiting < std::max(c_least, worked);
        }
        if (spins)
        {
            hwy::Pause();
        }
        else if (patience == Patience::Sleeps && waiting > c_long)
        {
            std::this_thread::sleep_for(c_nap);
        }
        else
        {
            std::this_thread::yield();
        }
    }
}

constexpr int c_endBits = 32;

} // namespace

bool Team::take(std::atomic<std::uint64_t>* share, int* task)
{
    const auto isFree = [](std::uint64_t s)
    { return static_cast<std::uint32_t>(s) < (s >> c_endBits); };
    if (!isFree(share->load(std::memory_order_relaxed)))
    {
        return false;
    }
    // Whatever loop it is by now: while a task of it is not done, it stays.
    const std::uint64_t taken = share->fetch_add(1, std::memory_order_acq_rel);
    *task                     = static_cast<int>(static_cast<std::uint32_t>(taken));
    return isFree(taken);
}

double Team::workOff(int thread)
{
    double worked  = 0;
    Member& own    = members_[thread];
    long long done = own.done.load(std::memory_order_relaxed);
    for (int next = 0; next < threads_; next++)
    {
        Member& from = members_[(thread + next) % threads_];
        double begin = -1;
        for (int k = 0, task = 0; k < c_loops; k++)
        {
            while (take(&from.share[k], &task))
            {
                const Loop& loop = loops_[k];
                begin            = begin < 0 ? now() : begin;
                failure_->run([&] { loop.work(task, thread); });
                const double end = now();
                own.atWork[loop.account] += end - begin;
                worked += end - begin;
                begin = end;
                done++;
            }
        }
        if (begin >= 0)
        {
            own.done.store(done, std::memory_order_release);
        }
    }
    return worked;
}

bool Team::isDone() const
{
    long long done = 0;
    for (const Member& member : members_)
    {
        done += member.done.load(std::memory_order_acquire);
    }
    return done == handedOut_;
}

void Team::serve(int thread)
{
    unsigned seen = atBegin_;
    double worked = 0;
    while (true)
    {
        unsigned signal = seen;
        waitFor(worked,
                Patience::Sleeps,
                [&] { return (signal = signal_.load(std::memory_order_acquire)) != seen; });
        if (signal % 2 != 0)
        {
            return;
        }
        seen   = signal;
        worked = workOff(thread);
    }
}

void Team::together(const std::function<void()>& work)
{
    if (isTogether_)
    {
        work();
        return;
    }
    FirstException failure;
    atBegin_    = signal_.load(std::memory_order_relaxed);
    isTogether_ = true;
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
        const int thread = omp_get_thread_num();
        if (thread == 0)
        {
            came_ = omp_get_num_threads();
            failure.run(work);
            signal_.fetch_add(1, std::memory_order_release);
        }
        else
        {
            serve(thread);
        }
    }
    signal_.fetch_add(1, std::memory_order_relaxed);
    isTogether_ = false;
    loopsAdded_ = 0; // what a failure has left
    failure.rethrow();
}

void Team::add(int tasks, Work work)
{
    if (tasks <= 0)
    {
        return;
    }
    if (loopsAdded_ == c_loops)
    {
        run();
    }
    loops_[loopsAdded_++] = { std::move(work), tasks, account_ };
}

void Team::addRanges(int n, int grain, RangeWork work)
{
    const int tasks = std::min(pieces(threads_), (n + grain - 1) / std::max(1, grain));
    add(tasks,
        [n, tasks, work = std::move(work)](int task, int /*thread*/)
        {
            const auto begin = [&](int t)
            { return static_cast<int>(static_cast<long long>(n) * t / tasks); };
            work(begin(task), begin(task + 1));
        });
}

void Team::run()
{
    if (loopsAdded_ == 0)
    {
        return;
    }
    if (!isTogether_)
    {
        together([this] { run(); });
        return;
    }
    const double begin = now();
    FirstException failure;
    failure_ = &failure;
    for (int k = 0; k < loopsAdded_; k++)
    {
        handedOut_ += loops_[k].tasks;
    }
    for (int t = 0; t < threads_; t++)
    {
        for (int k = 0; k < loopsAdded_; k++)
        {
            const auto from = [&](int thread)
            { return static_cast<std::uint64_t>(loops_[k].tasks) * thread / threads_; };
            members_[t].share[k].store(from(t + 1) << c_endBits | from(t),
                                       std::memory_order_release);
        }
    }
    signal_.fetch_add(2, std::memory_order_release);
    waitFor(workOff(0), Patience::Yields, [&] { return isDone(); });
    loopsAdded_ = 0;
    running_ += now() - begin;
    failure.rethrow();
}

double Team::secondsAtWork(int account) const
{
    double sum = 0;
    for (const Member& member : members_)
    {
        sum += member.atWork[account];
    }
    return sum;
}

void Team::clearTimes()
{
    running_ = 0;
    for (Member& member : members_)
    {
        member.atWork.fill(0);
    }
}

} // namespace farfield
