/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Multipoles of level 0 of cells whose particles are on several ranks, on the device.
 *
 *  Every rank gets what all others have, and closes level 0 by itself: one exchange, where a
 *  transform that is dealt out needs four.
 */
#ifndef FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H
#define FARFIELD_KERNELS_RANKS_SHARED_MULTIPOLES_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "parallel/regions.h"
#include "runtime/device.h"
#include "runtime/layout.h"

namespace farfield
{

template<class Real>
class SharedMultipoles
{
public:
    /*! \brief Plans exchanges; waits.
     *  \param[in] stride  of LevelView */
    void plan(const Regions& regions,
              const Ranks& ranks,
              int coefficients,
              int stride,
              cudaStream_t stream);

    /*! \brief Those of the particles of all ranks.
     *
     *  Another number goes along, of which every rank gets the largest.
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

    //! So many of the last largest numbers are kept.
    static constexpr int c_kept = 8;
    //! The largest number of a counted complete() that has ended, from the plan on; of the last c_kept.
    float largest(long long number) const { return largest_.data()[number % c_kept]; }

    //! What complete() sends to others.
    long long messages() const { return messages_; }
    long long bytes() const { return bytes_; }
    //! [ranks] what comes from each
    const std::vector<Stretch>& received() const { return receivedStretches_; }

private:
    int coefficients_ = 0, stride_ = 0, others_ = 0;
    DeviceBuffer<int> slots_;   //!< of our cells
    DeviceBuffer<int> placeOf_; //!< [others][stride] of a slot among the cells of a rank, -1: none
    DeviceBuffer<int> cellsOf_; //!< [others] cells
    DeviceBuffer<Real> packed_,
            received_; //!< for each rank, and behind the coefficients the number
    DeviceBuffer<Real> total_;
    std::vector<Stretch> sentStretches_, receivedStretches_;
    PinnedBuffer<float> largest_; //!< [c_kept] in turn
    DeviceBuffer<int> count_;     //!< [1] counted calls of complete() since the plan
    long long messages_ = 0, bytes_ = 0;
};

} // namespace farfield

#endif
