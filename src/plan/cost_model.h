/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Predicted time and memory of an evaluation and of its operators, for the choice of order
 *         and cells.
 */
#ifndef FARFIELD_PLAN_COST_MODEL_H
#define FARFIELD_PLAN_COST_MODEL_H

#include "farfield/farfield.h"

#include "cells/grid.h"
#include "plan/discretisation.h"
#include "plan/network.h"
#include "plan/occupancy.h"

namespace farfield
{

//! What the costs of a choice of order and cells depend on.
struct Work
{
    double particles;
    double cells;        //!< leaf cells in the box
    double occupied;     //!< of these, how many hold particles
    double perCell;      //!< particles per occupied cell
    double nearCells;    //!< a cell's near cells, itself included
    double nearAcross;   //!< the same along one axis, 2 ws + 1
    double nearby;       //!< particles in the near cells of a particle
    bool allNear;        //!< these are all: there is no far field
    double coefficients; //!< per expansion
    double penalty;      //!< cost of the transform's lengths, see transformPenalty()
    int levels;          //!< 1: the periodic M2L acts on the leaves
    Int3 coarseLengths;  //!< cells on which it acts, along the box vectors
    double coarse;       //!< these cells
    double exchanges;    //!< pairs of cells in the interaction lists of all levels

    /*! \brief Counts.
     *  \param[in] lengths     leaf cells along the box vectors
     *  \param[in] levelCount  of the tree
     *  \param[in] boxVolume   nm^3
     *  \param[in] occupancy   where the particles are */
    Work(int p,
         int ws,
         const Int3& lengths,
         int levelCount,
         double boxVolume,
         const Occupancy& occupancy,
         double particleCount);
    Work(const Discretisation& d, const Occupancy& occupancy, double particleCount);
    //! The same with expansions of another order, on which nothing else depends.
    Work ofOrder(int p) const;
    //! Each particle is near all others, of which the occupancy, interpolated, may count too many.
    void allAreNear()
    {
        nearby  = particles;
        allNear = true;
    }
};

//! Cells of the coarse grid per dimension that the periodic M2L handles at next to no cost.
double coarseCells(Device device);

/*! \brief Predicted time of an evaluation, ns.
 *
 *  On one rank only ratios matter: it is that of one core, or of one GPU. */
double predictedCost(Device device, const Work& w, const Network& network = {});

//! What operators are, for their number and size.
struct OperatorKind
{
    int order;
    bool leastSquares; //!< they are made at a higher order
    int copies;        //!< wave vectors that share an operator: 4 in a rectangular box, else 1

    OperatorKind(int p, bool isLeastSquares, const Mat3& box);
};

//! Operators of the periodic M2L, one for each wave vector that is no copy of another.
double representatives(const Work& w, int copies);

/*! \brief Predicted time of building the operators on one core, ns.
 *
 *  The host builds them for every device. */
double predictedSetUp(const Work& w, const OperatorKind& kind);

//! Ranges of the near field on the CPU, at most, each with forces of its own: two for each thread,
//! half as long to wait for one that is late.
inline int mostNearRanges(int threads)
{
    return threads == 1 ? 1 : 2 * threads;
}

/*! \brief Predicted memory of the CPU's operators, expansions and tables of cells, bytes.
 *  \param[in] realSize  bytes of a number */
double predictedMemory(const Work& w, const OperatorKind& kind, int threads, int realSize);

} // namespace farfield

#endif
