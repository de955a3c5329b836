/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Entry to the CUDA backend; in a build without CUDA, gpu_absent.cpp stands in for it.
 */
#ifndef FARFIELD_GPU_BACKEND_H
#define FARFIELD_GPU_BACKEND_H

#include <memory>
#include <string>

#include "backend.h"

namespace farfield
{

//! Whether this build and this machine can run the CUDA backend.
bool gpuIsUsable();
//! Name of the GPU in use.
std::string gpuName();
/*! \brief The CUDA backend.
 *  \throws Error  NotCompiled: built without CUDA; DeviceFailure: no usable GPU */
template<class Real>
std::unique_ptr<Backend<Real>> makeGpuBackend(double coulombConstant);

} // namespace farfield

#endif
