/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells of one level of a tree that hold particles, with their expansions.
 */
#ifndef FARFIELD_CPU_LEVEL_H
#define FARFIELD_CPU_LEVEL_H

#include <utility>
#include <vector>

#include "base/aligned_vector.h"
#include "cells/cell_hash.h"
#include "cells/grid.h"
#include "cpu/particle_views.h"

namespace farfield
{

//! Cells of one level with their expansions, coefficient-major over slots.
template<class Real>
struct Level
{
    Grid grid;
    std::vector<Int3> cells;  //!< reduced cell of each slot
    bool isSparse = false;    //!< the grid has too many cells for slotOf
    std::vector<int> slotOf;  //!< slot of each cell in storage order, -1 for none
    CellHash slots;           //!< the same of a sparse level
    int padded = 0;           //!< slots, padded
    AlignedVector<Real> M, L; //!< [coefficients][padded]

    //! Sets the cells of the slots and makes room for their expansions.
    void setCells(std::vector<Int3> occupied, int coefficients)
    {
        for (const Int3& c : isSparse ? std::vector<Int3>() : cells)
        {
            slotOf[grid.index(c)] = -1;
        }
        cells = std::move(occupied);
        if (isSparse)
        {
            slots.set(cells);
        }
        else
        {
            slotOf.resize(grid.count(), -1);
            for (size_t slot = 0; slot < cells.size(); slot++)
            {
                slotOf[grid.index(cells[slot])] = static_cast<int>(slot);
            }
        }
        padded = static_cast<int>((cells.size() + c_slotPadding - 1) / c_slotPadding
                                  * c_slotPadding);
        M.resize(static_cast<size_t>(coefficients) * padded);
        L.resize(M.size());
    }
    //! The slot of any image of a cell, -1 for none.
    int slotAt(const Int3& c) const
    {
        const Int3 reduced = grid.reduce(c);
        return isSparse ? slots.find(reduced) : slotOf[grid.index(reduced)];
    }
};

} // namespace farfield

#endif
