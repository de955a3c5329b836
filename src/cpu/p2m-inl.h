/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M: the particles of as many cells as there are lanes, to their multipoles.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_P2M_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_P2M_INL_H
#undef FARFIELD_CPU_P2M_INL_H
#else
#define FARFIELD_CPU_P2M_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"

#include "cpu/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Adds q u_i (monic functions) of two columns to the accumulators.
template<class Real>
HWY_INLINE void accumulate(const ExpansionTables<Real>& tables,
                           const Column<Real>& a,
                           const Column<Real>& b,
                           Real* acc)
{
    const Tag<Real> d;
    const int L    = lanesOf<Real>();
    const auto add = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        Real* to = acc + i * L;
        hn::Store(hn::Add(hn::Load(d, to), hn::Add(ua, ub)), d, to);
    };
    forMonicFunctions(tables, tables.order, a, b, a.q, b.q, add);
}

template<class Real>
void p2m(const Particles<Real>& particles,
         const LeafSlots& slots,
         const ExpansionTables<Real>& tables,
         int begin,
         int end,
         Real* M)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    HWY_ALIGN Real acc[c_maxCoefficients * c_slotPadding];
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        std::fill_n(acc, n * L, Real(0));
        for (int k = 0; k < columns; k += 2)
        {
            accumulate(tables,
                       loadColumn(particles, first, count, k, tables.inverseUnit),
                       loadColumn(particles, first, count, k + 1, tables.inverseUnit),
                       acc);
        }
        for (int i = 0; i < n; i++)
        {
            hn::Store(hn::Mul(hn::Load(d, acc + i * L), hn::Set(d, tables.scale[i])),
                      d,
                      M + static_cast<size_t>(i) * slots.padded + slot);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
