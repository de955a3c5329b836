/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What happens when the box changes.
 *
 *  Operators are in units of the cell size, so a box that is scaled needs nothing. One that is
 *  rotated is computed in a rotated frame, exactly. A small strain is followed to first order, by
 *  the virial to second order along one direction of strains; for a larger one the operators of the
 *  same cells are built anew, and where other cells would be better, or the size of cells has
 *  changed much, all is chosen anew.
 */
#ifndef FARFIELD_EVALUATION_BOX_FOLLOWER_H
#define FARFIELD_EVALUATION_BOX_FOLLOWER_H

#include "evaluation/operators_in_use.h"

namespace farfield
{

//! What a box needs, in the order of cost.
enum class BoxChange
{
    None,          //!< it is that of the operators
    Strained,      //!< the operators follow
    SameCellsAnew, //!< new operators for cells of another shape
    CellsAnew      //!< other cells
};

//! How to come to a box.
struct BoxPlan
{
    BoxChange change;
    OperatorFrame frame; //!< if Strained: that of the operators then
};

//! Largest relative error that may leave room for a strain followed to first order.
constexpr double c_mostOfStrain = 0.1;

/*! \brief Compares a box with the one that operators were built for.
 *  \param[in] d          of the operators
 *  \param[in] device     that has them
 *  \param[in] tolerance  their relative error; what following adds is much smaller
 *  \param[in] current    of the operators now */
BoxPlan planForBox(const Mat3& box,
                   const Discretisation& d,
                   Device device,
                   double tolerance,
                   const OperatorFrame& current);

} // namespace farfield

#endif
