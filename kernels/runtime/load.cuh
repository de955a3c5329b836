/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Loads of what no thread of a launch writes to.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_LOAD_CUH
#define FARFIELD_KERNELS_RUNTIME_LOAD_CUH

#include "runtime/layout.h"

namespace farfield
{

__device__ __forceinline__ Real4<float> load(const Real4<float>* from)
{
    const float4 v = __ldg(reinterpret_cast<const float4*>(from));
    return { v.x, v.y, v.z, v.w };
}
__device__ __forceinline__ Real4<double> load(const Real4<double>* from)
{
    const double2 a = __ldg(reinterpret_cast<const double2*>(from));
    const double2 b = __ldg(reinterpret_cast<const double2*>(from) + 1);
    return { a.x, a.y, b.x, b.y };
}

} // namespace farfield

#endif
