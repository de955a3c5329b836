/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Whether there is a GPU that the CUDA backend can use.
 */
#ifndef FARFIELD_KERNELS_GPU_DEVICES_H
#define FARFIELD_KERNELS_GPU_DEVICES_H

namespace farfield
{

//! \throws Error  DeviceFailure: CUDA finds no GPU, or the one in use is too old
void requireUsableGpu();

} // namespace farfield

#endif
