/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Compiled once per instruction set by Highway; see cpu_kernels.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/cpu_kernels.cpp"
#include "base/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "cpu/cpu_kernels.h"
#include "cpu/l2p-inl.h"
#include "cpu/m2l_list-inl.h"
#include "cpu/m2l_periodic-inl.h"
#include "cpu/near_function-inl.h"
#include "cpu/p2m-inl.h"
#include "cpu/p2p-inl.h"
#include "cpu/site_expansions-inl.h"
#include "cpu/site_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

template<class Real>
const CpuKernels<Real>& kernels()
{
    static const CpuKernels<Real> table = { lanesOf<Real>(),    p2m<Real>,        l2p<Real>,
                                            potentials<Real>,   p2p<Real>,        p2pOfGhosts<Real>,
                                            nearFunction<Real>, p2mOfSites<Real>, l2pOfSites<Real>,
                                            p2pOfSites<Real>,   multiply<Real>,   products<Real>,
                                            contract<Real>,     transform<Real>,  dot<Real>,
                                            exactDot<Real> };
    return table;
}
const CpuKernels<float>& kernelsFloat()
{
    return kernels<float>();
}
const CpuKernels<double>& kernelsDouble()
{
    return kernels<double>();
}
const char* targetName()
{
    return hwy::TargetName(HWY_TARGET);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farfield
{

HWY_EXPORT(kernelsFloat);
HWY_EXPORT(kernelsDouble);
HWY_EXPORT(targetName);

const char* cpuTargetName()
{
    return HWY_DYNAMIC_DISPATCH(targetName)();
}

template<>
const CpuKernels<float>& cpuKernels()
{
    return HWY_DYNAMIC_DISPATCH(kernelsFloat)();
}

template<>
const CpuKernels<double>& cpuKernels()
{
    return HWY_DYNAMIC_DISPATCH(kernelsDouble)();
}

template<class Real>
ExpansionTables<Real>::ExpansionTables(int p, double unit) :
    order(p), inverseUnit(static_cast<Real>(1 / unit))
{
    const MonicRecurrence monic(p);
    scale.assign(monic.scale.begin(), monic.scale.end());
    beta.assign(monic.beta.begin(), monic.beta.end());
    for (auto& axis : gradient)
    {
        axis.assign(p * p, GradientEntry{ { 0, 0 }, { 0, 0 } });
    }
    // d phi / dx in nm^-1: phi = sum_i L_i u_i(b / unit) / unit
    std::vector<int> used(3 * p * p, 0);
    for (const DerivativeTerm& t : derivativeTerms(p))
    {
        GradientEntry& entry = gradient[t.axis][t.to];
        int& k               = used[t.axis * p * p + t.to];
        entry.source[k]      = t.from;
        entry.value[k]       = static_cast<Real>(t.value * monic.scale[t.to] / (unit * unit));
        k++;
    }
}

template<class Real>
void ExpansionTables<Real>::addCurvature()
{
    if (order < 2 || !curvature[0].empty())
    {
        return;
    }
    const MonicRecurrence monic(order);
    const int inner = (order - 1) * (order - 1);
    for (auto& axis : curvature)
    {
        axis.assign(inner, GradientEntry{ { 0, 0 }, { 0, 0 } });
    }
    std::vector<int> used(3 * static_cast<size_t>(inner), 0);
    for (const DerivativeTerm& t : derivativeTerms(order - 1))
    {
        GradientEntry& entry = curvature[t.axis][t.to];
        int& k               = used[t.axis * inner + t.to];
        entry.source[k]      = t.from;
        entry.value[k] =
                static_cast<Real>(t.value * monic.scale[t.to] / monic.scale[t.from]) * inverseUnit;
        k++;
    }
}

template<class Real>
template<class Function>
void NearForces<Real>::forComponents(const Function& f)
{
    for (auto* component : { &x, &y, &z })
    {
        f(component);
    }
    if (potentials_)
    {
        f(&potential);
    }
}

template<class Real>
void NearForces<Real>::resize(int n, bool potentials)
{
    // kernels read whole vectors
    const int size = n + c_slotPadding;
    if (size != size_)
    {
        size_       = 0;
        potentials_ = false;
        forComponents([size](auto* component) { component->reset(new Real[size]); });
        size_ = size;
    }
    if (potentials && size != potentialsSize_)
    {
        potentialsSize_ = 0;
        potential.reset(new Real[size]);
        potentialsSize_ = size;
    }
    potentials_ = potentials;
    touched.assign(n / c_chunk + 1, 0);
    energy = 0;
    std::fill(std::begin(virial), std::end(virial), 0.0);
}

template<class Real>
void NearForces<Real>::touch(int begin, int end)
{
    for (int chunk = begin / c_chunk; chunk <= (end - 1) / c_chunk; chunk++)
    {
        if (!touched[chunk])
        {
            touched[chunk]  = 1;
            const int first = chunk * c_chunk;
            const int count = std::min(c_chunk, size_ - first);
            forComponents([&](auto* component)
                          { std::fill_n(component->get() + first, count, Real(0)); });
        }
    }
}

template struct ExpansionTables<float>;
template struct ExpansionTables<double>;
template struct NearForces<float>;
template struct NearForces<double>;

} // namespace farfield
#endif
