/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a GPU exchanges with those of other ranks.
 */
#ifndef FARFIELD_KERNELS_RANKS_RANKS_ON_DEVICE_H
#define FARFIELD_KERNELS_RANKS_RANKS_ON_DEVICE_H

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "backend/gpu_backend.h"
#include "parallel/awaited_messages.h"
#include "ranks/device_ghosts.h"
#include "ranks/shared_multipoles.h"
#include "ranks/staged_communicator.h"

namespace farfield
{

template<class Real>
class RanksOnDevice
{
public:
    explicit RanksOnDevice(const DeviceRanks<Real>& ranks) :
        partition_(ranks.partition),
        staged_(ranks.communicator == nullptr
                        ? std::make_unique<StagedCommunicator>(ranks.host, &partition_->ranks())
                        : nullptr),
        messages_(staged_ ? staged_.get() : ranks.communicator)
    {
    }

    //! As DevicePlan::setSystem().
    void setSystem(const WholeSystem<Real>& system, double rootCoulomb, cudaStream_t stream)
    {
        plan_.setSystem(system, rootCoulomb, stream);
    }
    //! As DevicePlan::locate().
    int locate(const std::vector<int>& index,
               const Real* x,
               const Discretisation& d,
               const Mat3& box,
               cudaStream_t stream)
    {
        return plan_.locate(index, x, d, box, *partition_, stream);
    }
    //! Whether those that were located have moved too far for the plan, if they are the same ones.
    bool haveLeftPlan() const { return plan_.farthest() > partition_->limit(); }
    //! As DevicePlan::make().
    const DevicePlan<Real>& makePlan(cudaStream_t stream)
    {
        plan_.make(partition_, stream);
        return plan_;
    }
    /*! \brief Plans exchanges after makePlan().
     *  \param[in] stride  of the coarsest level */
    void planExchanges(int coefficients, int stride, cudaStream_t stream)
    {
        ghosts_.plan(plan_, *partition_, stream);
        multipoles_.plan(partition_->regions(),
                         partition_->ranks(),
                         coefficients,
                         stride,
                         static_cast<float>(partition_->limit()),
                         stream);
        size_t largest = 0;
        for (const auto* received : { &ghosts_.received(), &multipoles_.received() })
        {
            for (const Stretch& message : *received)
            {
                largest = std::max(largest, message.size);
            }
        }
        partition_->ranks().confirm(); // who has failed does not come to exchanges of another kind
        messages_.reserve(largest);
        evaluations_ = 0;
        isTold_      = false;
    }
    /*! \brief As DeviceGhosts::exchange().
     *
     *  Before the first after a plan all hosts wait for each other. Memory is allocated there, by the
     *  caller, too, which may wait for all GPUs that reach each other; a kernel that waits for a
     *  message of that very host would let it wait for ever. They meet in every evaluation in which
     *  they watch for failures: whoever has failed has told so there, and nobody has sent anything.
     *  Hosts that pass the messages meet in each exchange, and no GPU waits for them. */
    const Real* exchangePositions(const Real* x, const Mat3& toCells, cudaStream_t stream)
    {
        if (!staged_ && (isUntried() || partition_->ranks().isWatched()))
        {
            partition_->ranks().meet();
        }
        begin(stream);
        return ghosts_.exchange(x, toCells, &messages_, stream);
    }
    //! As Exchange::begin().
    void begin(cudaStream_t stream)
    {
        // what is recorded sends nothing, and hosts that pass messages hear of failures
        const bool isAwaited = !staged_ && !isCapturing(stream);
        stream_              = isAwaited ? stream : nullptr;
        messages_.expect(isAwaited ? c_exchanges : 0);
    }
    //! As SharedMultipoles::complete(). \param[in] isReplayed  by who records it, unseen from here
    Real* completeMultipoles(const Real* M, bool isReplayed, cudaStream_t stream)
    {
        stream_ = stream_ != nullptr ? stream : nullptr;
        return multipoles_.complete(M, ghosts_.farthest(), !isReplayed, &messages_, stream);
    }
    /*! \brief As Exchange::sendRest().
     *
     *  Waits for the messages of the evaluation. They come to an end, as whoever begins it sends all
     *  that there are, here if not in its evaluation. */
    bool sendRest() noexcept
    {
        partition_->forget();
        try
        {
            if (messages_.awaited() == c_exchanges)
            {
                ghosts_.exchangeZeros(&messages_, stream_);
            }
            if (messages_.awaited() > 0)
            {
                multipoles_.sendFailure(&messages_, stream_);
            }
            if (stream_ != nullptr && !isCapturing(stream_))
            {
                // a GPU that works no more has not sent what was put into its stream
                check(cudaStreamSynchronize(stream_), "sending the rest of the messages");
                // others that have failed in this evaluation tell it between the hosts, too
                isTold_ = isTold_ || multipoles_.hasOtherFailed();
            }
            return true;
        }
        catch (...)
        {
            messages_.expect(0);
            return false;
        }
    }
    //! Whether no evaluation has been put into a stream since the plan.
    bool isUntried() const { return evaluations_ == 0; }
    //! An evaluation has been put into a stream.
    void noteEvaluation(cudaStream_t stream)
    {
        put_[evaluations_ % c_lag].record(stream);
        evaluations_++;
    }
    /*! \brief Whether particles of any rank had moved so far some evaluations ago that it is time for a
     *         plan; the same on all ranks.
     *  \throws Error  InvalidArgument: they had moved too far, on all ranks */
    bool needsPlan()
    {
        if (evaluations_ < c_lag)
        {
            return false;
        }
        const long long past = evaluations_ - c_lag;
        put_[past % c_lag].synchronize();
        throwIfMovedFar(past + 1);
        return multipoles_.largest(past) > c_mostOfDrift * partition_->drift();
    }
    //! As Ranks::confirm(), where the evaluation at hand has come to its end.
    void confirm()
    {
        partition_->ranks().confirm();
        settled();
    }
    //! No evaluation is under way: sendRest() leaves the GPU alone, which may work no more, and what there
    //! is to report.
    void settled() { stream_ = nullptr; }
    //! Whether this rank adds up what all of them compute alike.
    bool isFirst() const { return partition_->ranks().rank() == 0; }

    //! As SharedMultipoles::poison().
    const Real* poison() const { return multipoles_.poison(); }
    //! Throws, once, if particles of any rank have moved too far, where all evaluations have ended.
    void throwIfMovedFar() { throwIfMovedFar(std::numeric_limits<long long>::max()); }
    bool mayBeCaptured() const { return messages_.mayBeCaptured(); }
    SentPerEvaluation sentPerEvaluation() const
    {
        return { ghosts_.messages() + multipoles_.messages(),
                 ghosts_.bytes() + multipoles_.bytes() };
    }

private:
    //! The same of so many evaluations, and what was replayed before them.
    void throwIfMovedFar(long long evaluations)
    {
        if (!isTold_ && multipoles_.wasBeyond(evaluations))
        {
            isTold_ = true;
            partition_->forget(); // all ranks throw
            if (multipoles_.hasOtherFailed())
            {
                throw Error(
                        ErrorCode::DeviceFailure,
                        "Another rank has failed in an evaluation, and its message says why. The "
                        "forces since then are not numbers. Call setLocal() on all ranks before "
                        "the "
                        "next evaluation.");
            }
            throw Error(
                    ErrorCode::InvalidArgument,
                    "Particles moved by most of a cell within few evaluations, without a call of "
                    "setLocal() between them. The forces since then are not numbers.",
                    "positions");
        }
    }

    //! Of an evaluation: positions, then multipoles.
    static constexpr int c_exchanges = 2;
    //! Evaluations that may be under way when one is looked at.
    static constexpr int c_lag = 3;
    static_assert(c_lag < SharedMultipoles<Real>::c_kept, "what is looked at is kept");
    //! The part of the drift that particles may have used up by then.
    static constexpr double c_mostOfDrift = 0.8;

    Partition<Real>* partition_;
    std::unique_ptr<StagedCommunicator> staged_; //!< null: devices pass messages without the hosts
    AwaitedMessages messages_;
    //! Of the last exchange; null: no GPU of others waits for it by itself, or it has ended.
    cudaStream_t stream_ = nullptr;
    DevicePlan<Real> plan_;
    DeviceGhosts<Real> ghosts_;
    SharedMultipoles<Real> multipoles_;
    std::array<Event, c_lag> put_;  //!< of the last evaluations, in turn
    long long evaluations_ = 0;     //!< since the plan, without replays
    bool isTold_           = false; //!< that particles have moved too far since the plan
};

} // namespace farfield

#endif
