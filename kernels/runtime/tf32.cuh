/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tensor cores: numbers as they read them, with 11 significant bits, and their product.
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

/*! \brief sum += a b of a warp, 16 x 8 times 8 x 8, of leading 11 bits.
 *
 *  With g = lane / 4 and t = lane % 4, a are the elements (g, t), (g + 8, t), (g, t + 4) and
 *  (g + 8, t + 4), b are (t, g) and (t + 4, g), sum are (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and
 *  (g + 8, 2 t + 1). */
__device__ __forceinline__ void multiplyTile(float (&sum)[4],
                                             const float (&a)[4],
                                             const float (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(a[0])),
          "r"(__float_as_uint(a[1])),
          "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])),
          "r"(__float_as_uint(b[1])));
#else
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int k = 0; k < 8; k++)
    {
        const int from      = lane / 4 * 4 + k % 4;
        const int columns   = lane % 4 * 8 + k % 4;
        const float upper   = __shfl_sync(0xffffffffU, a[k / 4 * 2], from);
        const float lower   = __shfl_sync(0xffffffffU, a[k / 4 * 2 + 1], from);
        const float column0 = __shfl_sync(0xffffffffU, b[k / 4], columns);
        const float column1 = __shfl_sync(0xffffffffU, b[k / 4], columns + 4);
        sum[0] += upper * column0;
        sum[1] += upper * column1;
        sum[2] += lower * column0;
        sum[3] += lower * column1;
    }
#endif
}

} // namespace farfield

#endif
