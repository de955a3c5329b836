/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which cells hold particles.
 */
#ifndef FARFIELD_KERNELS_SORT_OCCUPIED_CUH
#define FARFIELD_KERNELS_SORT_OCCUPIED_CUH

#include "near/near_pieces.h"

namespace farfield
{

constexpr int c_occupiedThreads = 128;

//! Whether a cell is to be listed, see listOccupied().
struct IsOccupied
{
    const int* start;
    int logBins, ws;
    NeighbourFinder grid;

    template<int Ws>
    __device__ bool meetsOurs(int cell) const
    {
        using Pieces = NearPieces<Ws, true>;
        int c[3];
        grid.cell(cell, c);
        bool any = false;
        for (int piece = 0; piece < Pieces::c_count && !any; piece++)
        {
            int D[3];
            Pieces::displacement(piece, D);
            const int* bins = start + (grid.neighbour(c, D) << 1);
            any             = bins[1] > bins[0];
        }
        return any;
    }
    __device__ bool operator()(int cell) const
    {
        const int* bins = start + (cell << logBins);
        if (bins[1 << logBins] == bins[0])
        {
            return false;
        }
        return logBins == 0 || (ws == 1 ? meetsOurs<1>(cell) : meetsOurs<2>(cell));
    }
};

//! A thread for each cell: one that listed several would look at their neighbours one after another.
static __global__ void __launch_bounds__(c_occupiedThreads)
        markOccupied(const __grid_constant__ IsOccupied isOccupied, int cells, unsigned char* marks)
{
    const int cell = blockIdx.x * c_occupiedThreads + threadIdx.x;
    if (cell < cells)
    {
        marks[cell] = isOccupied(cell) ? 1 : 0;
    }
}

} // namespace farfield

#endif
