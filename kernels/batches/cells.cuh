/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Cells by which the particles of a system are sorted.
 */
#ifndef FARFIELD_KERNELS_BATCHES_CELLS_CUH
#define FARFIELD_KERNELS_BATCHES_CELLS_CUH

#include "batches/device_plan.h"

namespace farfield
{

/*! \brief Cells by which particles are sorted, so that those of a tile are near each other.
 *  \param[in] fullness  part of the third vector that has particles
 *  \param[out] cells    along each axis; in all no more than twice the tiles that are full, or 2 */
__device__ __forceinline__ void findCells(const CompactBox& box, double fullness, int n, int* cells)
{
    const double perLength = cbrt(n / (c_tile * box.volume * fullness));
    const int most         = max(1, n / c_tile);
    for (int k = 0; k < 3; k++)
    {
        const double length = box.heights[k] * (k == 2 ? fullness : 1);
        cells[k] = static_cast<int>(fmin(fmax(length * perLength + 0.5, 1.0), 1.0 * most));
    }
    // of flat boxes
    while (static_cast<double>(cells[0]) * cells[1] * cells[2] > 2.0 * most)
    {
        const int largest = cells[0] >= cells[1] ? (cells[0] >= cells[2] ? 0 : 2)
                                                 : (cells[1] >= cells[2] ? 1 : 2);
        cells[largest]    = (cells[largest] + 1) / 2;
    }
}

//! Takes the box of a system, and lays out its cells.
__device__ __forceinline__ void
layOutCells(const CompactBox& box, int system, CompactBox* boxOfSystem, SystemInBox* in)
{
    *boxOfSystem = box;
    for (int k = 0; k < 9; k++)
    {
        in->inverse[k] = box.inverse[k];
    }
    findCells(box, in->fullness, in->n, in->cells);
    in->firstCell = firstCellOf(system, in->first);
}

} // namespace farfield

#endif
