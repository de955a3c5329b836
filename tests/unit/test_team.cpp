/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Loops of a team: every task is done once, whoever comes, and failures are passed on.
 */
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/team.h"

namespace farfield
{
namespace test
{
namespace
{

//! How often each task is done.
class Counts
{
public:
    explicit Counts(int tasks) : done_(new std::atomic<int>[tasks]), tasks_(tasks)
    {
        for (int task = 0; task < tasks; task++)
        {
            done_[task] = 0;
        }
    }
    Team::Work work(const Team& team) const
    {
        return [this, threads = team.threads()](int task, int thread)
        {
            EXPECT_LT(thread, threads);
            done_[task]++;
        };
    }
    void expect(int times) const
    {
        for (int task = 0; task < tasks_; task++)
        {
            ASSERT_EQ(done_[task], times) << "task " << task << " of " << tasks_;
        }
    }

private:
    std::unique_ptr<std::atomic<int>[]> done_;
    int tasks_;
};

TEST(Team, DoesEveryTaskOnce)
{
    for (const int threads : { 1, 2, 5, 16 })
    {
        Team team(threads);
        for (const int tasks : { 0, 1, 3, 16, 1000 })
        {
            const Counts alone(tasks), first(tasks), second(tasks + 1);
            team.forTasks(tasks, alone.work(team));
            alone.expect(1);
            team.together(
                    [&]
                    {
                        for (int round = 1; round < 30; round++)
                        {
                            team.add(tasks, first.work(team));
                            team.add(tasks + 1, second.work(team));
                            team.run();
                            first.expect(round);
                            second.expect(round);
                        }
                    });
        }
    }
}

TEST(Team, CutsRangesWithoutGaps)
{
    for (const int threads : { 1, 3 })
    {
        Team team(threads);
        for (const int n : { 0, 1, 7, 100, 5000 })
        {
            const Counts counts(n);
            const auto work = counts.work(team);
            team.forRanges(n,
                           10,
                           [&](int begin, int end)
                           {
                               for (int i = begin; i < end; i++)
                               {
                                   work(i, 0);
                               }
                           });
            counts.expect(1);
        }
    }
}

//! A task that waits for its thread does not keep the others from the rest.
TEST(Team, TakesOverTheTasksOfThreadsThatAreLate)
{
    constexpr int c_threads = 2, c_tasks = 100;
    Team team(c_threads);
    const Counts counts(c_tasks);
    const auto work = counts.work(team);
    std::atomic<int> others{ 0 };
    team.forTasks(c_tasks,
                  [&](int task, int thread)
                  {
                      work(task, thread);
                      if (task > 0)
                      {
                          others++;
                          return;
                      }
                      // in vain if there is no second thread
                      for (int i = 0; i < 1000 && others < c_tasks - 1; i++)
                      {
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      }
                  });
    counts.expect(1);
}

TEST(Team, PassesOnWhatTasksThrow)
{
    for (const int threads : { 1, 4 })
    {
        Team team(threads);
        const auto fail = [](int task, int /*thread*/)
        {
            if (task == 37)
            {
                throw std::runtime_error("37");
            }
        };
        EXPECT_THROW(team.forTasks(100, fail), std::runtime_error);
        EXPECT_THROW(team.together([&] { team.forTasks(100, fail); }), std::runtime_error);
        EXPECT_THROW(team.together(
                             [&]
                             {
                                 team.add(100, fail);
                                 throw std::logic_error("before the run");
                             }),
                     std::logic_error);
        // nothing of it is left
        const Counts counts(100);
        team.forTasks(100, counts.work(team));
        counts.expect(1);
        team.together([&] { team.forTasks(100, counts.work(team)); });
        counts.expect(2);
    }
}

//! Far more threads than processors, short loops, and other teams of the same process beside them.
TEST(Team, DoesEveryTaskOnceOnABusyMachine)
{
    constexpr int c_threads = 16, c_rounds = 200;
    const auto work = []
    {
        Team team(c_threads);
        for (int repeat = 0; repeat < 3; repeat++)
        {
            team.together(
                    [&]
                    {
                        std::vector<int> values(3 * c_threads, 0);
                        for (int round = 0; round < c_rounds; round++)
                        {
                            // each task continues what some thread has done in the loop before
                            team.forTasks(static_cast<int>(values.size()),
                                          [&](int task, int /*thread*/) { values[task] += task; });
                        }
                        for (int task = 0; task < static_cast<int>(values.size()); task++)
                        {
                            ASSERT_EQ(values[task], c_rounds * task);
                        }
                    });
        }
    };
    std::thread other(work);
    work();
    other.join();
}

TEST(Team, IsSmallerInAParallelRegion)
{
    Team team(4);
    const Counts alone(100), inLoops(100);
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
            team.forTasks(100, alone.work(team));
            team.together([&] { team.forTasks(100, inLoops.work(team)); });
        }
    }
    alone.expect(1);
    inLoops.expect(1);
}

TEST(Team, CountsTheTimeOfWork)
{
    Team team(2);
    team.setAccount(3);
    const auto sleep = [](int /*task*/, int /*thread*/)
    { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    team.forTasks(4, sleep);
    EXPECT_GE(team.secondsAtWork(3), 0.02);
    EXPECT_GE(team.secondsRunning(), 0.01);
    EXPECT_EQ(team.secondsAtWork(0), 0);
    team.clearTimes();
    EXPECT_EQ(team.secondsAtWork(3), 0);
    EXPECT_EQ(team.secondsRunning(), 0);
}

} // namespace
} // namespace test
} // namespace farfield
