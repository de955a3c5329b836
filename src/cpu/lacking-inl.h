/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the functions of pairs lack of 1/r, of as many pairs as a vector holds.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_LACKING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_LACKING_INL_H
#undef FARFIELD_CPU_LACKING_INL_H
#else
#define FARFIELD_CPU_LACKING_INL_H
#endif

#include <cmath>

#include "hwy/highway.h"

#include "farfield/farfield.h"

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! (1 + u)^(-1/6), 0 <= u <= 1: a parabola within 9e-4, and Newton's method, which leaves 7/2 of the square.
template<class Real>
HWY_INLINE Vec<Real> inverseSixthRoot(Vec<Real> u)
{
    const Tag<Real> d;
    const auto set        = [d](double a) HWY_ATTR { return hn::Set(d, static_cast<Real>(a)); };
    constexpr int c_steps = sizeof(Real) == 4 ? 2 : 3;
    auto h =
            hn::MulAdd(hn::MulAdd(u, set(0.04243381361), set(-0.1501444277)), u, set(0.9991190256));
    const auto sum = hn::Add(u, set(1));
    for (int k = 0; k < c_steps; k++)
    {
        const auto cube = hn::Mul(hn::Mul(h, h), h);
        const auto left = hn::NegMulAdd(sum, hn::Mul(cube, cube), set(1));
        h               = hn::MulAdd(hn::Mul(h, set(1.0 / 6)), left, h);
    }
    return h;
}

//! 1 - r f and 1 - r^3 s of a function f with the slope s, see near_function.h.
template<class Real>
struct Lacking
{
    Vec<Real> value, slope;
};

/*! \brief What a function lacks of 1/r, to the rounding of 1.
 *  \param[in] x  distances in widths */
template<class Real>
HWY_INLINE Lacking<Real> lacking(PairFunction function, Vec<Real> x)
{
    const Tag<Real> d;
    const auto set = [d](double a) HWY_ATTR { return hn::Set(d, static_cast<Real>(a)); };
    const auto one = hn::Set(d, Real(1));
    if (function == PairFunction::SoftCore)
    {
        // min(x, 1) (1 + min(x, 1/x)^6)^(-1/6)
        const auto least  = hn::Min(x, reciprocal(hn::Max(x, set(1e-15))));
        const auto square = hn::Mul(least, least);
        const auto root   = inverseSixthRoot<Real>(hn::Mul(hn::Mul(square, square), square));
        const auto g      = hn::Mul(hn::Min(x, one), root);
        const auto g3     = hn::Mul(hn::Mul(g, g), g);
        return { hn::Sub(one, g), hn::NegMulAdd(hn::Mul(g3, g3), g, one) };
    }
    const bool isThole = function == PairFunction::Thole;
    // beyond it nothing is left of either, and squares are finite
    x            = hn::Min(x, set(100));
    const auto e = decay<Real>(isThole ? x : hn::Mul(x, x));
    if (isThole)
    {
        const auto half = hn::Mul(set(0.5), e);
        return { hn::MulAdd(x, half, e),
                 hn::MulAdd(hn::MulAdd(x, x, x), half, hn::MulAdd(x, half, e)) };
    }
    const auto value = hn::Mul(e, scaledErfc<Real>(x));
    return { value, hn::MulAdd(hn::Mul(set(M_2_SQRTPI), x), e, value) };
}

/*! \brief derivativeFactors() of Gaussian and Thole, or what they lack of 1.
 *  \param[in] isWhole  else what is to be added to 1/r
 *  \param[in] x        distances in widths */
template<class Real>
HWY_INLINE void derivativeFactors(PairFunction function, bool isWhole, Vec<Real> x, Vec<Real>* of)
{
    const Tag<Real> d;
    const auto set     = [d](double a) HWY_ATTR { return hn::Set(d, static_cast<Real>(a)); };
    const auto one     = hn::Set(d, Real(1));
    const bool isThole = function == PairFunction::Thole;
    // beyond it nothing is left of either, and powers are finite
    x                 = hn::Min(x, set(isThole ? 80 : 9));
    const auto square = hn::Mul(x, x);
    const auto cube   = hn::Mul(square, x);
    auto e            = decay<Real>(isThole ? x : square);
    const auto lacked = isThole ? hn::MulAdd(hn::MulAdd(x, set(0.5), one), hn::Mul(x, e), e)
                                : hn::Mul(e, scaledErfc<Real>(x));
    e                 = isThole ? e : hn::Mul(set(M_2_SQRTPI), e);
    // of B0 to B1, of B1 to B2, of B2 to B3
    const auto first = isThole ? hn::Mul(hn::Mul(set(0.5), hn::MulAdd(x, x, x)), e) : hn::Mul(x, e);
    const auto second = hn::Mul(hn::Mul(set(isThole ? 1.0 / 6 : 2.0 / 3), cube), e);
    const auto third  = hn::Mul(
            hn::Mul(set(isThole ? 1.0 / 30 : 4.0 / 15), hn::Mul(cube, isThole ? x : square)), e);
    // what Thole lacks is that of B1, what Gaussian charges lack that of B0
    const auto lackOfB2 =
            isThole ? hn::Add(lacked, second) : hn::Add(hn::Add(lacked, first), second);
    auto ofB2 = hn::Neg(lackOfB2);
    if (isWhole)
    {
        constexpr int c_terms = sizeof(Real) == 4 ? 12 : 22;
        // of Thole x^4/24 (1 + x/5 (1 + x/6 ...)) E, of Gaussian 4 x^5/15 (1 + 2 x^2/7 (1 + 2 x^2/9 ...)) E
        auto sum = one;
        for (int k = c_terms; k > 0; k--)
        {
            const auto next = isThole ? hn::Mul(set(1.0 / (k + 4)), x)
                                      : hn::Mul(set(2.0 / (2 * k + 5)), square);
            sum             = hn::MulAdd(next, sum, one);
        }
        const auto series = hn::Mul(
                isThole ? hn::Mul(hn::Mul(set(1.0 / 24), hn::Mul(cube, x)), e) : third, sum);
        ofB2 = hn::IfThenElse(hn::Lt(x, set(1.5)), series, hn::Sub(one, lackOfB2));
    }
    of[1] = hn::Add(ofB2, second);
    of[0] = hn::Add(of[1], first);
    of[2] = ofB2;
    of[3] = hn::Sub(ofB2, third);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
