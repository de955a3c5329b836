/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The choice of order, direct range, cells and M2L engine.
 */
#ifndef FARFIELD_PLAN_DISCRETISATION_H
#define FARFIELD_PLAN_DISCRETISATION_H

#include <limits>
#include <string>
#include <vector>

#include "farfield/farfield.h"

#include "cells/grid.h"
#include "operators/background.h"
#include "plan/network.h"
#include "plan/occupancy.h"

namespace farfield
{

//! Most leaf cells of a box: tables over all of them have to fit into memory.
constexpr double c_maxCells = 1 << 27;

/*! \brief Excluded pairs closer than this, nm, are left out of the near field unless another
 *         range is set: subtracted from forces of the size of chemical ones they would cancel
 *         all digits. */
constexpr double c_exclusionRange = 0.04;

//! Everything that fixes the operators.
struct Discretisation
{
    int order         = 0;
    int ws            = 1;
    int levels        = 1; //!< 1: the periodic M2L acts on the leaves
    bool leastSquares = true;
    M2lEngine engine  = M2lEngine::Hierarchy; //!< of the levels above 0
    Boundary boundary = Boundary::Periodic;
    //! Wanted, in terms of water: what rounding may add to the truncation error.
    double accuracy = 0;
    //! Excluded pairs nearer than this, nm, are left out of the near field, not subtracted.
    double exclusionRange = c_exclusionRange;
    IntMat leafCells      = {};           //!< H of the leaf level
    Mat3 referenceBox     = Mat3::Zero(); //!< the box whose cell shape the operators have

    //! Whether another one differs at most in the accuracy, as a part of the operators may.
    bool hasSettingOf(const Discretisation& d) const
    {
        return order == d.order && ws == d.ws && levels == d.levels
               && leastSquares == d.leastSquares && engine == d.engine && leafCells == d.leafCells
               && referenceBox == d.referenceBox;
    }

    //! The M2L engine that works with these cells, never Auto.
    M2lEngine engineInUse() const { return levels == 1 ? M2lEngine::Fft : engine; }
    //! H of level 0, on which the periodic M2L acts.
    IntMat coarseCells() const;
    //! Whether the near field has all pairs, so that the order does not matter.
    bool isAllNear() const;
    //! Grid of the leaf level in a box.
    Grid leafGrid(const Mat3& box) const { return Grid(leafCells, box); }
    //! Strength of the background of a level of so many cells, see background.h; there is none
    //! without images.
    double background(double netCharge, long long cells) const
    {
        return boundary == Boundary::Periodic ? backgroundStrength(netCharge, cells) : 0;
    }
};

//! The engine that the options want for levels above 0, if there are any.
inline M2lEngine engineOfLevels(const Options& options)
{
    const bool open = options.m2l == M2lEngine::Auto || options.m2l == M2lEngine::Fft;
    return open ? M2lEngine::Hierarchy : options.m2l;
}

//! What a choice depends on.
struct PlanTask
{
    Options options; //!< checked
    Device device;   //!< whose costs count: Cpu or Gpu
    Mat3 box;        //!< box vectors
    long long particles;
    Occupancy occupancy; //!< where the particles are
    int realSize = 4;    //!< bytes of a number
    //! Edge that cells must not exceed, nm, unless nothing smaller is left.
    double largestCell = std::numeric_limits<double>::infinity();
    //! Of particles without images, nm, see extentInBox(): cells have to keep them apart.
    Vec3 extent = Vec3::Zero();
    //! Ranks that share the work.
    Network network = {};
};

/*! \brief Chooses what the options leave open: the cheapest setting whose predicted error suffices.
 *
 *  The choice follows from a cost model, not from timings, and so is the same in every run. Nothing
 *  is chosen whose operators take more than five minutes of one core to build or, on the CPU, more
 *  than half of the physical memory.
 *  \throws Error  InvalidArgument: options and box do not fit together, or nothing that they allow
 *                 is built in that time; OutOfMemory: nothing fits into that memory */
Discretisation chooseDiscretisation(const PlanTask& task);

/*! \brief Whether options lead to such an order, direct range and tree, in some system.
 *  \param[in] device  whose costs decided */
bool isOfOptions(const Discretisation& d, const Options& options, Device device);

/*! \brief The settings among which timing may decide: their errors suffice, and their predicted
 *         costs are close. The first is that of chooseDiscretisation().
 */
std::vector<Discretisation> discretisationsToTime(const PlanTask& task);

} // namespace farfield

#endif
