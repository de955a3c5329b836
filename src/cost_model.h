/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Predicted time of an evaluation, for the choice of order and cells.
 */
#ifndef FARFIELD_COST_MODEL_H
#define FARFIELD_COST_MODEL_H

#include "farfield/farfield.h"

#include "grid.h"

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
    double coefficients; //!< per expansion
    double penalty;      //!< cost of the transform's lengths, see transformPenalty()

    /*! \brief Counts.
     *  \param[in] lengths         leaf cells along the box vectors
     *  \param[in] boxVolume       nm^3
     *  \param[in] occupiedVolume  where the particles are, nm^3 */
    Work(int p,
         int ws,
         const Int3& lengths,
         double boxVolume,
         double occupiedVolume,
         double particleCount);
};

//! Cells of the coarse grid per dimension that the closure handles at next to no cost.
double coarseCells(Device device);

/*! \brief Predicted time of an evaluation, ns: only ratios matter.
 *  \param[in] fft  the closure acts on the leaves */
double predictedCost(Device device, const Work& w, bool fft);

} // namespace farfield

#endif
