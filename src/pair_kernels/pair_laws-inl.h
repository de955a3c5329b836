/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The laws of pairs on vectors: G and -G'/r of the squared distance.
 *
 *  Compiled once per instruction set, see point_kernels.cpp.
 */
#if defined(FARFIELD_PAIR_KERNELS_PAIR_LAWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_PAIR_KERNELS_PAIR_LAWS_INL_H
#undef FARFIELD_PAIR_KERNELS_PAIR_LAWS_INL_H
#else
#define FARFIELD_PAIR_KERNELS_PAIR_LAWS_INL_H
#endif

#include "hwy/highway.h"

#include "base/simd_functions-inl.h"
#include "pair_kernels/pair_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! 1/r, within two units in the last place: high powers multiply its error.
HWY_INLINE Vec<float> inverseDistance(Vec<float> r2)
{
    const Tag<float> d;
    // Newton's method, from 14 binary digits of AVX-512, and 12 or 8 of others
    constexpr int c_steps = HWY_TARGET <= HWY_AVX3 ? 1 : 2;
    auto y                = hn::ApproximateReciprocalSqrt(r2);
    for (int k = 0; k < c_steps; k++)
    {
        y = hn::Mul(hn::Mul(hn::Set(d, 0.5F), y),
                    hn::NegMulAdd(hn::Mul(r2, y), y, hn::Set(d, 3.0F)));
    }
    return y;
}
HWY_INLINE Vec<double> inverseDistance(Vec<double> r2)
{
    return hn::Div(hn::Set(Tag<double>(), 1.0), hn::Sqrt(r2));
}

//! exp(-x), and 0 where a number of the type would have fewer digits.
HWY_INLINE Vec<float> wholeDecay(Vec<float> x)
{
    return hn::IfThenZeroElse(hn::Gt(x, hn::Set(Tag<float>(), 80.0F)), decay<float>(x));
}
HWY_INLINE Vec<double> wholeDecay(Vec<double> x)
{
    // decay() ends at 80
    const Tag<double> d;
    const auto root   = decay<double>(hn::Mul(x, hn::Set(d, 0.125)));
    const auto second = hn::Mul(root, root);
    const auto fourth = hn::Mul(second, second);
    return hn::IfThenZeroElse(hn::Gt(x, hn::Set(d, 640.0)), hn::Mul(fourth, fourth));
}

template<class Real>
struct YukawaLaw
{
    Vec<Real> k;

    HWY_INLINE explicit YukawaLaw(const PairLaw<Real>& law) : k(hn::Set(Tag<Real>(), law.decay)) {}
    HWY_INLINE void operator()(Vec<Real> r2, Vec<Real>* g, Vec<Real>* f) const
    {
        const auto y = inverseDistance(r2);
        *g           = hn::Mul(wholeDecay(hn::Mul(k, hn::Mul(r2, y))), y);
        *f           = hn::Mul(hn::Mul(*g, y), hn::Add(k, y));
    }
};

template<class Real>
struct InversePowerLaw
{
    int exponent;
    Vec<Real> n;

    HWY_INLINE explicit InversePowerLaw(const PairLaw<Real>& law) :
        exponent(law.exponent), n(hn::Set(Tag<Real>(), static_cast<Real>(law.exponent)))
    {
    }
    HWY_INLINE void operator()(Vec<Real> r2, Vec<Real>* g, Vec<Real>* f) const
    {
        const auto y      = inverseDistance(r2);
        const auto square = hn::Mul(y, y);
        auto power        = exponent % 2 == 0 ? square : y;
        for (int k = exponent % 2 == 0 ? 2 : 1; k < exponent; k += 2)
        {
            power = hn::Mul(power, square);
        }
        *g = power;
        *f = hn::Mul(hn::Mul(n, power), square);
    }
};

template<class Real>
struct TableLaw
{
    const PairLaw<Real>& law;

    HWY_INLINE explicit TableLaw(const PairLaw<Real>& of) : law(of) {}
    HWY_INLINE void operator()(Vec<Real> r2, Vec<Real>* g, Vec<Real>* f) const
    {
        const Tag<Real> d;
        const hn::RebindToSigned<Tag<Real>> di;
        const auto perStep = hn::Set(d, law.perStep);
        const auto end     = hn::Set(d, static_cast<Real>(law.steps));
        const auto square  = hn::Max(r2, hn::Set(d, Real(1e-30)));
        const auto y       = inverseDistance(square);
        const auto at      = hn::Mul(hn::NegMulAdd(hn::Set(d, law.first), y, hn::Set(d, Real(1))),
                                hn::Mul(hn::Mul(square, y), perStep));
        // a NaN compares as neither; a distance at the beginning may round to before it
        const auto isBefore = hn::Lt(at, hn::Set(d, Real(-1e-3)));
        const auto isBeyond = hn::Gt(at, end);
        const auto inside   = hn::Min(hn::Max(at, hn::Zero(d)), end);
        const auto k        = hn::Min(hn::ConvertTo(di, inside), hn::Set(di, law.steps - 1));
        const auto t        = hn::Sub(inside, hn::ConvertTo(d, k));
        const auto index    = hn::ShiftLeft<2>(k);
        const Real* c       = law.polynomials.data();
        const auto c0 = hn::GatherIndex(d, c, index), c1 = hn::GatherIndex(d, c + 1, index);
        const auto c2 = hn::GatherIndex(d, c + 2, index), c3 = hn::GatherIndex(d, c + 3, index);
        const auto value = hn::MulAdd(hn::MulAdd(hn::MulAdd(c3, t, c2), t, c1), t, c0);
        const auto slope =
                hn::MulAdd(hn::MulAdd(hn::Mul(hn::Set(d, Real(3)), c3), t, hn::Add(c2, c2)), t, c1);
        const auto outside   = hn::IfThenElse(isBefore,
                                            hn::Set(d, std::numeric_limits<Real>::quiet_NaN()),
                                            hn::Set(d, law.beyond));
        const auto isOutside = hn::Or(isBefore, isBeyond);
        *g                   = hn::IfThenElse(isOutside, outside, value);
        *f = hn::IfThenElse(isOutside, outside, hn::Neg(hn::Mul(hn::Mul(slope, perStep), y)));
    }
};

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
