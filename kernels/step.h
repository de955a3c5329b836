/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What an evaluation starts from on the device: the position of the grid, and empty sums.
 */
#ifndef FARFIELD_KERNELS_STEP_H
#define FARFIELD_KERNELS_STEP_H

#include <cuda_runtime.h>

#include "near.h"

namespace farfield
{

//! Sums of an evaluation in device memory.
struct DeviceTotals
{
    NearTotals near;
    double energy;        //!< of the far field
    double virial[6];     //!< of the far field: xx yy zz xy xz yz
    double deviatoric[5]; //!< as StageSums::deviatoric
};

//! Where the grid lies in an evaluation; in device memory.
struct StepState
{
    double offset[3]; //!< in cells
    double step;      //!< the number of the step that decided on it; negative: none did
};

/*! \brief Sets the position of the grid and empties the sums.
 *
 *  While the stream is captured into a graph and a step is given, the kernel that is recorded
 * counts one step on instead: each replay then has the next position. \param[in] next  the position
 * to set; see Request::step */
void beginStep(const StepState& next, StepState* state, DeviceTotals* totals, cudaStream_t stream);

} // namespace farfield

#endif
