/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The laws of pairs on the device: G and -G'/r of the squared distance.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_PAIR_LAWS_CUH
#define FARFIELD_KERNELS_PAIR_KERNELS_PAIR_LAWS_CUH

#include "pair_kernels/pair_kernel.h"
#include "pair_kernels/pair_law_on_device.h"

namespace farfield
{

//! Negative exponents only.
__device__ __forceinline__ float exponential(float x)
{
    return __expf(x);
}
__device__ __forceinline__ double exponential(double x)
{
    return exp(x);
}

//! Within two units in the last place; numbers below 1e-38 count as 0.
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

/*! \brief One kernel of the device for each of PairLawKind.
 *  \tparam power  of inverse powers, 0: any */
template<PairLawKind kind, int power, class Real>
struct LawOnDevice;

template<class Real>
struct LawOnDevice<PairLawKind::Yukawa, 0, Real>
{
    Real decay;

    FARFIELD_HD explicit LawOnDevice(const PairLawNumbers<Real>& law) : decay(law.decay) {}
    __device__ __forceinline__ void operator()(Real r2, Real* g, Real* f) const
    {
        const Real y = inverseRoot(r2);
        *g           = exponential(-decay * (r2 * y)) * y;
        *f           = *g * y * (decay + y);
    }
};

template<int power, class Real>
struct LawOnDevice<PairLawKind::InversePower, power, Real>
{
    int given;

    FARFIELD_HD explicit LawOnDevice(const PairLawNumbers<Real>& law) : given(law.exponent) {}
    __device__ __forceinline__ void operator()(Real r2, Real* g, Real* f) const
    {
        const int exponent = power > 0 ? power : given;
        const Real y       = inverseRoot(r2);
        const Real square  = y * y;
        Real product       = exponent % 2 == 0 ? square : y;
        for (int k = exponent % 2 == 0 ? 2 : 1; k < exponent; k += 2)
        {
            product *= square;
        }
        *g = product;
        *f = static_cast<Real>(exponent) * product * square;
    }
};

template<class Real>
struct LawOnDevice<PairLawKind::Table, 0, Real>
{
    PairLawNumbers<Real> law;

    FARFIELD_HD explicit LawOnDevice(const PairLawNumbers<Real>& of) : law(of) {}
    __device__ __forceinline__ void operator()(Real r2, Real* g, Real* f) const
    {
        const Real square = r2 > Real(1e-30) ? r2 : Real(1e-30);
        const Real y      = inverseRoot(square);
        const Real at     = (1 - law.first * y) * (square * y * law.perStep);
        // a distance at the beginning may round to before it
        const bool isBefore = at < Real(-1e-3);
        const bool isBeyond = at > static_cast<Real>(law.steps);
        if (isBefore || isBeyond)
        {
            *g = *f = isBefore ? static_cast<Real>(nan("")) : law.beyond;
            return;
        }
        const int k   = min(max(static_cast<int>(at), 0), law.steps - 1);
        const Real t  = max(at, Real(0)) - static_cast<Real>(k);
        const Real* c = law.polynomials + 4 * static_cast<size_t>(k);
        const Real c0 = __ldg(c), c1 = __ldg(c + 1), c2 = __ldg(c + 2), c3 = __ldg(c + 3);
        *g = ((c3 * t + c2) * t + c1) * t + c0;
        *f = -((3 * c3 * t + 2 * c2) * t + c1) * law.perStep * y;
    }
};

} // namespace farfield

#endif
