/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectors of the instruction set at hand, and exp(-x) and erfc(x) of them.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp, batch_kernels.cpp and
 *  exact_kernels.cpp.
 */
#if defined(FARFIELD_BASE_SIMD_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_BASE_SIMD_FUNCTIONS_INL_H
#undef FARFIELD_BASE_SIMD_FUNCTIONS_INL_H
#else
#define FARFIELD_BASE_SIMD_FUNCTIONS_INL_H
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

template<class Real>
using Tag = hn::ScalableTag<Real>;
template<class Real>
using Vec = hn::Vec<Tag<Real>>;

template<class Real>
int lanesOf()
{
    return static_cast<int>(hn::Lanes(Tag<Real>()));
}

//! Polynomials, within the rounding of the type.
template<class Real>
struct Coefficients;
template<>
struct Coefficients<float>
{
    //! (exp(f) - 1)/f for 2 |f| <= ln 2, in powers of f: a Chebyshev fit, off by 5e-9 in exp(f).
    static constexpr float c_exp[] = { 1.0F,          0.5000000014F,   0.1666650461F,
                                       0.0416664642F, 0.008369220292F, 0.001393373072F };
    //! exp(x^2) erfc(x) for x >= 0, in powers of (1 - 3 x/8)/(1 + 3 x/8): Remez's algorithm with the
    //! weight exp(-x^2), off by 1.5e-9 in erfc(x).
    static constexpr float c_erfc[] = { 0.1990711452F,   0.3555440365F,  0.2505634336F,
                                        0.1365073433F,   0.04858150104F, 0.0144088568F,
                                        -0.004676317763F };
    //! ln 2 in two parts, the first with few bits.
    static constexpr float c_ln2[]  = { 0.693115234375F, 3.194618495e-5F };
    static constexpr int c_mantissa = 23; //!< bits
};
template<>
struct Coefficients<double>
{
    //! The same, off by 9e-18
    static constexpr double c_exp[] = { 1.0,
                                        0.500000000000000567,
                                        0.16666666666666671,
                                        0.0416666666665723915,
                                        0.00833333333332608312,
                                        0.00138888889327510003,
                                        0.000198412698750022788,
                                        2.48015040144269051e-5,
                                        2.75572551700008874e-6,
                                        2.76264955464321963e-7,
                                        2.51053127296221018e-8 };
    //! and by 6e-18.
    static constexpr double c_erfc[] = { 0.199072630993863642,    0.355511831795289395,
                                         0.250830286495533812,    0.135363728378291363,
                                         0.051403748664281705,    0.0102831687450959752,
                                         -0.00125527662079070547, -0.00129453941548001616,
                                         -6.58398643517738559e-5, 1.53204142406099477e-4,
                                         1.96464561756348999e-5,  -2.47400463038415466e-5,
                                         -1.50293539387779208e-6, 5.19804021069529545e-6,
                                         -1.75417177399800473e-6, 2.09342945895130222e-7 };
    static constexpr double c_ln2[]  = { 0.69314718055920820916, 7.3710025651677989e-13 };
    static constexpr int c_mantissa  = 52;
};

//! A polynomial; even and odd powers apart, for half of the latency.
template<class Real, size_t n>
HWY_INLINE Vec<Real> polynomial(const Real (&a)[n], Vec<Real> x)
{
    const Tag<Real> d;
    const auto square = hn::Mul(x, x);
    auto last         = hn::Set(d, a[n - 1]);
    auto before       = hn::Set(d, a[n - 2]);
    for (int k = static_cast<int>(n) - 3; k > 0; k -= 2)
    {
        last   = hn::MulAdd(last, square, hn::Set(d, a[k]));
        before = hn::MulAdd(before, square, hn::Set(d, a[k - 1]));
    }
    return n % 2 == 0 ? hn::MulAdd(last, x, before)
                      : hn::MulAdd(hn::MulAdd(last, x, before), x, hn::Set(d, a[0]));
}

HWY_INLINE Vec<float> reciprocal(Vec<float> a)
{
    const auto y = hn::ApproximateReciprocal(a);
    return hn::Mul(y, hn::NegMulAdd(a, y, hn::Set(Tag<float>(), 2.0F)));
}
HWY_INLINE Vec<double> reciprocal(Vec<double> a)
{
    return hn::Div(hn::Set(Tag<double>(), 1.0), a);
}

//! exp(-x), 0 <= x, at least exp(-80): smaller numbers are slow, as they have fewer digits.
template<class Real>
HWY_INLINE Vec<Real> decay(Vec<Real> x)
{
    using C = Coefficients<Real>;
    const Tag<Real> d;
    const hn::RebindToSigned<Tag<Real>> di;
    const auto set = [d](double a) HWY_ATTR { return hn::Set(d, static_cast<Real>(a)); };
    x              = hn::Min(x, set(80));
    // added to it, a number is rounded to an integer, which is in the last bits
    const auto magic = hn::Set(d, Real(1.5) * static_cast<Real>(1LL << C::c_mantissa));
    const auto bits  = hn::NegMulAdd(x, set(M_LOG2E), magic);
    const auto q     = hn::Sub(bits, magic);
    const auto f =
            hn::NegMulAdd(q,
                          hn::Set(d, C::c_ln2[1]),
                          hn::Sub(hn::NegMulAdd(q, hn::Set(d, C::c_ln2[0]), hn::Zero(d)), x));
    const auto power = hn::MulAdd(polynomial(C::c_exp, f), f, set(1));
    return hn::BitCast(
            d,
            hn::Add(hn::BitCast(di, power), hn::ShiftLeft<C::c_mantissa>(hn::BitCast(di, bits))));
}

//! exp(x^2) erfc(x), 0 <= x
template<class Real>
HWY_INLINE Vec<Real> scaledErfc(Vec<Real> x)
{
    const Tag<Real> d;
    const auto one = hn::Set(d, Real(1));
    const auto c   = hn::Set(d, Real(0.375));
    const auto s   = hn::Mul(hn::NegMulAdd(c, x, one), reciprocal(hn::MulAdd(c, x, one)));
    return polynomial(Coefficients<Real>::c_erfc, s);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
