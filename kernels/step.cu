/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "step.h"

#include "grid.h"

namespace farfield
{
namespace
{

//! Increments of the position of the grid per step, see c_offsetSteps.
struct Increments
{
    double of[3];
};

__global__ void beginStepKernel(StepState next,
                                Increments increments,
                                bool advance,
                                StepState* state,
                                DeviceTotals* totals)
{
    constexpr int c_sums = sizeof(DeviceTotals) / sizeof(double);
    for (int i = threadIdx.x; i < c_sums; i += blockDim.x)
    {
        reinterpret_cast<double*>(totals)[i] = 0;
    }
    if (threadIdx.x == 0)
    {
        if (advance)
        {
            next.step = state->step + 1;
            for (int k = 0; k < 3; k++)
            {
                const double product = increments.of[k] * next.step;
                next.offset[k]       = product - floor(product);
            }
        }
        *state = next;
    }
}

} // namespace

void beginStep(const StepState& next, StepState* state, DeviceTotals* totals, cudaStream_t stream)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &capture), "looking at a stream");
    const bool advance          = next.step >= 0 && capture != cudaStreamCaptureStatusNone;
    const Increments increments = { { c_offsetSteps[0], c_offsetSteps[1], c_offsetSteps[2] } };
    beginStepKernel<<<1, 32, 0, stream>>>(next, increments, advance, state, totals);
    checkLaunch("the start of an evaluation");
}

} // namespace farfield
