/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The closure of level 0 by all ranks together, on the device.
 *
 *  Each rank transforms some coefficients, of the particles of all ranks, multiplies the spectra of
 *  all coefficients at some wave vectors, and transforms its coefficients back. Besides the one before,
 *  which SharedMultipoles has, that takes an exchange between these steps each, and one after them:
 *  four, where a closure of everything by every rank takes one.
 */
#ifndef FARFIELD_KERNELS_RANKS_SHARED_CLOSURE_H
#define FARFIELD_KERNELS_RANKS_SHARED_CLOSURE_H

#include <algorithm>

#include "farfield/farfield_parallel.h"
#include "m2l/m2l.h"
#include "m2l_periodic/index.h"
#include "parallel/regions.h"
#include "parallel/share.h"
#include "ranks/packed_fields.h"
#include "runtime/layout.h"

namespace farfield
{

template<class Real>
class SharedClosure
{
public:
    //! Plans exchanges; waits.
    void plan(const Regions& regions,
              const Ranks& ranks,
              const LevelView<Real>& level,
              DevicePeriodicM2l<Real>* m2l,
              cudaStream_t stream);

    /*! \brief L of level 0 in the cells of this rank, see Regions.
     *  \param[in]  multipoles  of the particles of all ranks, of the coefficients of this rank
     *  \param[in]  level       whose L is set: of the coefficients of this rank in all cells
     *  \param[out] virial      as DevicePeriodicM2l::apply(): the part of this rank is added */
    void close(const Real* multipoles,
               const LevelView<Real>& level,
               double virialScale,
               double* virial,
               DevicePeriodicM2l<Real>* m2l,
               DeviceCommunicator* communicator,
               cudaStream_t stream);

    //! What close() sends to others.
    long long messages() const
    {
        return ours_.messages() + theirs_.messages() + localsOut_.messages();
    }
    long long bytes() const { return ours_.bytes() + theirs_.bytes() + localsOut_.bytes(); }
    //! Bytes of the largest message that comes.
    size_t largestMessage() const
    {
        return std::max({ ours_.largest(), theirs_.largest(), localsIn_.largest() });
    }

private:
    Share share_;                        //!< of this rank
    PackedFields<Complex<Real>> ours_;   //!< our coefficients at the wave vectors of others
    PackedFields<Complex<Real>> theirs_; //!< their coefficients at ours
    PackedFields<Real> localsOut_;       //!< our coefficients in the cells of others
    PackedFields<Real> localsIn_;        //!< their coefficients in ours
};

} // namespace farfield

#endif
