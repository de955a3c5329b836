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
//! Name of a device.
std::string gpuName(int device);

} // namespace farfield

#endif
