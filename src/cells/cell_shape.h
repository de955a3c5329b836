/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which cells suit a box: the shape that errors depend on, and numbers that transforms
 *         like.
 */
#ifndef FARFIELD_CELLS_CELL_SHAPE_H
#define FARFIELD_CELLS_CELL_SHAPE_H

#include "cells/grid.h"

namespace farfield
{

/*! \brief Length of the longest cell diagonal over the distance of the nearest far cell; small
 *         is accurate. */
double shapeRatio(const Mat3& edges, int ws);
//! Cells of so much worse a shape, as shapeRatio(), than others are given up.
constexpr double c_worseShape = 1.05;

//! Cost of a transform of a length relative to one whose factors are 2, 3 and 5, as measured with
//! FFTW.
double transformPenalty(int length);

/*! \brief Chooses H for a wanted cell edge: the best-shaped cells among the neighbours of box /
 *         edge.
 *
 *  \param[in] box       box vectors, rows, nm
 *  \param[in] edge      wanted edge, nm
 *  \param[in] ws        direct range
 *  \param[in] coarsen   every entry of H is a multiple of this */
IntMat chooseCells(const Mat3& box, double edge, int ws, int coarsen);

} // namespace farfield

#endif
