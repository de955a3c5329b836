/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the near-field kernel needs of a warp: loads, predicated additions, and sums.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_WARP_H
#define FARFIELD_KERNELS_NEAR_P2P_WARP_H

#include "runtime/load.cuh"

namespace farfield
{
namespace p2pDetail
{

constexpr unsigned int c_all = 0xffffffffU;

//! A neighbouring cell that holds particles.
template<class Real>
struct alignas(4 * sizeof(Real)) Piece
{
    Real x, y, z; //!< displacement of its centre, nm
    int shift;    //!< from positions in the sequence of sources to sorted particles
};

//! Adds a force if that is wanted; predicated, so that the warp does not diverge.
__device__ __forceinline__ void add(bool wanted, Real4<float>* to, float x, float y, float z)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %5, 0;\n\t"
                 "@wanted red.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(
                         __cvta_generic_to_global(to)),
                 "f"(x),
                 "f"(y),
                 "f"(z),
                 "f"(0.0F),
                 "r"(static_cast<unsigned int>(wanted)));
#else
    if (wanted)
    {
        atomicAdd(&to->x, x);
        atomicAdd(&to->y, y);
        atomicAdd(&to->z, z);
    }
#endif
}
__device__ __forceinline__ void add(bool wanted, float* to, float x)
{
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %2, 0;\n\t"
                 "@wanted red.global.add.f32 [%0], %1;\n\t}" ::"l"(__cvta_generic_to_global(to)),
                 "f"(x),
                 "r"(static_cast<unsigned int>(wanted)));
}
__device__ __forceinline__ void add(bool wanted, double* to, double x)
{
    if (wanted)
    {
        atomicAdd(to, x);
    }
}
__device__ __forceinline__ void add(bool wanted, Real4<double>* to, double x, double y, double z)
{
    if (wanted)
    {
        atomicAdd(&to->x, x);
        atomicAdd(&to->y, y);
        atomicAdd(&to->z, z);
    }
}

__device__ __forceinline__ float inverseRoot(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double inverseRoot(double x)
{
    return rsqrt(x);
}
//! To the last digit: errors of the approximation do not average out where distances are
//! constrained.
__device__ __forceinline__ float refined(float y, float x)
{
    return fmaf(0.5F * y, fmaf(-x * y, y, 1.0F), y);
}
__device__ __forceinline__ double refined(double y, double /*x*/)
{
    return y;
}

//! A bit, none for numbers outside a word.
__device__ __forceinline__ unsigned int bit(int number)
{
    unsigned int bits;
    asm("shl.b32 %0, 1, %1;" : "=r"(bits) : "r"(number));
    return bits;
}

__device__ __forceinline__ unsigned int reduceOr(unsigned int bits)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(c_all, bits);
#else
    for (int offset = 16; offset > 0; offset /= 2)
    {
        bits |= __shfl_xor_sync(c_all, bits, offset);
    }
    return bits;
#endif
}

//! The number of a lane in all of them; the compiler knows then that the warp does not diverge.
__device__ __forceinline__ int uniform(int value, int lane)
{
#if __CUDA_ARCH__ >= 800
    return static_cast<int>(__reduce_or_sync(c_all,
                                             (static_cast<int>(threadIdx.x) % c_warp == lane)
                                                     ? static_cast<unsigned int>(value)
                                                     : 0U));
#else
    return __shfl_sync(c_all, value, lane);
#endif
}

//! Pieces of a warp in shared memory.
template<class Real>
class PieceList
{
public:
    __device__ __forceinline__ explicit PieceList(const Piece<Real>* pieces) :
        address_(uniform(static_cast<int>(__cvta_generic_to_shared(pieces)), 0))
    {
    }
    __device__ __forceinline__ Piece<Real> operator[](int k) const
    {
        const int at = address_ + k * static_cast<int>(sizeof(Piece<Real>));
        Piece<Real> p;
        read(at, &p);
        return p;
    }

private:
    __device__ __forceinline__ static void read(int at, Piece<float>* p)
    {
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(p->x), "=f"(p->y), "=f"(p->z), "=r"(p->shift)
                     : "r"(at)
                     : "memory");
    }
    __device__ __forceinline__ static void read(int at, Piece<double>* p)
    {
        asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];"
                     : "=d"(p->x), "=d"(p->y)
                     : "r"(at)
                     : "memory");
        asm volatile("ld.shared.f64 %0, [%1 + 16];" : "=d"(p->z) : "r"(at) : "memory");
        asm volatile("ld.shared.b32 %0, [%1 + 24];" : "=r"(p->shift) : "r"(at) : "memory");
    }
    int address_; //!< kept by the compiler
};

//! The same; the compiler does not know that, and keeps the value instead of computing it anew.
template<class T>
__device__ __forceinline__ T kept(T value)
{
    return __shfl_sync(c_all, value, static_cast<int>(threadIdx.x) % c_warp);
}

//! Calls step(k) for k < Count, at least for the first 'size'; the others are skipped in portions.
template<int Least, int Portion, int Count, int From = 0, class Step>
__device__ __forceinline__ void forFirst(int size, const Step& step)
{
#pragma unroll
    for (int k = From; k < Least; k++)
    {
        step(k);
    }
    if constexpr (Least < Count)
    {
        if (size > Least)
        {
            constexpr int c_next = Least + Portion < Count ? Least + Portion : Count;
            forFirst<c_next, Portion, Count, Least>(size, step);
        }
    }
}

/*! \brief Sums of the first 'size' of Count vectors over 2 Offset lanes, one vector per lane.
 *
 *  In every step lanes exchange the half of the vectors that the other one keeps, so the cost is
 *  that of summing about one vector per step and target, not five.
 *  \returns the vector whose sum is in element 0, at least Count for none */
template<int Count, int Offset, int Size, class Real>
__device__ __forceinline__ int
transposedSum(Real (&x)[Size], Real (&y)[Size], Real (&z)[Size], int size, int lane)
{
    constexpr int c_none = 1024;
    if constexpr (Offset == 0)
    {
        static_assert(Count == 1, "more vectors than lanes");
        return 0;
    }
    else
    {
        const bool upper      = (lane & Offset) != 0;
        constexpr int c_of    = (Count + 1) / 2;
        constexpr int c_whole = c_of > 4 ? 2 : c_of; // skipping fewer does not pay
        forFirst<c_whole, c_whole, c_of>((size + 1) / 2,
                                         [&](int k)
                                         {
                                             const bool pair = 2 * k + 1 < Count;
                                             const auto step = [&](Real* v)
                                             {
                                                 const Real other = v[pair ? 2 * k + 1 : 2 * k];
                                                 const Real sent  = upper ? v[2 * k] : other;
                                                 const Real kept  = upper ? other : v[2 * k];
                                                 v[k] = kept + __shfl_xor_sync(c_all, sent, Offset);
                                             };
                                             step(x);
                                             step(y);
                                             step(z);
                                         });
        const int inner = 2 * transposedSum<c_of, Offset / 2>(x, y, z, (size + 1) / 2, lane)
                          + (upper ? 1 : 0);
        return inner < Count ? inner : c_none;
    }
}

} // namespace p2pDetail
} // namespace farfield

#endif
