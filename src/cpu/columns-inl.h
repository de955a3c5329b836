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

template<class Real>
HWY_INLINE Column<Real>
loadColumn(const Particles<Real>& p, const int* first, const int* count, int k, Real inverseUnit)
{
    const Tag<Real> d;
    using Index = hwy::MakeSigned<Real>;
    const hn::Rebind<Index, Tag<Real>> di;
    HWY_ALIGN Index index[c_slotPadding];
    HWY_ALIGN Real valid[c_slotPadding];
    const int lanes = lanesOf<Real>();
    for (int lane = 0; lane < lanes; lane++)
    {
        const bool has = k < count[lane];
        index[lane]    = has ? first[lane] + k : 0;
        valid[lane]    = has ? Real(1) : Real(0);
    }
    const auto i     = hn::Load(di, index);
    const auto scale = hn::Mul(hn::Load(d, valid), hn::Set(d, inverseUnit));
    Column<Real> c;
    c.x = hn::Mul(hn::GatherIndex(d, p.x, i), scale);
    c.y = hn::Mul(hn::GatherIndex(d, p.y, i), scale);
    c.z = hn::Mul(hn::GatherIndex(d, p.z, i), scale);
    c.q = hn::Mul(hn::GatherIndex(d, p.q, i), hn::Load(d, valid));
    return c;
}

inline int longest(const int* count, int lanes)
{
    return *std::max_element(count, count + lanes);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
