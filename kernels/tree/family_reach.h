/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many families a tree may need: at any offset of the grid, and after some motion.
 *
 *  The lists of a tree have a length that is fixed where they are recorded, but the grid lies
 *  elsewhere at every step and particles move. For each of the 2 x 2 x 2 offsets 1/4 and 3/4 of a
 *  leaf cell, the cells are counted that a particle is in or nearer to than 1/4 + margin leaf cells
 *  in every direction. An offset is at most 1/4 from one of the eight, so the largest of the eight
 *  counts bounds the occupied cells at every offset, as long as no particle has moved farther than
 *  the margin.
 */
#ifndef FARFIELD_KERNELS_TREE_FAMILY_REACH_H
#define FARFIELD_KERNELS_TREE_FAMILY_REACH_H

#include <array>
#include <vector>

#include "runtime/device.h"
#include "runtime/layout.h"
#include "tree/family_tree.h"

namespace farfield
{

//! Offsets that are counted apart: one bit each.
constexpr int c_reachOffsets = 8;

/*! \brief Visits the cells of a level that a particle reaches.
 *  \param[in] position  in leaf cells from the origin of the box, any image
 *  \param[in] margin    motion to allow for, leaf cells
 *  \param[in] depth     levels between this one and the leaves
 *  \param[in] visit     called with the storage index of a cell and the bits of its offsets */
template<class Visit>
FARFIELD_HD void forReachedCells(const CellGrid& grid,
                                 const double* position,
                                 double margin,
                                 int depth,
                                 const Visit& visit)
{
    const double size = static_cast<double>(1 << depth);
    int first[3], count[3];
    // of cells first, first + 1, ... along an axis: bit s for offset s. What is reached is no
    // longer than the smallest cell, two leaf cells.
    unsigned bits[3][2];
    for (int k = 0; k < 3; k++)
    {
        int low[2], high[2];
        for (int s = 0; s < 2; s++)
        {
            const double at = position[k] - (0.25 + 0.5 * s);
            low[s]          = static_cast<int>(floor((at - 0.25 - margin) / size));
            high[s]         = static_cast<int>(floor((at + 0.25 + margin) / size));
        }
        // offset 1 lies behind offset 0
        first[k] = low[1];
        count[k] = (high[0] > low[1]) ? 2 : 1;
        for (int c = 0; c < count[k]; c++)
        {
            const int cell = first[k] + c;
            bits[k][c]     = (cell >= low[0] && cell <= high[0] ? 1U : 0U)
                         | (cell >= low[1] && cell <= high[1] ? 2U : 0U);
        }
    }
    for (int z = 0; z < count[2]; z++)
    {
        const unsigned ofZ = (bits[2][z] & 1U ? 0x0fU : 0U) | (bits[2][z] & 2U ? 0xf0U : 0U);
        for (int y = 0; y < count[1]; y++)
        {
            const unsigned ofY = (bits[1][y] & 1U ? 0x33U : 0U) | (bits[1][y] & 2U ? 0xccU : 0U);
            for (int x = 0; x < count[0]; x++)
            {
                const unsigned ofX =
                        (bits[0][x] & 1U ? 0x55U : 0U) | (bits[0][x] & 2U ? 0xaaU : 0U);
                if ((ofX & ofY & ofZ) != 0)
                {
                    int c[3] = { first[0] + x, first[1] + y, first[2] + z };
                    grid.reduce(c);
                    visit(grid.index(c), ofX & ofY & ofZ);
                }
            }
        }
    }
}

//! Most margin that forReachedCells() has room for: less than half a leaf cell.
constexpr double c_largestReachMargin = 0.45;

//! Counts on the device; the host looks at the last count without waiting.
template<class Real>
class FamilyReach
{
public:
    FamilyReach() = default;
    //! \param[in] grids  cells of every level, coarsest first
    void resize(const std::vector<CellGrid>& grids);
    /*! \brief Counts after a sort.
     *  \param[in] inverseEdges  maps relative positions to fractions of a leaf cell (row vectors)
     *  \param[in] margin     motion to allow for, leaf cells, at most c_largestReachMargin
     *  \param[in] origin     [3] offset of the sort, leaf cells, device memory
     *  \param[in] evaluation [1] number of the sort, device memory; null: count in any case. With
     *                        many particles one in c_interval evaluations counts */
    void count(const SortedParticles<Real>& particles,
               const double inverseEdges[3][3],
               double margin,
               const double* origin,
               const int* evaluation,
               cudaStream_t stream);
    //! Families that a level > 0 needs by the last count that has come to an end.
    int families(int level) const;

    //! With more particles than this, one in so many evaluations counts.
    static constexpr int c_many = 200000, c_interval = 4;

    //! What the kernel needs.
    struct View
    {
        int levels;
        CellGrid grid[c_maxLevels];
        int first[c_maxLevels]; //!< first mark of a level's cells
        unsigned* marks;        //!< 24 bits: the count that it is of; 8 bits: offsets
        unsigned* stamp;        //!< [1] the last count
        unsigned* done;         //!< [1] blocks that have finished
        int* running;           //!< [levels][c_reachOffsets]
        int* result;            //!< [levels] page-locked host memory
    };

private:
    View view_ = {};
    DeviceBuffer<unsigned> marks_;
    PinnedBuffer<std::array<int, c_maxLevels>> result_;
};

} // namespace farfield

#endif
