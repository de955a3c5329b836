/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief One particle of each of several cells, in the lanes of vectors.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_COLUMNS_INL_H
#undef FARFIELD_CPU_COLUMNS_INL_H
#else
#define FARFIELD_CPU_COLUMNS_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Positions and charges of one particle of each of several cells; q = 0 where a cell has no more.
template<class Real>
struct Column
{
    Vec<Real> x, y, z, q;
};

//! Which particles these are.
template<class Real>
struct ColumnPlaces
{
    using Index = hwy::MakeSigned<Real>;
    Vec<Real> valid; //!< 1, or 0 where a cell has no more
    hn::Vec<hn::Rebind<Index, Tag<Real>>> index;

    HWY_INLINE ColumnPlaces(const int* first, const int* count, int k)
    {
        HWY_ALIGN Index indices[c_slotPadding];
        HWY_ALIGN Real areValid[c_slotPadding];
        const int lanes = lanesOf<Real>();
        for (int lane = 0; lane < lanes; lane++)
        {
            const bool has = k < count[lane];
            indices[lane]  = has ? first[lane] + k : 0;
            areValid[lane] = has ? Real(1) : Real(0);
        }
        valid = hn::Load(Tag<Real>(), areValid);
        index = hn::Load(hn::Rebind<Index, Tag<Real>>(), indices);
    }
    //! Values of these particles, 0 where a cell has no more.
    HWY_INLINE Vec<Real> gather(const Real* from, Vec<Real> factor) const
    {
        return hn::Mul(hn::GatherIndex(Tag<Real>(), from, index), factor);
    }
};

template<class Real>
HWY_INLINE Column<Real> loadColumn(const Particles<Real>& p,
                                   const ColumnPlaces<Real>& places,
                                   Real inverseUnit)
{
    const auto scale = hn::Mul(places.valid, hn::Set(Tag<Real>(), inverseUnit));
    return { places.gather(p.x, scale),
             places.gather(p.y, scale),
             places.gather(p.z, scale),
             places.gather(p.q, places.valid) };
}

template<class Real>
HWY_INLINE Column<Real>
loadColumn(const Particles<Real>& p, const int* first, const int* count, int k, Real inverseUnit)
{
    return loadColumn(p, ColumnPlaces<Real>(first, count, k), inverseUnit);
}

inline int longest(const int* count, int lanes)
{
    return *std::max_element(count, count + lanes);
}

/*! \brief Calls visit(i, ua, ub) with the monic functions i < coefficientCount(p) of two columns,
 *         times their factors; see MonicRecurrence.
 *
 *  Two columns at a time hide the latency of the recurrence. */
template<class Real, class Visit>
HWY_INLINE void forMonicFunctions(const ExpansionTables<Real>& tables,
                                  int p,
                                  const Column<Real>& a,
                                  const Column<Real>& b,
                                  Vec<Real> factorA,
                                  Vec<Real> factorB,
                                  const Visit& visit)
{
    const Tag<Real> d;
    const auto r2a = hn::MulAdd(a.x, a.x, hn::MulAdd(a.y, a.y, hn::Mul(a.z, a.z)));
    const auto r2b = hn::MulAdd(b.x, b.x, hn::MulAdd(b.y, b.y, hn::Mul(b.z, b.z)));
    auto ca        = factorA;
    auto cb        = factorB;
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
            visit(coefficientIndex(l, m), cCurA, cCurB);
            const auto beta  = hn::Set(d, tables.beta[l * (tables.order + 1) + m]);
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
                visit(coefficientIndex(l, -m), sCurA, sCurB);
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

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
