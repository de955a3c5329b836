/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Numbers as tensor cores read them: 11 significant bits.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_TF32_CUH
#define FARFIELD_KERNELS_RUNTIME_TF32_CUH

namespace farfield
{

//! The nearest number with 11 significant bits.
__device__ __forceinline__ float roundToTf32(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned int bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#else
    return x; // there are none
#endif
}

} // namespace farfield

#endif
