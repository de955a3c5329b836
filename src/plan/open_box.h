/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The boxes of particles without images, along all axes or along z.
 *
 *  They are computed in a box that is more than half empty along such an axis, with operators that
 *  know one image of each cell there (openSums(), and latticeSums() of a slab). That is exact as long
 *  as the cells of the coarsest level in which any two particles may lie are less than half the box
 *  apart. Where the box is has no meaning, as positions are wrapped into it.
 */
#ifndef FARFIELD_PLAN_OPEN_BOX_H
#define FARFIELD_PLAN_OPEN_BOX_H

#include <functional>

#include "plan/discretisation.h"

namespace farfield
{

/*! \brief Whether the near field rounds positions relative to the centres of cells.
 *
 *  Without images it takes them as they are given. Cells may then be as large as what has flown away
 *  makes them. */
inline bool roundsInCells(Boundary boundary)
{
    return boundary != Boundary::Open;
}

//! The cells of the coarsest level of an open box.
struct OpenCells
{
    Int3 counts; //!< in each dimension
    int ws;      //!< direct range
    Boundary boundary;

    //! \param[in] coarse  H of the coarsest level, diagonal along axes without images
    static OpenCells of(const IntMat& coarse, int ws, Boundary boundary)
    {
        return { { coarse[0][0], coarse[1][1], coarse[2][2] }, ws, boundary };
    }
    /*! \brief Whether they keep particles of such an extent, nm, apart from images that are not
     *         there, which would be near otherwise or at displacements that the sums do not have. */
    bool hold(const Mat3& box, const Vec3& extent) const;
    //! Whether any two particles that they hold are in near cells, or the same: no pair is left to M2L.
    bool areAllNear() const;
};

/*! \brief A box for particles, and room to move.
 *  \param[in] boundary  not Periodic
 *  \param[in] periodic  a box whose vectors along periodic axes stay
 *  \param[in] extent  of the particles, nm; along periodic axes, of the box
 *  \param[in] cell    edge that cells are to have, nm, or 0
 *  \param[in] factor  lengths of the box over these */
Mat3 openBox(Boundary boundary,
             const Mat3& periodic,
             const Vec3& extent,
             double cell,
             double factor);

/*! \brief The same for another periodic box: the shape of cells is kept where the box grows.
 *
 *  The result does not depend on boxes in between, and holds what the first one held.
 *  \param[in] chosen  a box as openBox() makes it, which cells were chosen for */
Mat3 openBoxLike(Boundary boundary, const Mat3& periodic, const Mat3& chosen);

/*! \brief How a box grows that particles have left.
 *
 *  It is doubled, not made to fit: what evaporates leaves it as often as its distance doubles, not at
 *  every tenth, and the cells of what stays behind may be what they were. */
struct Growth
{
    Int3 factors = { 1, 1, 1 };  //!< of the box along its axes, powers of two
    Vec3 extent  = Vec3::Zero(); //!< that it has to hold then, nm

    bool any() const { return factors[0] * factors[1] * factors[2] > 1; }
};
/*! \param[in] extent  of the particles, nm, see extentInBox()
 *  \param[in] chosen  the one that cells were chosen for */
Growth growthFor(Boundary boundary, const Vec3& extent, const Vec3& chosen);

//! The extent, nm, with those of a box along periodic axes.
Vec3 extentInBox(Boundary boundary, const Mat3& periodic, const Vec3& extent);

//! The largest extent, nm, that is like the one that cells were chosen for: they have to hold it.
Vec3 largestLike(const Vec3& chosen);

/*! \brief Whether particles are about as far apart as those that cells were chosen for.
 *
 *  Others need another choice even where cells hold them: more of them may be far from each other. */
bool isLikeExtent(const Vec3& extent, const Vec3& chosen);

/*! \brief The box in which what chooseDiscretisation() chooses costs least; particles without images.
 *  \param[in] task     its box gives the vectors along periodic axes, its occupancy has no meaning
 *  \param[in] measure  returns the occupancy of a box
 *  \throws Error  as chooseDiscretisation() */
Mat3 chooseOpenBox(const PlanTask& task, const std::function<Occupancy(const Mat3&)>& measure);

} // namespace farfield

#endif
