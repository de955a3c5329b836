/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The streams of an evaluation, and where they meet.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_EVALUATION_STREAMS_H
#define FARFIELD_KERNELS_RUNTIME_EVALUATION_STREAMS_H

#include <array>

#include "backend/backend.h"
#include "runtime/device.h"

namespace farfield
{

//! Points of an evaluation that work in other streams waits for.
enum class Point
{
    Given,        //!< positions of ours are in device memory
    Placed,       //!< those of ghosts are, too
    Sorted,       //!< all of them are sorted: the near field needs no tree
    Listed,       //!< and the cells to visit are listed
    Watched,      //!< families are counted
    ExcludedDone, //!< excluded pairs are subtracted, and what the near field leaves out is known
    NearDone,     //!< this GPU's part of the near field is complete, and all of the above
    Count
};

/*! \brief Near and far field run side by side, in streams of their own.
 *
 *  Where stages are measured, they run in turn: in one stream, in which nothing has to meet. */
class EvaluationStreams
{
public:
    //! Whether stages run one after the other.
    bool inTurn() const { return inTurn_; }
    void runInTurn(bool inTurn) { inTurn_ = inTurn; }

    //! Of the far field: the longer chain, so its kernels go before those of the near field.
    const Stream& far() const { return far_; }
    cudaStream_t near() const { return inTurn_ ? far_ : near_; }
    //! Of excluded pairs: short, and the near field waits for them.
    cudaStream_t excluded() const { return inTurn_ ? far_ : excluded_; }
    cudaStream_t watch() const { return inTurn_ ? far_ : watch_; }
    //! Of ghosts on their way and lists: short, and other streams, and other GPUs, wait for them.
    cudaStream_t ahead() const { return inTurn_ ? far_ : ahead_; }
    cudaStream_t of(Stage stage) const
    {
        switch (stage)
        {
            case Stage::Exclusions:
                return excluded();
            case Stage::NearFunction:
            case Stage::P2p:
                return near();
            default:
                return far_;
        }
    }

    //! The work of a stream has come to a point.
    void reach(Point point, cudaStream_t stream)
    {
        if (!inTurn_)
        {
            points_[static_cast<int>(point)].record(stream);
        }
    }
    //! What is put into a stream from now on waits for a point.
    void awaitIn(cudaStream_t stream, Point point) const
    {
        if (!inTurn_)
        {
            points_[static_cast<int>(point)].holdBack(stream);
        }
    }

    //! The far field waits for what a caller has put into a stream.
    void enter(cudaStream_t caller)
    {
        entered_.record(caller);
        entered_.holdBack(far_);
    }
    //! The caller's stream waits for the far field.
    void leave(cudaStream_t caller)
    {
        done_.record(far_);
        done_.holdBack(caller);
    }

private:
    Stream far_{ Priority::Second }, near_{ Priority::Third }, excluded_{ Priority::Third }, watch_,
            ahead_{ Priority::Highest };
    std::array<Event, static_cast<int>(Point::Count)> points_;
    Event entered_, done_;
    bool inTurn_ = false;
};

} // namespace farfield

#endif
