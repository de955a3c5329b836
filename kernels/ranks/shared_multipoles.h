/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Multipoles of level 0 of cells whose particles are on several ranks, on the device.
 *
 *  Every rank gets what all others have, in one exchange, and closes level 0 by itself.
 */
#ifndef FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H
#define FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "parallel/regions.h"
#include "runtime/device.h"

namespace farfield
{

//! What comes from a rank: [coefficients][its cells], and behind them its number.
struct MultipoleBlock
{
    size_t begin, number; //!< where they are in what is received, elements
    int cells;
};

template<class Real>
class SharedMultipoles
{
public:
    /*! \brief Plans exchanges; waits.
     *  \param[in] stride  of LevelView
     *  \param[in] limit   of the number that goes along with complete() */
    void plan(const Regions& regions,
              const Ranks& ranks,
              int coefficients,
              int stride,
              float limit,
              cudaStream_t stream);

    /*! \brief Those of the particles of all ranks.
     *
     *  Another number goes along, of which every rank gets the largest. Where that is beyond the limit
     *  all ranks have poison() in what follows.
     *  \param[in]     M       of our particles, [coefficients][stride]
     *  \param[in,out] number  [1] device memory, not negative; zero is left
     *  \param[in]     isCounted  whether the largest number is kept; not where the host does not know
     *                            how often this runs
     *  \returns [coefficients][stride], device memory */
    Real* complete(const Real* M,
                   float* number,
                   bool isCounted,
                   DeviceCommunicator* communicator,
                   cudaStream_t stream);

    /*! \brief In place of complete() where this rank has given the evaluation up: others have poison()
     *         then, and know of it by hasOtherFailed(). */
    void sendFailure(DeviceCommunicator* communicator, cudaStream_t stream);

    //! [1] device memory, to be added to all forces: zero, or not a number after the largest number was
    //! beyond the limit, or another rank has failed.
    const Real* poison() const { return poison_.data(); }
    //! Whether another rank has sent its failure, of what has ended.
    bool hasOtherFailed() const { return beyond_.data() != nullptr && beyond_.data()[1] != 0; }
    /*! \brief Whether the largest number was beyond the limit, of what has ended; the same on all ranks
     *         that have not failed, where others have.
     *  \param[in] counted  calls of complete() that are looked at, with what was not counted before them */
    bool wasBeyond(long long counted) const
    {
        return beyond_.data() != nullptr && *beyond_.data() != 0 && *beyond_.data() <= counted;
    }
    //! So many of the last largest numbers are kept.
    static constexpr int c_kept = 8;
    //! The largest number of a counted complete() that has ended, from the plan on; of the last c_kept.
    float largest(long long number) const { return largest_.data()[number % c_kept]; }

    //! What complete() sends to others.
    long long messages() const { return static_cast<long long>(blocks_.size()); }
    long long bytes() const
    {
        return messages() * static_cast<long long>(packed_.size() * sizeof(Real));
    }
    //! [ranks] what comes from each
    const std::vector<Stretch>& received() const { return receivedStretches_; }

private:
    int coefficients_ = 0, stride_ = 0;
    DeviceBuffer<int> slots_; //!< of our cells
    //! [coefficients][our cells], and behind them our number: all others get the same.
    DeviceBuffer<Real> packed_;
    DeviceBuffer<Real> received_;
    DeviceBuffer<MultipoleBlock> blocks_;                    //!< [others]
    std::vector<Stretch> sentStretches_, receivedStretches_; //!< [ranks]
    DeviceBuffer<int> placeOf_; //!< [others][stride] of a slot among their cells, -1: none
    DeviceBuffer<Real> total_;
    PinnedBuffer<float> largest_; //!< [c_kept] in turn
    DeviceBuffer<int> count_;     //!< [1] counted calls of complete() since the plan
    float limit_ = 0;
    DeviceBuffer<Real> poison_;
    //! [2] The first call of complete() beyond the limit, or with the failure of another: 1 and the
    //! counted ones before it, 0: none; and whether there was such a failure.
    PinnedBuffer<int> beyond_;

    void passOn(DeviceCommunicator* communicator, cudaStream_t stream);
};

} // namespace farfield

#endif
