/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Positions of the grid of cells at which errors are largest.
 */
#ifndef FARFIELD_CHOICE_WORST_POSITIONS_H
#define FARFIELD_CHOICE_WORST_POSITIONS_H

#include <array>
#include <vector>

#include "evaluation/charge_set.h"
#include "plan/discretisation.h"

namespace farfield
{

//! The position of the grid, see Request::gridOffset, that has a point in the corner of a cell.
std::array<double, 3> cornerAt(const Vec3& point, const Grid& leaf);

/*! \brief Points between the two particles of a pair that alone makes up much of all forces; none
 *         if there is no such pair.
 *
 *  In two cells it has another distance than in one, as positions are rounded in their cells: the
 *  error of all is that of this pair, and few positions of the grid show it.
 *  \param[in] x       [n][3], nm
 *  \param[in] forces  [n][3], at any position of the grid */
template<class Real>
std::vector<Vec3> pointsInMainPair(const ChargeSet<Real>& charges,
                                   const Real* x,
                                   const Mat3& box,
                                   const std::vector<Real>& forces);

/*! \brief Points that put pairs of few particles into cells that are just far, at the ends that
 *         face each other: where expansions converge worst.
 *
 *  Of many particles some are there at any position of the grid, of few at one of hundreds.
 *  \param[in] charges  few, see ChargeSet::areFew()
 *  \param[in] x        [n][3], nm */
template<class Real>
std::vector<Vec3> pointsAtFarPairs(const ChargeSet<Real>& charges,
                                   const Real* x,
                                   const Mat3& box,
                                   const Discretisation& d);

} // namespace farfield

#endif
