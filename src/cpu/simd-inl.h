/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectors of the instruction set at hand.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_SIMD_INL_H
#undef FARFIELD_CPU_SIMD_INL_H
#else
#define FARFIELD_CPU_SIMD_INL_H
#endif

#include "hwy/highway.h"

#include "cpu/cpu_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

template<class Real>
using Tag = hn::ScalableTag<Real>;
template<class Real>
using Vec = hn::Vec<Tag<Real>>;

constexpr int c_maxCoefficients = coefficientCount(20);

template<class Real>
int lanesOf()
{
    return static_cast<int>(hn::Lanes(Tag<Real>()));
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
