/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Work for teams of OpenMP threads: right for whatever team comes, and for exceptions.
 *
 *  A team may be smaller than asked: in a parallel region of the caller, with OMP_DYNAMIC, or with
 *  OMP_THREAD_LIMIT. So work is never cut by the number of a thread, but into tasks, which a team
 *  of any size works off. An exception must not leave a parallel region: that ends the program.
 */
#ifndef FARFIELD_BASE_THREADS_H
#define FARFIELD_BASE_THREADS_H

#include <atomic>
#include <exception>

namespace farfield
{

//! The first exception of a parallel region, for the thread that has opened it.
class FirstException
{
public:
    //! Calls work() and keeps what it throws; does nothing once something has been thrown.
    template<class Work>
    void run(const Work& work) noexcept
    {
        if (any())
        {
            return;
        }
        try
        {
            work();
        }
        catch (...)
        {
            if (!failed_.exchange(true))
            {
                first_ = std::current_exception();
            }
        }
    }
    //! Whether something has been thrown: what is left of the work is in vain.
    bool any() const { return failed_.load(std::memory_order_relaxed); }
    //! To be called behind the region.
    void rethrow() const
    {
        if (first_)
        {
            std::rethrow_exception(first_);
        }
    }

private:
    std::atomic<bool> failed_{ false };
    std::exception_ptr first_;
};

/*! \brief Calls work(task) for all tasks, each once, by a team of threads.
 *
 *  All threads are asked for even if there are fewer tasks: those of a smaller team would stay, the
 *  others end, and what the caller has pinned to a core with them. */
template<class Work>
void forTasks(int tasks, int threads, const Work& work)
{
    FirstException failure;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int task = 0; task < tasks; task++)
    {
        failure.run([&] { work(task); });
    }
    failure.rethrow();
}

} // namespace farfield

#endif
