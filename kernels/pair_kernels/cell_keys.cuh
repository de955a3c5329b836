/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Keys of cells on the device, and where cells stand.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_CELL_KEYS_CUH
#define FARFIELD_KERNELS_PAIR_KERNELS_CELL_KEYS_CUH

#include <cstdint>

#include "cells/morton.h"
#include "pair_kernels/cell_hash_on_device.h"

namespace farfield
{

//! The cell of a key.
__device__ inline int3 cellOfKey(std::uint64_t key)
{
    const auto compact = [](std::uint64_t v)
    {
        v &= 0x1249249249249249ULL;
        v = (v | v >> 2) & 0x10c30c30c30c30c3ULL;
        v = (v | v >> 4) & 0x100f00f00f00f00fULL;
        v = (v | v >> 8) & 0x1f0000ff0000ffULL;
        v = (v | v >> 16) & 0x1f00000000ffffULL;
        v = (v | v >> 32) & 0x1fffffULL;
        return static_cast<int>(v);
    };
    return make_int3(compact(key), compact(key >> 1), compact(key >> 2));
}

//! A component of a cell, in a periodic box that of the image in the box. \returns whether it is in the box
__device__ inline bool moveInside(int count, bool isPeriodic, int* component)
{
    if (isPeriodic)
    {
        *component = (*component % count + count) % count;
    }
    return *component >= 0 && *component < count;
}

//! Where a cell that is displaced from another one stands, -1 if it holds nothing.
__device__ inline int findDisplaced(const CellHashView& hash,
                                    const CellsOfBox& box,
                                    const int3& cell,
                                    int dx,
                                    int dy,
                                    int dz)
{
    int x = cell.x + dx, y = cell.y + dy, z = cell.z + dz;
    const bool isInside = moveInside(box.counts[0], box.isPeriodic, &x)
                          && moveInside(box.counts[1], box.isPeriodic, &y)
                          && moveInside(box.counts[2], box.isPeriodic, &z);
    return isInside ? hash.find(mortonKey(x, y, z)) : -1;
}

} // namespace farfield

#endif
