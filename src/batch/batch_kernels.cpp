/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Compiled once per instruction set by Highway; see batch_kernels.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "batch/batch_kernels.cpp"
#include "base/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "batch/batch_kernels.h"
#include "batch/pairs-inl.h"
#include "batch/waves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

template<class Real>
const BatchKernels<Real>& kernelsOfBatches()
{
    static const BatchKernels<Real> table = { pairsOf<Real, typename PlaceOfImage<Real>::Type>,
                                              pairsOf<Real, Real>,
                                              tangentsOf<Real, typename PlaceOfImage<Real>::Type>,
                                              tangentsOf<Real, Real>,
                                              phasesAlong<Real>,
                                              structureFactors<Real>,
                                              waveFields<false, Real>,
                                              waveFields<true, Real> };
    return table;
}
const BatchKernels<float>& batchKernelsFloat()
{
    return kernelsOfBatches<float>();
}
const BatchKernels<double>& batchKernelsDouble()
{
    return kernelsOfBatches<double>();
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farfield
{

HWY_EXPORT(batchKernelsFloat);
HWY_EXPORT(batchKernelsDouble);

template<>
const BatchKernels<float>& batchKernels()
{
    return HWY_DYNAMIC_DISPATCH(batchKernelsFloat)();
}

template<>
const BatchKernels<double>& batchKernels()
{
    return HWY_DYNAMIC_DISPATCH(batchKernelsDouble)();
}

} // namespace farfield
#endif
