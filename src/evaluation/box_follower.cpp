/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/box_follower.h"

#include <algorithm>
#include <cmath>

#include "cells/cell_shape.h"
#include "operators/m2l_periodic_operators.h"

namespace farfield
{
namespace
{

//! Size of cells relative to the reference box that still suits: a logarithm.
constexpr double c_resized = 0.15;
/*! \brief Largest strain that the virial follows to first order, in terms of the error of the
 *         operators.
 *
 *  Where energies and forces are off by the second order of the strain, the virial, a derivative, is
 *  off by the first, unless derivatives are interpolated along the strain. A strain of one to nine
 *  times the error of the forces changes the virial as much as truncation does: measured on water at
 *  orders 7 to 13 and on nine charges at 7 and 12. */
constexpr double c_ofVirial = 5;
//! Parts of the error of the operators that a neglected strain may make.
constexpr double c_neglected = 2e-3;

//! How the cells of a box differ from those of the reference box.
struct Deformation
{
    Mat3 rotation, strain; //!< strain: traceless
    bool sheared, resized; //!< too much for the operators
};

//! Largest component of a strain.
double sizeOf(const Mat3& strain)
{
    return strain.cwiseAbs().maxCoeff();
}

//! Whether derivatives can be interpolated; those of operators of lists on the GPU are not.
bool isInterpolated(const Discretisation& d, Device device)
{
    return device == Device::Cpu || d.levels == 1;
}

/*! \brief Largest strain that operators follow.
 *
 *  Second-order terms are about the square of the strain. */
double largestStrain(double tolerance, bool isInterpolated)
{
    const double ofForces = std::sqrt(0.1 * tolerance);
    return isInterpolated ? ofForces : std::min(ofForces, c_ofVirial * tolerance);
}

Deformation deformation(const Grid& then, const Grid& now, double tolerance, double largest)
{
    // Edges of cells transform as r -> r (1 + strain) rotation; isotropic scaling is divided out.
    const Mat3 F = then.scaledEdges().inverse() * now.scaledEdges();
    Eigen::JacobiSVD<Mat3> svd(F, Eigen::ComputeFullU | Eigen::ComputeFullV);
    Deformation result;
    result.rotation = svd.matrixU() * svd.matrixV().transpose();
    result.strain   = svd.matrixU() * svd.singularValues().asDiagonal() * svd.matrixU().transpose()
                    - Mat3::Identity();
    result.strain -= result.strain.trace() / 3 * Mat3::Identity();
    // operators of rectangular cells rely on reflections, which a shear breaks
    const double shear = std::max({ std::abs(result.strain(0, 1)),
                                    std::abs(result.strain(0, 2)),
                                    std::abs(result.strain(1, 2)) });
    result.sheared     = sizeOf(result.strain) > largest
                     || (then.edges().isDiagonal(1e-10) && shear > c_neglected * tolerance);
    result.resized = std::abs(std::log(now.unit() / then.unit())) > c_resized;
    return result;
}

} // namespace

BoxPlan planForBox(const Mat3& box,
                   const Discretisation& d,
                   Device device,
                   double tolerance,
                   const OperatorFrame& current)
{
    BoxPlan plan = { BoxChange::None, current };
    if (box == current.box)
    {
        return plan;
    }
    const Grid then          = d.leafGrid(d.referenceBox);
    const Grid now           = d.leafGrid(box);
    const bool interpolated  = isInterpolated(d, device);
    const double largest     = largestStrain(tolerance, interpolated);
    const Deformation change = deformation(then, now, tolerance, largest);
    if (change.sheared || change.resized)
    {
        const Grid best(chooseCells(box, then.unit(), d.ws, 1 << (d.levels - 1)), box);
        const bool suits =
                !change.resized
                && shapeRatio(now.edges(), d.ws) <= c_worseShape * shapeRatio(best.edges(), d.ws);
        plan.change = suits ? BoxChange::SameCellsAnew : BoxChange::CellsAnew;
        return plan;
    }
    plan.change          = BoxChange::Strained;
    OperatorFrame& frame = plan.frame;
    frame.box            = box;
    // rounding of the box vectors alone is no reason for new operators
    if (sizeOf(change.strain - current.strain) > c_neglected * tolerance)
    {
        frame.strain = change.strain;
    }
    const bool isRotated = sizeOf(change.rotation - Mat3::Identity()) >= 1e-12;
    frame.rotation       = isRotated ? change.rotation : Mat3::Identity();
    const Mat3 onLine    = alongStrain(frame.strain, frame.virialStrain) * frame.virialStrain;
    if (interpolated && sizeOf(frame.strain - onLine) > c_ofVirial * tolerance)
    {
        // as far away as can be: differences of derivatives are then more than their rounding
        frame.virialStrain = largest / sizeOf(frame.strain) * frame.strain;
    }
    return plan;
}

} // namespace farfield
