/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Positions of ghosts on the device, and whether ours are still where exchanges were planned
 *         for.
 */
#ifndef FARFIELD_KERNELS_RANKS_DEVICE_GHOSTS_H
#define FARFIELD_KERNELS_RANKS_DEVICE_GHOSTS_H

#include <vector>

#include "base/vectors.h"
#include "farfield/farfield_parallel.h"
#include "ranks/device_plan.h"
#include "runtime/device.h"

namespace farfield
{

template<class Real>
class DeviceGhosts
{
public:
    //! Takes a plan, which is used until the next; waits.
    void plan(const DevicePlan<Real>& plan, const Partition<Real>& partition, cudaStream_t stream);

    /*! \brief Exchanges positions, and looks how far ours have moved since the plan.
     *  \param[in] x        of our particles, nm, [own][3], device memory
     *  \param[in] toCells  columns give cell coordinates, 1/nm
     *  \returns of ours, then of the ghosts, device memory; the same memory until the next plan */
    const Real* exchange(const Real* x,
                         const Mat3& toCells,
                         DeviceCommunicator* communicator,
                         cudaStream_t stream);

    //! The exchange alone, with zeros for our positions: of an evaluation that is given up.
    void exchangeZeros(DeviceCommunicator* communicator, cudaStream_t stream)
    {
        packed_.clear(stream);
        passOn(communicator, stream);
    }

    //! [1] device memory: how far one of ours has moved since the plan, cells, to be cleared by who
    //! has read it.
    float* farthest() { return farthest_.data(); }

    //! What an exchange sends to others.
    long long messages() const { return messages_; }
    long long bytes() const { return bytes_; }
    //! [ranks] what comes from each
    const std::vector<Stretch>& received() const { return receivedStretches_; }

private:
    void passOn(DeviceCommunicator* communicator, cudaStream_t stream);

    const DevicePlan<Real>* plan_ = nullptr;
    DeviceBuffer<Real> packed_, positions_; //!< [sent][3]; [own + ghosts][3]
    std::vector<Stretch> sentStretches_, receivedStretches_;
    DeviceBuffer<float> farthest_;
    long long messages_ = 0, bytes_ = 0;
};

} // namespace farfield

#endif
