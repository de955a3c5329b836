/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sorted particles as the kernels see them.
 */
#ifndef FARFIELD_CPU_PARTICLE_VIEWS_H
#define FARFIELD_CPU_PARTICLE_VIEWS_H

#include "cells/grid.h"

namespace farfield
{

//! Slots are padded to a multiple of this, at least the lanes of any vector.
constexpr int c_slotPadding = 16;

//! Particles sorted by cell.
template<class Real>
struct Particles
{
    const Real* x; //!< relative to the cell centre, nm
    const Real* y;
    const Real* z;
    const Real* q;    //!< charge, scaled by the root of the Coulomb constant
    const int* start; //!< [cells + 1] first particle of each cell
    const int* atom;  //!< [n] index before sorting
};

//! Leaf cells in the order of the expansions.
struct LeafSlots
{
    const int* first; //!< [padded slots] first particle
    const int* count; //!< [padded slots] number of particles
    int padded;       //!< number of slots, a multiple of c_slotPadding
};

//! Partners with which a particle must not interact, as compressed rows of sorted particles, at both
//! of the two; null if there are none.
struct ClosePartners
{
    const int* offsets  = nullptr;
    const int* partners = nullptr;
};

} // namespace farfield

#endif
