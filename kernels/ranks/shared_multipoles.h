/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Multipoles of level 0 of cells whose particles are on several ranks, on the device.
 *
 *  Every rank gets what all others have, and closes level 0 by itself, or what they have of the
 *  coefficients that are dealt out to it, see shared_closure.h.
 */
#ifndef FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H
#define FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "parallel/regions.h"
#include "parallel/share.h"
#include "ranks/packed_fields.h"
#include "runtime/device.h"

namespace farfield
{

template<class Real>
class SharedMultipoles
{
public:
    /*! \brief Plans exchanges; waits.
     *  \param[in] share   of the coefficients that this rank gets, of as many parts as there are
     *                     ranks, or the whole on all ranks
     *  \param[in] stride  of LevelView
     *  \param[in] limit   of the number that goes along with complete() */
    void plan(const Regions& regions,
              const Ranks& ranks,
              const Share& share,
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
     *  \returns [coefficients of the share][stride], device memory */
    Real* complete(const Real* M,
                   float* number,
                   bool isCounted,
                   DeviceCommunicator* communicator,
                   cudaStream_t stream);

    //! [1] device memory, to be added to all forces: zero, or not a number after the largest number was
    //! beyond the limit.
    const Real* poison() const { return poison_.data(); }
    /*! \brief Whether the largest number was beyond the limit, of what has ended; the same on all ranks.
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
    long long messages() const { return ours_.messages(); }
    long long bytes() const { return ours_.bytes(); }
    //! Bytes of the largest message that comes.
    size_t largestMessage() const { return received_.largest(); }

private:
    int stride_ = 0;
    int first_ = 0, fields_ = 0;         //!< coefficients that this rank gets
    PackedFields<Real> ours_, received_; //!< behind the coefficients of each block the number
    size_t ownNumber_ = 0;               //!< where ours is among what is sent
    DeviceBuffer<int> placeOf_;          //!< [others][stride] of a slot in their blocks, -1: none
    DeviceBuffer<Real> total_;
    PinnedBuffer<float> largest_; //!< [c_kept] in turn
    DeviceBuffer<int> count_;     //!< [1] counted calls of complete() since the plan
    float limit_ = 0;
    DeviceBuffer<Real> poison_;
    //! The first call of complete() beyond the limit: 1 and the counted ones before it; 0: none.
    PinnedBuffer<int> beyond_;
};

} // namespace farfield

#endif
