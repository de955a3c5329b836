/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Adds an array to another one.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_ADD_H
#define FARFIELD_KERNELS_RUNTIME_ADD_H

#include "runtime/device.h"

namespace farfield
{

//! to[k] += values[k], n of them in device memory, in order with a stream.
template<class Real>
void addOnDevice(const Real* values, size_t n, Real* to, cudaStream_t stream);

} // namespace farfield

#endif
