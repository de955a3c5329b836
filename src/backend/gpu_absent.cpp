/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Stands in for the CUDA backend in a build without it.
#include "backend/gpu_backend.h"

namespace farfield
{

bool gpuIsUsable(int /*deviceId*/)
{
    return false;
}

template<class Real>
std::unique_ptr<GpuBackend<Real>> makeGpuBackend(double /*coulombConstant*/,
                                                 int /*threads*/,
                                                 bool /*reproducible*/,
                                                 int /*deviceId*/,
                                                 const DeviceRanks<Real>* /*ranks*/,
                                                 const HelpersWanted& /*helpers*/)
{
    throw Error(ErrorCode::NotCompiled,
                "The device is 'gpu', but the CUDA backend is not compiled into this libfarfield: "
                "use the device 'cpu' or 'auto'.",
                "device");
}

template std::unique_ptr<GpuBackend<float>>
makeGpuBackend<float>(double, int, bool, int, const DeviceRanks<float>*, const HelpersWanted&);
template std::unique_ptr<GpuBackend<double>>
makeGpuBackend<double>(double, int, bool, int, const DeviceRanks<double>*, const HelpersWanted&);

} // namespace farfield
