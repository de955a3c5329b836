/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Stands in for sums of kernels on CUDA in a build without it.
#include "backend/gpu_backend.h"
#include "pair_kernels/kernel_backend.h"

namespace farfield
{

template<class Real>
std::unique_ptr<KernelBackend<Real>> makeGpuKernelBackend(const PairKernel& /*kernel*/,
                                                          int deviceId,
                                                          Team* /*team*/)
{
    // which throws what it says of any solver
    makeGpuBackend<Real>(1, 1, false, deviceId);
    return nullptr;
}

template std::unique_ptr<KernelBackend<float>> makeGpuKernelBackend(const PairKernel&, int, Team*);
template std::unique_ptr<KernelBackend<double>> makeGpuKernelBackend(const PairKernel&, int, Team*);

} // namespace farfield
