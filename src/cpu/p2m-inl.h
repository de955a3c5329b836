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
    const int p    = tables.order;
    const auto r2a = hn::MulAdd(a.x, a.x, hn::MulAdd(a.y, a.y, hn::Mul(a.z, a.z)));
    const auto r2b = hn::MulAdd(b.x, b.x, hn::MulAdd(b.y, b.y, hn::Mul(b.z, b.z)));
    auto ca        = a.q;
    auto cb        = b.q;
    auto sa        = hn::Zero(d);
    auto sb        = hn::Zero(d);
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            const auto ta = hn::Sub(hn::Mul(a.x, ca), hn::Mul(a.y, sa));
            const auto tb = hn::Sub(hn::Mul(b.x, cb), hn::Mul(b.y, sb));
            sa            = hn::MulAdd(a.x, sa, hn::Mul(a.y, ca));
            sb            = hn::MulAdd(b.x, sb, hn::Mul(b.y, cb));
            ca            = ta;
            cb            = tb;
        }
        auto cCurA = ca, sCurA = sa, cCurB = cb, sCurB = sb;
        auto cPrevA = hn::Zero(d), sPrevA = hn::Zero(d), cPrevB = hn::Zero(d), sPrevB = hn::Zero(d);
        for (int l = m; l <= p; l++)
        {
            Real* cAcc = acc + coefficientIndex(l, m) * L;
            hn::Store(hn::Add(hn::Load(d, cAcc), hn::Add(cCurA, cCurB)), d, cAcc);
            const auto beta  = hn::Set(d, tables.beta[l * (p + 1) + m]);
            const auto fa    = hn::Mul(beta, r2a);
            const auto fb    = hn::Mul(beta, r2b);
            const auto cNewA = hn::NegMulAdd(fa, cPrevA, hn::Mul(a.z, cCurA));
            const auto cNewB = hn::NegMulAdd(fb, cPrevB, hn::Mul(b.z, cCurB));
            cPrevA           = cCurA;
            cPrevB           = cCurB;
            cCurA            = cNewA;
            cCurB            = cNewB;
            if (m > 0)
            {
                Real* sAcc = acc + coefficientIndex(l, -m) * L;
                hn::Store(hn::Add(hn::Load(d, sAcc), hn::Add(sCurA, sCurB)), d, sAcc);
                const auto sNewA = hn::NegMulAdd(fa, sPrevA, hn::Mul(a.z, sCurA));
                const auto sNewB = hn::NegMulAdd(fb, sPrevB, hn::Mul(b.z, sCurB));
                sPrevA           = sCurA;
                sPrevB           = sCurB;
                sCurA            = sNewA;
                sCurB            = sNewB;
            }
        }
    }
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
