/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of vectors of the instruction set at hand.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_SIMD_INL_H
#undef FARFIELD_CPU_SIMD_INL_H
#else
#define FARFIELD_CPU_SIMD_INL_H
#endif

#include <vector>

#include "hwy/highway.h"

#include "farfield/options.h"

#include "base/simd_functions-inl.h"
#include "cpu/cpu_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

constexpr int c_maxCoefficients = coefficientCount(c_maxOrder);

//! Where a vector begins in a room, which has to be longer than what is wanted by the lanes.
template<class Real>
Real* alignedIn(std::vector<Real>* room)
{
    const int L         = lanesOf<Real>();
    const size_t beyond = reinterpret_cast<size_t>(room->data()) / sizeof(Real) % L;
    return room->data() + (L - beyond) % L;
}

//! Sum of outer products of positions and forces, for virials.
template<class Real>
struct TensorSum
{
    Vec<Real> xx, yy, zz, xy, xz, yz;

    HWY_INLINE TensorSum() { xx = yy = zz = xy = xz = yz = hn::Zero(Tag<Real>()); }
    HWY_INLINE void
    add(Vec<Real> x, Vec<Real> y, Vec<Real> z, Vec<Real> fx, Vec<Real> fy, Vec<Real> fz)
    {
        xx = hn::MulAdd(x, fx, xx);
        yy = hn::MulAdd(y, fy, yy);
        zz = hn::MulAdd(z, fz, zz);
        xy = hn::MulAdd(x, fy, hn::MulAdd(y, fx, xy));
        xz = hn::MulAdd(x, fz, hn::MulAdd(z, fx, xz));
        yz = hn::MulAdd(y, fz, hn::MulAdd(z, fy, yz));
    }
    //! Adds -1/2 of the symmetric part of the sum: xx yy zz xy xz yz.
    HWY_INLINE void addVirial(double* virial) const
    {
        const auto sum = [](Vec<Real> v) HWY_ATTR
        { return static_cast<double>(hn::GetLane(hn::SumOfLanes(Tag<Real>(), v))); };
        virial[0] -= 0.5 * sum(xx);
        virial[1] -= 0.5 * sum(yy);
        virial[2] -= 0.5 * sum(zz);
        virial[3] -= 0.25 * sum(xy);
        virial[4] -= 0.25 * sum(xz);
        virial[5] -= 0.25 * sum(yz);
    }
};

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
