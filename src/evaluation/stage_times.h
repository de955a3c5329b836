/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How long the stages of evaluations take.
 */
#ifndef FARFIELD_EVALUATION_STAGE_TIMES_H
#define FARFIELD_EVALUATION_STAGE_TIMES_H

#include <array>
#include <chrono>
#include <vector>

#include "farfield/farfield.h"

#include "backend/backend.h"

namespace farfield
{

//! Name of a stage for logs.
const char* stageName(Stage stage);

//! Sums of times over the evaluations of the caller.
class StageTimes
{
public:
    //! Does work() and adds what it takes on the host, but for what it adds to stages itself.
    template<class Work>
    void add(Stage stage, const Work& work)
    {
        const double before = added_;
        const auto begin    = std::chrono::steady_clock::now();
        work();
        const double spent =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        seconds_[static_cast<int>(stage)] += spent - (added_ - before);
        added_ = before + spent;
    }
    //! Does work that is no evaluation of the caller's: its times are forgotten.
    template<class Work>
    void notCounted(const Work& work)
    {
        const auto before  = seconds_;
        const double added = added_;
        work();
        seconds_ = before;
        added_   = added;
    }
    /*! \brief Does work() as one evaluation.
     *
     *  If the backend has measured the stages itself, its times replace those that the host saw,
     *  which are how long it took to launch. */
    template<class Real, class Work>
    void evaluation(Backend<Real>& backend, const Work& work)
    {
        const auto before = seconds_;
        work();
        std::array<double, static_cast<int>(Stage::Count)> measured;
        if (backend.measured(measured.data()))
        {
            for (int stage = static_cast<int>(Stage::Sort);
                 stage <= static_cast<int>(Stage::Waiting);
                 stage++)
            {
                seconds_[stage] = before[stage] + measured[stage];
            }
        }
        evaluations_++;
    }
    //! Of the stages that took time, in the order of the pipeline.
    std::vector<StageTime> all() const;
    void reset() { *this = StageTimes(); }

private:
    std::array<double, static_cast<int>(Stage::Count)> seconds_ = {};
    double added_                                               = 0; //!< to any stage
    long long evaluations_                                      = 0;
};

} // namespace farfield

#endif
