/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L of all periodic images: products with the operators of as many wave vectors as there
 *         are lanes, and the products of coefficients that the virial needs.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_M2L_PERIODIC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_M2L_PERIODIC_INL_H
#undef FARFIELD_CPU_M2L_PERIODIC_INL_H
#else
#define FARFIELD_CPU_M2L_PERIODIC_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Rows [first, first + Rows) of the symmetric product, and their mirror images.
template<int Rows, class Real>
HWY_INLINE const Real* multiplyRows(const Real* kappa, int n, int first, const Real* x, Real* y)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    Vec<Real> xr[Rows], xi[Rows], yr[Rows], yi[Rows];
    for (int r = 0; r < Rows; r++)
    {
        xr[r] = hn::Load(d, x + 2 * L * (first + r));
        xi[r] = hn::Load(d, x + 2 * L * (first + r) + L);
        yr[r] = hn::Load(d, y + 2 * L * (first + r));
        yi[r] = hn::Load(d, y + 2 * L * (first + r) + L);
    }
    for (int i = 0; i < Rows; i++)
    {
        for (int j = i; j < Rows; j++, kappa += L)
        {
            const auto k = hn::Load(d, kappa);
            yr[i]        = hn::MulAdd(k, xr[j], yr[i]);
            yi[i]        = hn::MulAdd(k, xi[j], yi[i]);
            if (j > i)
            {
                yr[j] = hn::MulAdd(k, xr[i], yr[j]);
                yi[j] = hn::MulAdd(k, xi[i], yi[j]);
            }
        }
    }
    for (int j = first + Rows; j < n; j++)
    {
        const auto zr = hn::Load(d, x + 2 * L * j);
        const auto zi = hn::Load(d, x + 2 * L * j + L);
        auto sr       = hn::Load(d, y + 2 * L * j);
        auto si       = hn::Load(d, y + 2 * L * j + L);
        for (int r = 0; r < Rows; r++, kappa += L)
        {
            const auto k = hn::Load(d, kappa);
            yr[r]        = hn::MulAdd(k, zr, yr[r]);
            yi[r]        = hn::MulAdd(k, zi, yi[r]);
            sr           = hn::MulAdd(k, xr[r], sr);
            si           = hn::MulAdd(k, xi[r], si);
        }
        hn::Store(sr, d, y + 2 * L * j);
        hn::Store(si, d, y + 2 * L * j + L);
    }
    for (int r = 0; r < Rows; r++)
    {
        hn::Store(yr[r], d, y + 2 * L * (first + r));
        hn::Store(yi[r], d, y + 2 * L * (first + r) + L);
    }
    return kappa;
}

template<class Real>
void multiply(const Real* kappa, int n, const Real* x, Real* y)
{
    std::fill_n(y, 2 * n * lanesOf<Real>(), Real(0));
    int first = 0;
    for (; first + c_rowBlock <= n; first += c_rowBlock)
    {
        kappa = multiplyRows<c_rowBlock>(kappa, n, first, x, y);
    }
    static_assert(c_rowBlock == 3, "the remainders below are those of three rows");
    if (n - first == 2)
    {
        multiplyRows<2>(kappa, n, first, x, y);
    }
    else if (n - first == 1)
    {
        multiplyRows<1>(kappa, n, first, x, y);
    }
}

//! Products of the coefficients of one degree and order with those of another.
template<class Real>
struct FourProducts
{
    Vec<Real> cc, ss, cs, sc;

    HWY_INLINE void setZero() { cc = ss = cs = sc = hn::Zero(Tag<Real>()); }
    //! Adds the products of a and b: [cosine, sine][re, im]. \tparam Sine  whether a has a sine
    template<bool Sine>
    HWY_INLINE void add(const Vec<Real>* a, const Vec<Real>* b)
    {
        cc = hn::MulAdd(a[1], b[1], hn::MulAdd(a[0], b[0], cc));
        cs = hn::MulAdd(a[1], b[3], hn::MulAdd(a[0], b[2], cs));
        if (Sine)
        {
            ss = hn::MulAdd(a[3], b[3], hn::MulAdd(a[2], b[2], ss));
            sc = hn::MulAdd(a[3], b[1], hn::MulAdd(a[2], b[0], sc));
        }
    }
    //! Hands them to the harmonics of a degree, see product_table.h.
    HWY_INLINE void store(int ma, int mb, Real* products) const
    {
        const Tag<Real> d;
        const int L      = lanesOf<Real>();
        const Real twice = (ma == mb) ? 1 : 2;
        const auto plus  = hn::Set(d, twice);
        const auto minus = hn::Set(d, (ma % 2) ? -twice : twice);
        const auto to    = [&](int order, Vec<Real> factor, Vec<Real> sum) HWY_ATTR
        {
            Real* at = products + order * L;
            hn::Store(hn::MulAdd(factor, sum, hn::Load(d, at)), d, at);
        };
        to(mb + ma, plus, hn::Sub(cc, ss));
        to(mb - ma, minus, hn::Add(cc, ss));
        to(-(mb + ma), plus, hn::Add(cs, sc));
        if (mb != ma)
        {
            to(-(mb - ma), minus, hn::Sub(cs, sc));
        }
    }
};

//! Products of coefficients of the orders ma <= mb, those of one sequence of degrees with the
//! other.
template<bool Sine, class Real>
HWY_INLINE void
convolve(const ProductTable<Real>& table, int ma, int mb, const Real* x, Real* products)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int p     = table.order;
    const auto load = [&](int m, int degree, Vec<Real>* to) HWY_ATTR
    {
        const Real* from = x + 2 * L * (table.offset[m] + 2 * degree);
        for (int part = 0; part < 4; part++)
        {
            to[part] = hn::Load(d, from + part * L);
        }
    };
    for (int degree = ma + mb; degree <= 2 * p; degree += 2)
    {
        // two degrees share what is loaded; around the sequences are zeros, so that both have the
        // same terms
        const int first = std::max(ma, degree - p);
        const int last  = std::min(p, degree + 1 - mb);
        FourProducts<Real> lower, upper;
        lower.setZero();
        upper.setZero();
        Vec<Real> a[4], b[4];
        load(mb, degree + 1 - first, b);
        for (int l = first; l <= last; l++)
        {
            load(ma, l, a);
            upper.template add<Sine>(a, b);
            load(mb, degree - l, b);
            lower.template add<Sine>(a, b);
        }
        lower.store(ma, mb, products + coefficientIndex(degree, 0) * L);
        if (degree < 2 * p)
        {
            upper.store(ma, mb, products + coefficientIndex(degree + 1, 0) * L);
        }
    }
}

template<class Real>
void products(const ProductTable<Real>& table, const Real* x, Real* placed, Real* out)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (size_t i = 0; i < table.place.size(); i++)
    {
        auto re = hn::Zero(d), im = re;
        for (int k = table.start[i]; k < table.start[i + 1]; k++)
        {
            const auto value = hn::Set(d, table.sources[k].value);
            const Real* from = x + 2 * L * table.sources[k].from;
            re               = hn::MulAdd(value, hn::Load(d, from), re);
            im               = hn::MulAdd(value, hn::Load(d, from + L), im);
        }
        hn::Store(re, d, placed + 2 * L * table.place[i]);
        hn::Store(im, d, placed + 2 * L * table.place[i] + L);
    }
    std::fill_n(out, static_cast<size_t>(coefficientCount(2 * table.order)) * L, Real(0));
    for (int ma = 0; ma <= table.order; ma++)
    {
        for (int mb = ma; mb <= table.order; mb++)
        {
            ma == 0 ? convolve<false>(table, ma, mb, placed, out)
                    : convolve<true>(table, ma, mb, placed, out);
        }
    }
}

template<class Real>
void contract(const ProductTable<Real>& table,
              const std::array<const Real*, 4>& products,
              const Real* weights,
              const Real* derivatives,
              Real* sums)
{
    const Tag<Real> d;
    const int L         = lanesOf<Real>();
    const int harmonics = coefficientCount(2 * table.order);
    Vec<Real> weight[4], sum[StrainCount];
    for (int copy = 0; copy < 4; copy++)
    {
        weight[copy] = hn::Load(d, weights + copy * L);
    }
    for (auto& s : sum)
    {
        s = hn::Zero(d);
    }
    for (int h = 0; h < harmonics; h++)
    {
        Vec<Real> p[4];
        for (int copy = 0; copy < 4; copy++)
        {
            p[copy] = hn::Mul(weight[copy], hn::Load(d, products[copy] + h * L));
        }
        const auto scale = hn::Set(d, table.harmonicScale[h]);
        const auto even  = hn::Mul(scale, hn::Add(p[0], p[1])); // y as it is
        const auto evenZ = hn::Mul(scale, hn::Sub(p[0], p[1]));
        const auto odd   = hn::Mul(scale, hn::Add(p[2], p[3])); // y reflected
        const auto oddZ  = hn::Mul(scale, hn::Sub(p[2], p[3]));
        const auto all   = hn::Add(even, odd);
        const Real* from = derivatives + h * StrainCount * L;
        const auto add   = [&](Strain c, Vec<Real> with) HWY_ATTR
        { sum[c] = hn::MulAdd(with, hn::Load(d, from + c * L), sum[c]); };
        add(StrainXXminusZZ, all);
        add(StrainYYminusZZ, all);
        add(StrainXY, hn::Sub(even, odd));
        add(StrainXZ, hn::Add(evenZ, oddZ));
        add(StrainYZ, hn::Sub(evenZ, oddZ));
    }
    for (int c = 0; c < StrainCount; c++)
    {
        hn::Store(sum[c], d, sums + c * L);
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
