/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How evenly particles fill a box, at every size of cells.
 */
#ifndef FARFIELD_PLAN_OCCUPANCY_H
#define FARFIELD_PLAN_OCCUPANCY_H

#include <vector>

#include "cells/grid.h"

namespace farfield
{

/*! \brief Occupied cells and pairs in them, counted for cells of doubling size.
 *
 *  Both are relative to an even filling of the box, which makes them smooth functions of the size;
 *  in between they are interpolated. */
class Occupancy
{
public:
    //! Particles that fill a volume (nm^3) evenly, the rest of a box is empty.
    Occupancy(double volume) : volume_(volume) {}
    /*! \brief Counts: one sort of the particles, then merges cells by eight.
     *  \param[in] x    positions, nm, [n][3], any image, finite
     *  \param[in] n    particles
     *  \param[in] box  box vectors, rows, nm */
    template<class Real>
    Occupancy(const Real* x, int n, const Mat3& box);

    //! Cells of the given edge (nm) that hold particles; less than 1 for cells beyond the box.
    double cells(double edge, double boxVolume) const;
    /*! \brief Density about particles in units of the mean density of the box: the mean over pairs,
     *         in cubes of the given width (nm). */
    double density(double width, double boxVolume) const;

private:
    struct Sample
    {
        double edge;     //!< nm
        double occupied; //!< fraction of the cells
        double density;  //!< pairs within cells over those of an even filling
    };
    double interpolated(double edge, double Sample::*value) const;

    double volume_ = 0; //!< of an even filling, without samples
    std::vector<Sample> samples_;
};

} // namespace farfield

#endif
