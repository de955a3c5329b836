/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Finding the occupied cells of a tree: the steps for one cell, for host and device.
 *
 *  An occupied cell of a level but the finest, a parent, makes a family of the next level. Marks of
 *  the parents of all levels lie one behind another, in storage order, so that one prefix sum over
 *  them numbers the families of every level.
 */
#ifndef FARFIELD_KERNELS_TREE_FAMILY_TREE_H
#define FARFIELD_KERNELS_TREE_FAMILY_TREE_H

#include "runtime/layout.h"

namespace farfield
{

//! More than the doublings of any grid whose cells an int can count.
constexpr int c_maxLevels = 12;

//! Lists of all levels, in device memory; elements 0 of those that are per family are unused.
struct FamilyTree
{
    int levels, ws;
    CellGrid grid[c_maxLevels];
    int capacity[c_maxLevels];
    int first[c_maxLevels];       //!< first mark of the cells of a level
    int marks;                    //!< of all levels but the finest
    int* mark;                    //!< [marks + 1] whether a cell is occupied; zero between steps
    int* rank;                    //!< [marks + 1] prefix sum of the marks
    const int* slotOf0;           //!< [cells of level 0]
    int* count;                   //!< [levels] families in use
    int* needed;                  //!< [levels] families there should be room for
    int* overflow;                //!< [1] page-locked host memory: set where one had no room
    int* parent[c_maxLevels];     //!< [capacity] parent cell of each family
    int* parentSlot[c_maxLevels]; //!< [capacity]
    int* neighbours[c_maxLevels]; //!< as Families::neighbours
    int* cellOf[c_maxLevels];     //!< [8 capacity] -1 for none
    int* slotOf[c_maxLevels];     //!< [cells] -1 for none

    FARFIELD_HD int neighbourCount() const
    {
        const int w = 2 * ws + 1;
        return w * w * w;
    }

    //! Family of a cell, in the next finer level; -1 if the cell is empty or there is no room.
    FARFIELD_HD int familyOf(int level, int cell) const
    {
        const int at     = first[level] + cell;
        const int before = rank[at];
        const int family = before - rank[first[level]];
        return (rank[at + 1] > before && family < capacity[level + 1]) ? family : -1;
    }

    //! Marks the ancestors of a leaf cell that holds particles. Others may write the same.
    FARFIELD_HD void markAncestors(int leaf) const
    {
        int c[3];
        grid[levels - 1].cell(leaf, c);
        for (int level = levels - 2; level >= 0; level--)
        {
            for (int k = 0; k < 3; k++)
            {
                c[k] /= 2;
            }
            mark[first[level] + grid[level].index(c)] = 1;
        }
    }

    //! Takes the children of a family of the last step out of the lists.
    FARFIELD_HD void forget(int level, int family) const
    {
        if (family < count[level])
        {
            for (int o = 0; o < 8; o++)
            {
                int* cell = cellOf[level] + static_cast<long long>(o) * capacity[level] + family;
                slotOf[level][*cell] = -1;
                *cell                = -1;
            }
        }
    }

    //! Whether families of the present step have no room.
    FARFIELD_HD bool hasOverflow() const
    {
        bool any = false;
        for (int level = 1; level < levels; level++)
        {
            any = any || needed[level] > capacity[level];
        }
        return any;
    }

    //! Makes the family of a cell if it is marked, and removes the mark; at is the position of the
    //! mark.
    FARFIELD_HD void place(int at) const
    {
        int level = 0;
        while (level + 2 < levels && at >= first[level + 1])
        {
            level++;
        }
        const int finer = level + 1;
        const int cell  = at - first[level];
        if (cell == 0)
        {
            const int end = (level + 2 < levels) ? first[finer] : marks;
            const int all = rank[end] - rank[at];
            needed[finer] = all;
            count[finer]  = (all < capacity[finer]) ? all : capacity[finer];
        }
        if (rank[at + 1] == rank[at])
        {
            return;
        }
        mark[at]         = 0;
        const int family = familyOf(level, cell);
        if (family < 0)
        {
            return;
        }
        int c[3];
        grid[level].cell(cell, c);
        parent[finer][family] = cell;
        for (int o = 0; o < 8; o++)
        {
            // the finer grid has twice the rows of H, so that children stay in its range
            const int child[3]   = { 2 * c[0] + (o & 1),
                                     2 * c[1] + ((o >> 1) & 1),
                                     2 * c[2] + (o >> 2) };
            const int index      = grid[finer].index(child);
            const int slot       = o * capacity[finer] + family;
            cellOf[finer][slot]  = index;
            slotOf[finer][index] = slot;
        }
        if (level == 0)
        {
            parentSlot[finer][family] = slotOf0[cell];
            return;
        }
        // slotOf of this level is being written at the same time
        const int octant          = (c[0] & 1) | ((c[1] & 1) << 1) | ((c[2] & 1) << 2);
        const int coarse[3]       = { c[0] / 2, c[1] / 2, c[2] / 2 };
        const int above           = familyOf(level - 1, grid[level - 1].index(coarse));
        parentSlot[finer][family] = (above < 0) ? -1 : octant * capacity[level] + above;
    }

    //! Finds one neighbour of a family; which is that of neighbourIndex().
    FARFIELD_HD void link(int level, int which, int family) const
    {
        int found = -1;
        if (family < count[level])
        {
            const CellGrid& coarser = grid[level - 1];
            const int w             = 2 * ws + 1;
            int c[3];
            coarser.cell(parent[level][family], c);
            c[0] -= which % w - ws;
            c[1] -= which / w % w - ws;
            c[2] -= which / (w * w) - ws;
            coarser.reduce(c);
            found = familyOf(level - 1, coarser.index(c));
        }
        neighbours[level][static_cast<long long>(which) * capacity[level] + family] = found;
    }
};

} // namespace farfield

#endif
