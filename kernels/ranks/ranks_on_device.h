/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a GPU exchanges with those of other ranks.
 */
#ifndef FARFIELD_KERNELS_RANKS_RANKS_ON_DEVICE_H
#define FARFIELD_KERNELS_RANKS_RANKS_ON_DEVICE_H

#include <memory>
#include <vector>

#include "backend/gpu_backend.h"
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
        partition_(ranks.partition), communicator_(ranks.communicator)
    {
        if (communicator_ == nullptr)
        {
            staged_       = std::make_unique<StagedCommunicator>(ranks.host);
            communicator_ = staged_.get();
        }
    }

    //! Charges of our particles, e; they are used with those of the ghosts.
    void setOwnCharges(const Real* q, int n) { charges_.assign(q, q + n); }
    int own() const { return static_cast<int>(charges_.size()); }
    //! With those of ghosts behind them.
    std::vector<Real> allCharges(const Real* ofGhosts, int ghosts) const
    {
        std::vector<Real> all = charges_;
        all.insert(all.end(), ofGhosts, ofGhosts + ghosts);
        return all;
    }

    //! Takes the plan of the partition. \param[in] stride  of level 0
    void plan(int coefficients, int stride, cudaStream_t stream)
    {
        ghosts_.plan(partition_, own(), stream);
        multipoles_.plan(partition_->regions(), partition_->ranks(), coefficients, stride, stream);
    }
    //! As DeviceGhosts::exchange().
    const Real* exchangePositions(const Real* x, const Mat3& toCells, cudaStream_t stream)
    {
        return ghosts_.exchange(x, toCells, communicator_, stream);
    }
    //! As SharedMultipoles::complete().
    Real* completeMultipoles(const Real* M, cudaStream_t stream)
    {
        return multipoles_.complete(M, communicator_, stream);
    }
    //! Whether this rank adds up what all of them compute alike.
    bool isFirst() const { return partition_->ranks().rank() == 0; }

    const Real* poison() const { return ghosts_.poison(); }
    bool haveMovedFar() const { return ghosts_.haveMovedFar(); }
    bool mayBeCaptured() const { return communicator_->mayBeCaptured(); }
    SentPerEvaluation sentPerEvaluation() const
    {
        return { ghosts_.messages() + multipoles_.messages(),
                 ghosts_.bytes() + multipoles_.bytes() };
    }

private:
    Partition<Real>* partition_;
    DeviceCommunicator* communicator_;
    std::unique_ptr<StagedCommunicator> staged_;
    std::vector<Real> charges_;
    DeviceGhosts<Real> ghosts_;
    SharedMultipoles<Real> multipoles_;
};

} // namespace farfield

#endif
