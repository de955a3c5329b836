/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a pair within the cut-off has.
 */
#ifndef FARFIELD_KERNELS_BATCHES_PAIR_VALUES_CUH
#define FARFIELD_KERNELS_BATCHES_PAIR_VALUES_CUH

#include "batch/scaled_erfc.h"
#include "near/p2p_warp.h"

namespace farfield
{

//! a / b: to some units of the last digit.
__device__ __forceinline__ float quotient(float a, float b)
{
    return __fdividef(a, b);
}
__device__ __forceinline__ double quotient(double a, double b)
{
    return a / b;
}

//! erfc(a r)/r and its derivatives, see pairFunctions() of the CPU.
template<class Real>
struct PairValues
{
    Real value, slope, third;
};
template<bool Third, class Real>
__device__ __forceinline__ PairValues<Real> pairValues(Real given,
                                                       Real splitting,
                                                       const ScaledErfc<Real>& constant)
{
    // charges at one place are refused or without effect, but must not spoil the sums
    constexpr Real c_tiny    = Third && sizeof(Real) == 4 ? Real(1e-14) : Real(1e-20);
    const Real square        = given > c_tiny ? given : c_tiny;
    const Real inverse       = p2pDetail::refined(p2pDetail::inverseRoot(square), square);
    const Real inverseSquare = inverse * inverse;
    PairValues<Real> pair    = { inverse, inverse * inverseSquare, Real(0) };
    Real ofRoot              = 0;
    if (splitting > 0)
    {
        const Real x = splitting * square * inverse;
        const Real e = exp(-x * x);
        const Real s = constant.alpha - quotient(constant.beta, x + constant.middle);
        Real p       = constant.coefficients[ScaledErfc<Real>::c_degree];
#pragma unroll
        for (int k = ScaledErfc<Real>::c_degree - 1; k >= 0; k--)
        {
            p = fma(p, s, constant.coefficients[k]);
        }
        ofRoot     = Real(1.1283791670955126) * splitting * e; // 2 / pi^(1/2)
        pair.value = e * p * inverse;
        pair.slope = (ofRoot + pair.value) * inverseSquare;
    }
    if (Third)
    {
        pair.third = (2 * splitting * splitting * ofRoot + 3 * pair.slope) * inverseSquare;
    }
    return pair;
}

} // namespace farfield

#endif
