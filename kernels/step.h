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

//! Sets the grid offset, in cells, and empties the sums.
void beginStep(double offsetX,
               double offsetY,
               double offsetZ,
               double* offset,
               DeviceTotals* totals,
               cudaStream_t stream);

} // namespace farfield

#endif
