/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Stands in for batches on CUDA in a build without it.
#include "backend/gpu_backend.h"
#include "batch/batch_backend.h"

namespace farfield
{

template<class Real>
std::unique_ptr<BatchBackend<Real>> makeGpuBatch(const BatchOptions& options)
{
    // which throws what it says of any solver
    makeGpuBackend<Real>(options.coulombConstant, 1, false, options.deviceId);
    return nullptr;
}

template std::unique_ptr<BatchBackend<float>> makeGpuBatch(const BatchOptions&);
template std::unique_ptr<BatchBackend<double>> makeGpuBatch(const BatchOptions&);

} // namespace farfield
