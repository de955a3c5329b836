/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells in which particles may be until exchanges are planned anew.
 *
 *  The grid moves by up to a cell from step to step, and particles by a margin: a particle at cell
 *  coordinates u may be in the cells from floor(u - 1 - margin) to floor(u + margin) along each
 *  axis. Positions are taken to half a cell, so that what they reach is found for cells at once.
 */
#ifndef FARFIELD_PARALLEL_REACH_H
#define FARFIELD_PARALLEL_REACH_H

#include <array>
#include <vector>

#include "cells/grid.h"

namespace farfield
{

class Reach
{
public:
    //! \param[in] drift  how far particles may move, in cells along each axis
    Reach(const Grid& grid, double drift, int threads);

    //! parts() for such a drift.
    static int partsFor(double drift) { return halves(drift)[0] == halves(drift)[1] ? 1 : 8; }
    //! Parts of a cell that reach different cells: 8, or 1 if its halves make no difference.
    int parts() const { return parts_; }
    //! Where a particle at cell coordinates u is: parts() times its cell, plus the part of the cell.
    int place(const double* u) const;
    //! The cells that particles may come to. \param[in] places  [parts() * cells] those that hold some
    std::vector<char> reached(const std::vector<char>& places) const;
    //! The places from which particles may come to marked cells. \param[in] marked  [cells]
    std::vector<char> placesThatReach(const std::vector<char>& marked) const;
    //! Cells near marked ones. \param[in] marked  [cells]
    std::vector<char> near(const std::vector<char>& marked, int ws) const;

private:
    //! Cells from low to high along an axis.
    struct Range
    {
        int low, high;
        bool operator==(const Range& other) const { return low == other.low && high == other.high; }
    };
    using Box = std::array<Range, 3>;
    //! What positions in the halves of a cell reach along an axis.
    static std::array<Range, 2> halves(double drift);
    //! What particles of a part of a cell reach.
    Box boxOf(int part) const;
    //! Marks all cells that are displaced from marked ones by what is in a box.
    void spread(std::vector<char>* marked, const Box& box) const;

    const Grid& grid_;
    int threads_, parts_;
    std::array<Range, 2> ofHalf_;              //!< along an axis
    std::array<std::vector<int>, 3> next_;     //!< of each cell along the axes
    std::array<std::vector<int>, 3> previous_; //!< likewise
};

} // namespace farfield

#endif
