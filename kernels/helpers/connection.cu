/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string>
#include <vector>

#include "helpers/links.h"

#include "base/host_device.h"
#include "runtime/device.h"
#include "runtime/devices.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

//! A number for every place and direction.
FARFIELD_HD unsigned patternAt(unsigned i, unsigned which)
{
    return (i + 1) * 2654435761U ^ which * 40503U;
}

__global__ void writePattern(unsigned* to, unsigned count, unsigned which)
{
    const unsigned i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        to[i] = patternAt(i, which);
    }
}

__global__ void copyPattern(unsigned* to, const unsigned* from, unsigned count)
{
    const unsigned i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        to[i] = from[i];
    }
}

/*! \brief Whether kernels of one device write to and read from the memory of another.
 *  \param[in,out] near, far  [count] in the memory of either */
bool reaches(int device, DeviceBuffer<unsigned>* near, DeviceBuffer<unsigned>* far, unsigned which)
{
    const OnDevice scope(device);
    const Stream stream;
    const auto count = static_cast<unsigned>(near->size());
    const int blocks = blocksFor(count, c_threads);
    near->clear(stream);
    writePattern<<<blocks, c_threads, 0, stream>>>(far->data(), count, which);
    copyPattern<<<blocks, c_threads, 0, stream>>>(near->data(), far->data(), count);
    bool right = cudaGetLastError() == cudaSuccess;
    std::vector<unsigned> found(count);
    near->download(found.data(), count, stream);
    for (unsigned i = 0; i < count; i++)
    {
        right = right && found[i] == patternAt(i, which);
    }
    return right;
}

//! Lets kernels of a device use the memory of another. \returns whether they can
bool enableAccess(int device, int other)
{
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, device, other) != cudaSuccess || can == 0)
    {
        (void)cudaGetLastError();
        return false;
    }
    const OnDevice scope(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    (void)cudaGetLastError();
    return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
}

} // namespace

void connectDevices(int home, int helper)
{
    constexpr unsigned c_tried = 1U << 16;
    const auto try_            = [&]
    {
        DeviceBuffer<unsigned> atHome, atHelper;
        {
            const OnDevice scope(home);
            atHome.resize(c_tried);
        }
        const OnDevice scope(helper);
        atHelper.resize(c_tried);
        return reaches(home, &atHome, &atHelper, 1) && reaches(helper, &atHelper, &atHome, 2);
    };
    const bool connected =
            home == helper || (enableAccess(home, helper) && enableAccess(helper, home));
    if (!connected || !try_())
    {
        throw Error(ErrorCode::Unsupported,
                    "The GPU " + std::to_string(helper) + " cannot help the GPU "
                            + std::to_string(home)
                            + ": their memory is out of each other's reach (peer access).",
                    "helperDevices");
    }
}

} // namespace farfield
