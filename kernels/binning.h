/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cell of a position and the position in it; for host and device.
 */
#ifndef FARFIELD_KERNELS_BINNING_H
#define FARFIELD_KERNELS_BINNING_H

#include "layout.h"

namespace farfield
{

//! From positions to cell coordinates and back; double precision as on the CPU (see
//! CellList::sort).
struct BinFrame
{
    double toCells[3][3]; //!< row vectors: rotation^T inverse edges
    double edges[3][3];   //!< rows: edges of a cell in the frame of the operators, nm
};

//! As CellGrid::reduce(), for cells any number of boxes away.
FARFIELD_HD void reduceDistant(const CellGrid& grid, int* c)
{
    // sums of products of large numbers: a skewed box may need more than 32 bits on the way
    long long wide[3] = { c[0], c[1], c[2] };
    for (int k = 2; k >= 0; k--)
    {
        const long long length = grid.H[k][k];
        long long boxes        = wide[k] / length;
        boxes -= (wide[k] - boxes * length < 0) ? 1 : 0;
        for (int j = 0; j <= k; j++)
        {
            wide[j] -= boxes * grid.H[k][j];
        }
    }
    for (int k = 0; k < 3; k++)
    {
        c[k] = static_cast<int>(wide[k]);
    }
}

/*! \brief Finds the cell of a position, in storage order, and the position relative to its centre.
 *  \param[in]  offset    origin of the cells, in cells
 *  \param[out] relative  nm, in the frame of the operators
 *  \returns false if the position is not finite or beyond a billion cells; nothing is set then */
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
        // beyond this a cell index is meaningless; NaN fails the comparison too
        valid               = valid && s < 1e9 && s > -1e9;
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
            reduceDistant(grid, c);
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
