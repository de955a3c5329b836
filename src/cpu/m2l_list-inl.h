/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L over interaction lists: matrix products and sums of products.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_M2L_LIST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_M2L_LIST_INL_H
#undef FARFIELD_CPU_M2L_LIST_INL_H
#else
#define FARFIELD_CPU_M2L_LIST_INL_H
#endif

#include "hwy/highway.h"

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Rows [first, first + Rows) of Y, two vectors of columns from column on.
template<int Rows, class Real>
HWY_INLINE void transformTile(const Real* T,
                              int n,
                              const Real* X,
                              int columns,
                              int first,
                              int column,
                              bool two,
                              Real* Y)
{
    const Tag<Real> d;
    const int L      = lanesOf<Real>();
    const int second = two ? L : 0;
    Vec<Real> a[Rows], b[Rows];
    for (int r = 0; r < Rows; r++)
    {
        a[r] = b[r] = hn::Zero(d);
    }
    for (int k = 0; k < n; k++)
    {
        const Real* x = X + static_cast<size_t>(k) * columns + column;
        const auto xa = hn::Load(d, x);
        const auto xb = hn::Load(d, x + second);
        for (int r = 0; r < Rows; r++)
        {
            const auto t = hn::Set(d, T[static_cast<size_t>(first + r) * n + k]);
            a[r]         = hn::MulAdd(t, xa, a[r]);
            b[r]         = hn::MulAdd(t, xb, b[r]);
        }
    }
    for (int r = 0; r < Rows; r++)
    {
        Real* y = Y + static_cast<size_t>(first + r) * columns + column;
        hn::Store(a[r], d, y);
        hn::Store(b[r], d, y + second);
    }
}

template<class Real>
void transform(const Real* T, int rows, int n, const Real* X, int columns, Real* Y)
{
    const int L = lanesOf<Real>();
    for (int column = 0; column < columns; column += 2 * L)
    {
        const bool two = column + L < columns;
        int first      = 0;
        for (; first + 5 <= rows; first += 5)
        {
            transformTile<5>(T, n, X, columns, first, column, two, Y);
        }
        for (; first < rows; first++)
        {
            transformTile<1>(T, n, X, columns, first, column, two, Y);
        }
    }
}

template<class Real>
Real dot(const Real* a, const Real* b, int count)
{
    const Tag<Real> d;
    auto sum = hn::Zero(d);
    for (int i = 0; i < count; i += lanesOf<Real>())
    {
        sum = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), sum);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

template<class Real>
double exactDot(const Real* a, const Real* b, int count)
{
    const Tag<double> d;
    const hn::Rebind<Real, Tag<double>> of;
    const auto load = [&](const Real* from) HWY_ATTR
    {
        if constexpr (sizeof(Real) == sizeof(double))
        {
            return hn::Load(d, from);
        }
        else
        {
            return hn::PromoteTo(d, hn::Load(of, from));
        }
    };
    auto sum = hn::Zero(d);
    for (int i = 0; i < count; i += lanesOf<double>())
    {
        sum = hn::MulAdd(load(a + i), load(b + i), sum);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
