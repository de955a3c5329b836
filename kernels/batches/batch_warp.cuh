/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over a warp in a fixed order, and where a system has its things.
 */
#ifndef FARFIELD_KERNELS_BATCHES_BATCH_WARP_CUH
#define FARFIELD_KERNELS_BATCHES_BATCH_WARP_CUH

#include "batches/device_systems.h"

namespace farfield
{

constexpr unsigned int c_allLanes = 0xffffffffU;

//! The sum over all lanes, in each of them.
__device__ __forceinline__ double warpSum(double value)
{
    for (int offset = 16; offset > 0; offset /= 2)
    {
        value += __shfl_xor_sync(c_allLanes, value, offset);
    }
    return value;
}

//! The smallest of all lanes, in each of them.
template<class T>
__device__ __forceinline__ T warpLeast(T value)
{
    for (int offset = 16; offset > 0; offset /= 2)
    {
        const T other = __shfl_xor_sync(c_allLanes, value, offset);
        value         = other < value ? other : value;
    }
    return value;
}

//! A cosine and a sine, in one load.
template<class Real>
struct alignas(2 * sizeof(Real)) Phase
{
    Real c, s;
};

//! The number among the phases of all axes of one along an axis.
__device__ __forceinline__ int numberOfPhase(const SystemSums& s, int axis, int number)
{
    for (int before = 0; before < axis; before++)
    {
        number += s.range[before] + 1;
    }
    return number;
}

//! Cosines of (number) times a fractional coordinate; their sines are n behind. [n]
template<class Pointer>
__device__ __forceinline__ Pointer
phasesOf(Pointer phases, const SystemSums& s, int axis, int number)
{
    return phases + s.firstPhase + 2LL * numberOfPhase(s, axis, number) * s.n;
}

//! Structure factors of a channel and a set, of a chunk of particles; weights take their place.
template<class Real>
__device__ __forceinline__ Real*
factorsOf(Real* sums, const SystemSums& s, int sets, int channel, int set, int chunk)
{
    const long long table = (static_cast<long long>(channel) * sets + set) * s.chunks + chunk;
    return sums + s.firstSum + table * s.waveCount * WaveProducts;
}

} // namespace farfield

#endif
