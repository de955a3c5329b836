/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where leaf cells are, and their images.
 */
#ifndef FARFIELD_PAIR_KERNELS_LEAF_FRAME_H
#define FARFIELD_PAIR_KERNELS_LEAF_FRAME_H

#include <cmath>

#include "base/vectors.h"

namespace farfield
{

//! Where the leaves are.
struct LeafFrame
{
    Vec3 origin;     //!< a corner of leaf 0, 0, 0
    Mat3 edges;      //!< of a leaf, rows
    Int3 counts;     //!< leaves in the box
    bool isPeriodic; //!< points outside are images of points in the box; else there are none outside

    //! Cube root of the volume of a leaf: the unit of positions.
    double unit() const { return std::cbrt(std::abs(edges.determinant())); }
};

/*! \brief Moves a cell, in a periodic box to the image that is in the box.
 *  \param[in] counts  cells of the box
 *  \returns false: without images, and it is outside */
inline bool moveInside(const Int3& D, const Int3& counts, bool isPeriodic, Int3* cell)
{
    bool inside = true;
    for (int k = 0; k < 3; k++)
    {
        int& c = (*cell)[k];
        c += D[k];
        if (isPeriodic)
        {
            c = (c % counts[k] + counts[k]) % counts[k];
        }
        inside = inside && c >= 0 && c < counts[k];
    }
    return inside;
}

} // namespace farfield

#endif
