/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Times of stages on the device.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_STAGE_CLOCK_H
#define FARFIELD_KERNELS_RUNTIME_STAGE_CLOCK_H

#include <algorithm>
#include <deque>
#include <vector>

#include "backend/backend.h"
#include "runtime/device.h"

namespace farfield
{

//! Pairs of events around the stages of an evaluation.
class StageClock
{
public:
    //! Forgets what was recorded.
    void reset() { used_ = 0; }
    //! \param[in] external  inside a capture: the event is recorded at every replay
    void begin(Stage stage, cudaStream_t stream, bool external)
    {
        if (used_ == spans_.size())
        {
            spans_.emplace_back();
        }
        spans_[used_].stage = stage;
        record(spans_[used_].begin, stream, external);
    }
    void end(cudaStream_t stream, bool external)
    {
        record(spans_[used_].end, stream, external);
        used_++;
    }
    //! Waits for the last evaluation and adds its seconds to seconds[Stage::Count].
    void addTo(double* seconds) const
    {
        for (size_t k = 0; k < used_; k++)
        {
            seconds[static_cast<int>(spans_[k].stage)] +=
                    spans_[k].begin.secondsUntil(spans_[k].end);
        }
    }

private:
    struct Span
    {
        Stage stage = Stage::SetUp;
        Event begin{ true }, end{ true };
    };
    static void record(cudaEvent_t event, cudaStream_t stream, bool external)
    {
        check(cudaEventRecordWithFlags(
                      event, stream, external ? cudaEventRecordExternal : cudaEventRecordDefault),
              "recording a time");
    }

    std::deque<Span> spans_; // events do not move
    size_t used_ = 0;
};

} // namespace farfield

#endif
