/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells of all levels of a tree that hold points, and how they are related, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_CELLS_OF_LEVELS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_CELLS_OF_LEVELS_H

#include <cstdint>
#include <vector>

#include "pair_kernels/cell_hash_on_device.h"
#include "pair_kernels/cub_room.h"

namespace farfield
{

//! The cells of a level, in Morton order. Plain data.
struct CellsOfLevel
{
    int count;
    const std::uint64_t* keys;
    const int* parent;             //!< in the coarser level
    const int* firstChild;         //!< in the finer level
    const unsigned char* children; //!< which octants have one
    const int*
            near; //!< [count][(2 ws + 1)^3] cells near each, see nearPlace(); -1: it holds nothing
    const int* ofOctant;    //!< cells by octant
    const int* octantStart; //!< [9]

#if defined(__CUDACC__)
    //! The child of a cell in an octant, -1 if there is none.
    __device__ int child(int cell, int octant) const
    {
        const unsigned int mask = children[cell];
        return (mask >> octant & 1U) != 0 ? firstChild[cell] + __popc(mask & ((1U << octant) - 1))
                                          : -1;
    }
#endif
};

//! Where a displacement stands among those of near cells.
constexpr int nearPlace(int ws, int x, int y, int z)
{
    const int width = 2 * ws + 1;
    return ((x + ws) * width + y + ws) * width + z + ws;
}

class CellsOfLevels
{
public:
    /*! \brief Makes all levels from the leaves.
     *  \param[in] leaves  their keys, ascending; kept as they are
     *  \param[in] counts  cells of all levels, the coarsest first
     *  \param[in] box     leaves */
    void set(const std::uint64_t* leaves,
             const std::vector<int>& counts,
             const CellsOfBox& box,
             int ws,
             cudaStream_t stream);

    CellsOfLevel view(int level) const;

private:
    struct Buffers
    {
        int count = 0;
        const std::uint64_t* keys;
        DeviceBuffer<std::uint64_t> ownKeys;
        DeviceBuffer<int> heads, parent, firstChild, near, cells, ofOctant, octantStart;
        DeviceBuffer<unsigned char> children, octants, sortedOctants;
        CellHashOnDevice hash;
    };

    //! Makes a level from the finer one.
    void setCoarser(Buffers* fine, Buffers* coarse, cudaStream_t stream);
    //! Sorts cells by octant.
    void sortByOctant(Buffers* level, cudaStream_t stream);

    CubRoom room_;
    std::vector<Buffers> levels_;
};

} // namespace farfield

#endif
