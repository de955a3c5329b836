/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Whether there is a GPU that the CUDA backend can use.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_DEVICES_H
#define FARFIELD_KERNELS_RUNTIME_DEVICES_H

#include <string>

namespace farfield
{

/*! \brief The device that an id stands for.
 *  \param[in] deviceId  as Options::deviceId
 *  \throws Error  DeviceFailure: CUDA finds no GPU or none of that number, or it is too old */
int requireUsableGpu(int deviceId);
//! Makes a device the current one of this thread. \returns the one that was
int exchangeDevice(int device);
//! Makes the device before current again, after that one; what fails is met by later calls.
void returnToDevice(int before, int device) noexcept;
//! Another device is the current one of this thread while this lives.
class OnDevice
{
public:
    explicit OnDevice(int device) : device_(device), before_(exchangeDevice(device)) {}
    ~OnDevice() { returnToDevice(before_, device_); }
    OnDevice(const OnDevice&)            = delete;
    OnDevice& operator=(const OnDevice&) = delete;

private:
    int device_, before_;
};
//! Name of a device.
std::string gpuName(int device);

} // namespace farfield

#endif
