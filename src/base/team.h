/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief OpenMP threads that stay together for a whole evaluation.
 *
 *  A parallel region for each loop costs two barriers, and at each of them all threads wait for the
 *  last. Here one region holds an evaluation. The caller's thread runs the program and hands out
 *  loops; the others wait for them. A thread begins with its own share of the tasks, the same in every
 *  evaluation, and then takes tasks from the shares of others. The caller's thread waits for tasks, not
 *  for threads: one that the system has put aside keeps nobody waiting if it has begun nothing. Whoever
 *  waits for long lets others have the processor.
 */
#ifndef FARFIELD_BASE_TEAM_H
#define FARFIELD_BASE_TEAM_H

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/threads.h"

namespace farfield
{

/*! \brief Loops over tasks for a team of threads.
 *
 *  Results may depend on the tasks, but not on who does which: the team may be smaller than asked. */
class Team
{
public:
    //! Called with a task and with the number of the thread that does it, below threads().
    using Work = std::function<void(int task, int thread)>;
    //! Called with the elements [begin, end).
    using RangeWork = std::function<void(int begin, int end)>;

    //! \param[in] threads  OpenMP threads; all are asked for, see forTasks()
    explicit Team(int threads) : threads_(threads), members_(threads) {}
    Team(const Team&)            = delete;
    Team& operator=(const Team&) = delete;

    int threads() const { return threads_; }
    //! Into so many pieces a loop is best cut: some more than threads, for those who are late.
    static int pieces(int threads) { return threads == 1 ? 1 : 4 * threads; }
    //! Threads of the last region: OpenMP may give fewer.
    int came() const { return came_; }

    //! Calls work() in one parallel region, to which the loops of the work belong.
    void together(const std::function<void()>& work);

    //! Work for all tasks, each once, to be done by the next run(), together with what else was added:
    //! none of it may depend on the rest.
    void add(int tasks, Work work);
    //! The same for ranges of [0, n), of about \p grain elements or larger.
    void addRanges(int n, int grain, RangeWork work);
    //! Does what was added. \throws what the work throws first
    void run();
    void forTasks(int tasks, Work work)
    {
        add(tasks, std::move(work));
        run();
    }
    void forRanges(int n, int grain, RangeWork work)
    {
        addRanges(n, grain, std::move(work));
        run();
    }

    //! \name Times
    //!@{
    static constexpr int c_accounts = 16;
    //! Where the time of what is added from now on counts.
    void setAccount(int account) { account_ = account; }
    //! Seconds in run() since clearTimes(), of the caller's thread.
    double secondsRunning() const { return running_; }
    //! Seconds that the threads have spent with work of an account since clearTimes(), all together.
    double secondsAtWork(int account) const;
    void clearTimes();
    //!@}

private:
    //! Loops that run at the same time, at most.
    static constexpr int c_loops = 4;
    struct Loop
    {
        Work work;
        int tasks   = 0;
        int account = 0;
    };
    //! What a thread has: in cache lines of its own, or all would wait for one.
    struct Member
    {
        //! Its share of each loop: the end, and in the lower half the first task that is free.
        alignas(64) std::array<std::atomic<std::uint64_t>, c_loops> share = {};
        alignas(64) std::atomic<long long> done{ 0 };           //!< tasks
        alignas(64) std::array<double, c_accounts> atWork = {}; //!< seconds
    };
    //! Takes a task from a share.
    static bool take(std::atomic<std::uint64_t>* share, int* task);
    //! Does tasks until none is free. \returns how long, s
    double workOff(int thread);
    //! Whether all tasks that were handed out are done.
    bool isDone() const;
    //! Waits for loops until the region ends.
    void serve(int thread);

    int threads_;
    std::vector<Member> members_;
    std::array<Loop, c_loops> loops_;
    int loopsAdded_          = 0;
    int account_             = 0;
    int came_                = 1;
    bool isTogether_         = false; //!< there is a region
    unsigned atBegin_        = 0;     //!< of the region: the signal
    double running_          = 0;
    long long handedOut_     = 0;       //!< tasks
    FirstException* failure_ = nullptr; //!< of the loops at hand
    //! Grows by two when loops are handed out; odd: the region ends.
    alignas(64) std::atomic<unsigned> signal_{ 0 };
};

} // namespace farfield

#endif
