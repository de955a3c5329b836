/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cell of a position and the position in it; for host and device.
 */
#ifndef FARFIELD_CELLS_BINNING_H
#define FARFIELD_CELLS_BINNING_H

#include "cells/cell_index.h"

namespace farfield
{

//! From positions to cell coordinates and back, in double precision. Plain data.
struct BinFrame
{
    double toCells[3][3]; //!< row vectors: rotation^T inverse edges
    double edges[3][3];   //!< rows: edges of a cell in the frame of the operators, nm

    /*! \param[in] edgeRows      rows, nm, and their inverse: anything with (i, j)
     *  \param[in] inverse
     *  \param[in] rotation      from the frame of the operators to that of the positions */
    template<class Rows>
    static BinFrame of(const Rows& edgeRows, const Rows& inverse, const Rows& rotation)
    {
        const Rows toCells = rotation.transpose() * inverse;
        BinFrame frame;
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                frame.toCells[i][j] = toCells(i, j);
                frame.edges[i][j]   = edgeRows(i, j);
            }
        }
        return frame;
    }
};

//! Cells that a position may be outside of the box: beyond this a cell index is meaningless.
constexpr double c_farthestCell = 1e9;

/*! \brief Finds the cell of a position, in storage order, and the position relative to its centre.
 *  \param[in]  offset    origin of the cells, in cells
 *  \param[out] relative  nm, in the frame of the operators
 *  \returns false if the position is not finite or beyond c_farthestCell; nothing is set then */
template<class Real>
FARFIELD_HD bool binPosition(const CellGrid& grid,
                             const BinFrame& frame,
                             const double* offset,
                             const Real* x,
                             int* cell,
                             Real* relative)
{
    const double r[3] = { static_cast<double>(x[0]),
                          static_cast<double>(x[1]),
                          static_cast<double>(x[2]) };
    double f[3];
    int c[3];
    bool valid  = true;
    bool inside = true;
    bool near   = true;
    for (int k = 0; k < 3; k++)
    {
        const double s = r[0] * frame.toCells[0][k] + r[1] * frame.toCells[1][k]
                         + r[2] * frame.toCells[2][k] - offset[k];
        // NaN fails the comparison too
        valid               = valid && s < c_farthestCell && s > -c_farthestCell;
        const int truncated = valid ? static_cast<int>(s) : 0;
        c[k]                = truncated - (s < truncated ? 1 : 0);
        f[k]                = s - c[k] - 0.5;
        const int length    = grid.H[k][k];
        inside              = inside && c[k] >= 0 && c[k] < length;
        near                = near && c[k] >= -length && c[k] - length < length;
    }
    if (!valid)
    {
        return false;
    }
    if (!inside)
    {
        if (near)
        {
            grid.reduce(c);
        }
        else
        {
            grid.reduceDistant(c);
        }
    }
    *cell = grid.index(c);
    for (int k = 0; k < 3; k++)
    {
        relative[k] = static_cast<Real>(f[0] * frame.edges[0][k] + f[1] * frame.edges[1][k]
                                        + f[2] * frame.edges[2][k]);
    }
    return true;
}

} // namespace farfield

#endif
