/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many particles a device has.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_PARTICLE_COUNTS_H
#define FARFIELD_KERNELS_RUNTIME_PARTICLE_COUNTS_H

namespace farfield
{

struct ParticleCounts
{
    int all        = 0; //!< with ghosts
    int own        = 0; //!< ghosts are behind them
    int takingPart = 0; //!< see ScaledCharges; of ghosts all do

    int ownTakingPart() const { return takingPart - (all - own); }

    bool operator==(const ParticleCounts& other) const
    {
        return all == other.all && own == other.own && takingPart == other.takingPart;
    }
};

} // namespace farfield

#endif
