/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where the cells of a periodic box lie in storage, and their images; for host and device.
 */
#ifndef FARFIELD_CELLS_CELL_INDEX_H
#define FARFIELD_CELLS_CELL_INDEX_H

#include "base/host_device.h"

namespace farfield
{

//! The cells of a box: those that differ by a row of H are images of each other. Plain data.
struct CellGrid
{
    int H[3][3]; //!< lower triangular
    int cells;   //!< of the box

    //! \param[in] rows  of H: anything with rows[i][j]
    template<class IntegerMatrix>
    static CellGrid of(const IntegerMatrix& rows)
    {
        CellGrid grid;
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                grid.H[i][j] = rows[i][j];
            }
        }
        grid.cells = static_cast<int>(1LL * grid.H[0][0] * grid.H[1][1] * grid.H[2][2]);
        return grid;
    }

    //! The cell at a position in storage order, the first component fastest.
    FARFIELD_HD void cell(int index, int* c) const
    {
        const int row = index / H[0][0];
        c[0]          = index - row * H[0][0];
        c[2]          = row / H[1][1];
        c[1]          = row - c[2] * H[1][1];
    }
    //! Position of a reduced cell in storage order.
    FARFIELD_HD int index(const int* c) const { return (c[2] * H[1][1] + c[1]) * H[0][0] + c[0]; }
    //! Brings a cell to its image in the range of index(); quick for cells near the box. H is
    //! triangular, so the last component comes first.
    FARFIELD_HD void reduce(int* c) const
    {
        for (int k = 2; k >= 0; k--)
        {
            while (c[k] < 0)
            {
                for (int j = 0; j <= k; j++)
                {
                    c[j] += H[k][j];
                }
            }
            while (c[k] >= H[k][k])
            {
                for (int j = 0; j <= k; j++)
                {
                    c[j] -= H[k][j];
                }
            }
        }
    }
    //! The same for cells any number of boxes away.
    FARFIELD_HD void reduceDistant(int* c) const
    {
        // sums of products of large numbers: a skewed box may need more than 32 bits on the way
        long long wide[3] = { c[0], c[1], c[2] };
        for (int k = 2; k >= 0; k--)
        {
            const long long length = H[k][k];
            if (wide[k] >= 0 && wide[k] < length)
            {
                continue;
            }
            const long long boxes = wide[k] / length - (wide[k] % length < 0 ? 1 : 0);
            for (int j = 0; j <= k; j++)
            {
                wide[j] -= boxes * H[k][j];
            }
        }
        for (int k = 0; k < 3; k++)
        {
            c[k] = static_cast<int>(wide[k]);
        }
    }
};

} // namespace farfield

#endif
