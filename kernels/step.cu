/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "step.h"

namespace farfield
{
namespace
{

__global__ void beginStepKernel(double x, double y, double z, double* offset, DeviceTotals* totals)
{
    constexpr int c_sums = sizeof(DeviceTotals) / sizeof(double);
    for (int i = threadIdx.x; i < c_sums; i += blockDim.x)
    {
        reinterpret_cast<double*>(totals)[i] = 0;
    }
    if (threadIdx.x == 0)
    {
        offset[0] = x;
        offset[1] = y;
        offset[2] = z;
    }
}

} // namespace

void beginStep(double offsetX,
               double offsetY,
               double offsetZ,
               double* offset,
               DeviceTotals* totals,
               cudaStream_t stream)
{
    beginStepKernel<<<1, 32, 0, stream>>>(offsetX, offsetY, offsetZ, offset, totals);
    checkLaunch("the start of an evaluation");
}

} // namespace farfield
