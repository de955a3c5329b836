/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells in which the particles of each rank may be until exchanges are planned anew.
 *
 *  Every rank knows these cells of all others, see Reach, so all know who needs what of whom, and no
 *  message has to say so.
 */
#ifndef FARFIELD_PARALLEL_REGIONS_H
#define FARFIELD_PARALLEL_REGIONS_H

#include <vector>

#include "parallel/ranks.h"
#include "plan/discretisation.h"

namespace farfield
{

/*! \brief Marks the cells that are near some.
 *  \param[in]  cells   indices
 *  \param[out] marked  [cells of the grid] */
void markNear(const Grid& grid, const std::vector<int>& cells, int ws, std::vector<char>* marked);

//! The cells of all ranks on all levels.
class Regions
{
public:
    Regions() = default;
    //! \param[in] leafCells  of every rank, ascending indices
    Regions(const Discretisation& d, const Mat3& box, const ByRank<int>& leafCells);

    //! Those of a rank, ascending indices. Level 0 is the coarsest.
    const std::vector<int>& cells(int level, int rank) const { return cells_[level][rank]; }
    //! Where those of level 0 are, by Grid::slot().
    std::vector<int> slots(int rank) const;
    const Grid& grid(int level) const { return grids_[level]; }
    int levels() const { return static_cast<int>(grids_.size()); }
    int ranks() const { return static_cast<int>(cells_[0].size()); }

    /*! \brief Cells of one rank whose multipoles another one needs for M2L, ascending indices.
     *
     *  Those whose parents are near parents of its cells: they are in interaction lists, or near.
     *  \param[in] level  above 0
     *  \param[in] nearParents  marked parents near those of the other one, see markNear() */
    std::vector<int> cellsUnder(int level, int rank, const std::vector<char>& nearParents) const;

private:
    //! Index of a cell's parent.
    int parentIndex(int level, int cell) const;

    std::vector<Grid> grids_;                          //!< by level
    std::vector<std::vector<std::vector<int>>> cells_; //!< by level and rank
};

} // namespace farfield

#endif
