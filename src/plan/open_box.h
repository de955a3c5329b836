/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The boxes of particles without images.
 *
 *  They are computed in a box that is more than half empty, with operators that know one image of
 *  each cell (openSums()). That is exact as long as the cells of the coarsest level in which any two
 *  particles may lie are less than half the box apart in each dimension. Where the box is has no
 *  meaning, as positions are wrapped into it.
 */
#ifndef FARFIELD_PLAN_OPEN_BOX_H
#define FARFIELD_PLAN_OPEN_BOX_H

#include "base/vectors.h"

namespace farfield
{

//! The cells of the coarsest level of an open box.
struct OpenCells
{
    Int3 counts; //!< in each dimension
    int ws;      //!< direct range

    //! \param[in] coarse  H of the coarsest level, diagonal
    static OpenCells of(const IntMat& coarse, int ws)
    {
        return { { coarse[0][0], coarse[1][1], coarse[2][2] }, ws };
    }
    /*! \brief Whether they keep particles of such an extent, nm, apart from images, which would be
     *         near otherwise or at displacements that openSums() does not have. */
    bool hold(const Mat3& box, const Vec3& extent) const;
};

/*! \brief A box for particles, and room to move.
 *  \param[in] extent  of the particles, nm
 *  \param[in] cell    edge that cells are to have, nm, or 0
 *  \param[in] factor  lengths of the box over these */
Mat3 openBox(const Vec3& extent, double cell, double factor);

//! The largest extent, nm, that is like the one that cells were chosen for: they have to hold it.
Vec3 largestLike(const Vec3& chosen);

/*! \brief Whether particles are about as far apart as those that cells were chosen for.
 *
 *  Others need another choice even where cells hold them: more of them may be far from each other. */
bool isLikeExtent(const Vec3& extent, const Vec3& chosen);

} // namespace farfield

#endif
