/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error that order and cells have in condensed matter.
 */
#ifndef FARFIELD_PLAN_ERROR_ESTIMATE_H
#define FARFIELD_PLAN_ERROR_ESTIMATE_H

#include "plan/discretisation.h"

namespace farfield
{

/*! \brief Predicted relative RMS force error of leaf cells in condensed matter.
 *
 *  From measurements on water, extrapolated beyond them. */
double estimatedError(const Discretisation& d, const Grid& leaf);

//! Without a far field there is but rounding, which is not predicted.
constexpr double c_errorOfNearField = 1e-12;

/*! \brief The same from what it depends on, where there is a far field.
 *  \param[in] cellSize    of the leaves, nm
 *  \param[in] shapeRatio  of the cells, see shapeRatio()
 *  \param[in] levels      of cells that interact through M2L, at least 1 */
double estimatedError(int order,
                      int ws,
                      bool leastSquares,
                      double cellSize,
                      double shapeRatio,
                      int levels);

} // namespace farfield

#endif
