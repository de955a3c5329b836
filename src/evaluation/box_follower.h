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

#include <algorithm>

#include "evaluation/operators_in_use.h"
#include "plan/error_estimate.h"
#include "plan/operator_limits.h"

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

/*! \brief Makes the operators those of a box.
 *  \param[in] device         that has them
 *  \param[in] measuredError  relative error of the forces; 0: it was not measured
 *  \param[in] chooseCells    chooses cells for the box and builds their operators */
template<class Real, class ChooseCells>
void followBox(const Mat3& box,
               Device device,
               double measuredError,
               OperatorsInUse<Real>* operators,
               const ChooseCells& chooseCells)
{
    const Discretisation& d = operators->discretisation();
    const Grid leaf         = d.leafGrid(d.referenceBox);
    double tolerance        = std::min(estimatedError(d, leaf), c_mostOfStrain);
    if (measuredError > 0)
    {
        // where forces cancel, what is measured may be rounding: that is no room for strain
        tolerance = std::min(tolerance, measuredError);
    }
    const BoxPlan plan = planForBox(box, d, device, tolerance, operators->frame());
    switch (plan.change)
    {
        case BoxChange::None:
            operators->rebuild();
            break;
        case BoxChange::Strained:
            operators->rebuild();
            operators->change([&] { operators->setBox(plan.frame); });
            break;
        case BoxChange::SameCellsAnew:
        {
            Discretisation next = d;
            next.referenceBox   = box;
            // a box that is no longer rectangular has more operators for the same cells
            if (whyTooLarge(next, device, sizeof(Real)).empty())
            {
                operators->change([&] { operators->build(next); });
            }
            else
            {
                chooseCells();
            }
            break;
        }
        case BoxChange::CellsAnew:
            chooseCells();
            break;
    }
}

} // namespace farfield

#endif
