/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How particles, cells and expansions lie in device memory. Plain data, for host and
 *         device.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_LAYOUT_H
#define FARFIELD_KERNELS_RUNTIME_LAYOUT_H

#include "cells/cell_index.h"

namespace farfield
{

//! Four numbers that are loaded at once.
template<class Real>
struct alignas(16) Real4
{
    Real x, y, z, w;
};

//! Slots come in multiples of this: a warp takes as many neighbouring slots.
constexpr int c_warp = 32;

/*! \brief Particles sorted by leaf cell, in device memory.
 *
 *  Of a system on several ranks, ours alone, or ours and ghosts: then a cell has a bin of ours, and
 *  one of its ghosts behind it. */
template<class Real>
struct SortedParticles
{
    int n;
    const Real4<Real>* xq; //!< [n] position relative to the centre of the cell, nm; charge (scaled)
    const int* start;      //!< [bins + 1] first particle of each bin, storage order of cells
    const int* atom;       //!< [n] index before sorting
    const int* cell;       //!< [n] cell of each particle, storage order
    const int* position;   //!< where a particle is after sorting, by its index before
    int logBins;           //!< binary logarithm of the bins of a cell: 1 with ghosts, else 0

    //! Where the bins of a cell begin.
    FARFIELD_HD const int* bins(int c) const { return start + (c << logBins); }
    //! Where the particles of a cell end, from bins() on.
    FARFIELD_HD int endOf(const int* bins) const { return bins[1 << logBins]; }
};

/*! \brief Expansions of the cells of one level, in device memory.
 *
 *  Coefficient-major over slots. Level 0 has a slot for every cell, in the order of Grid::slot();
 *  in finer levels slot = octant * families.capacity + family, see Families. */
template<class Real>
struct LevelView
{
    CellGrid grid;
    int stride;        //!< slots, a multiple of c_warp: distance of coefficients
    Real* M;           //!< [coefficients][stride] in units of the cell size
    Real* L;           //!< [coefficients][stride] in 1 / cell size
    const int* cellOf; //!< [stride] cell of each slot, -1 for none
    const int* slotOf; //!< [cells] slot of each cell, -1 for none
};

/*! \brief The cells of a level above 0, by parent: a family is the eight children of an occupied
 *         cell of the next coarser level.
 *
 *  Lists are remade on the device every step; what is launched depends on the capacity alone. */
struct Families
{
    int capacity;          //!< a multiple of c_warp
    int ws;                //!< direct range
    const int* count;      //!< [1] families in use, in device memory
    const int* parentSlot; //!< [capacity] slot of the parent in its level
    //! [(2 ws + 1)^3][capacity] family whose parent is displaced by -E from this family's parent
    //! (E = target - source), -1 for none; E in the order of neighbourIndex().
    const int* neighbours;
};

//! Position of a displacement of parents in Families::neighbours.
FARFIELD_HD int neighbourIndex(int ws, int ex, int ey, int ez)
{
    const int w = 2 * ws + 1;
    return ((ez + ws) * w + (ey + ws)) * w + (ex + ws);
}

} // namespace farfield

#endif
