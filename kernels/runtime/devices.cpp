/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "runtime/devices.h"

#include "backend/gpu_backend.h"
#include "runtime/device.h"

namespace farfield
{
namespace
{

//! Oldest architecture that CUDA 13 compiles for.
constexpr int c_oldestMajor = 7, c_oldestMinor = 5;

} // namespace

bool gpuIsUsable(int deviceId)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    {
        (void)cudaGetLastError();
        return false;
    }
    int device = deviceId, major = 0, minor = 0;
    const bool known = (deviceId >= 0 || cudaGetDevice(&device) == cudaSuccess)
                       && cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)
                                  == cudaSuccess
                       && cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)
                                  == cudaSuccess;
    (void)cudaGetLastError();
    return known && (major > c_oldestMajor || (major == c_oldestMajor && minor >= c_oldestMinor));
}

int exchangeDevice(int device)
{
    int before = 0;
    check(cudaGetDevice(&before), "finding the device");
    if (before != device)
    {
        check(cudaSetDevice(device), "changing the device");
    }
    return before;
}

void returnToDevice(int before, int device) noexcept
{
    if (before != device)
    {
        (void)cudaSetDevice(before);
    }
}

std::string gpuName(int device)
{
    cudaDeviceProp prop = {};
    check(cudaGetDeviceProperties(&prop, device), "reading the properties of the device");
    return std::string(prop.name);
}

int requireUsableGpu(int deviceId)
{
    int devices              = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0)
    {
        (void)cudaGetLastError();
        throw Error(ErrorCode::DeviceFailure,
                    std::string("The device is 'gpu', but CUDA finds none (")
                            + (status == cudaSuccess ? "no device" : cudaGetErrorString(status))
                            + "): use the device 'cpu' or 'auto'.",
                    "device");
    }
    if (deviceId >= devices)
    {
        throw Error(ErrorCode::DeviceFailure,
                    "The CUDA device " + std::to_string(deviceId)
                            + " does not exist: devices are numbered from 0 to "
                            + std::to_string(devices - 1) + ".",
                    "deviceId");
    }
    int device = deviceId;
    if (deviceId < 0)
    {
        check(cudaGetDevice(&device), "finding the device");
    }
    if (!gpuIsUsable(device))
    {
        throw Error(ErrorCode::DeviceFailure,
                    "The device is 'gpu', but the GPU in use (" + gpuName(device)
                            + ") is older than compute capability " + std::to_string(c_oldestMajor)
                            + "." + std::to_string(c_oldestMinor) + ": use the device 'cpu'.",
                    "device");
    }
    return device;
}

} // namespace farfield
