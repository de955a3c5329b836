/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Fourier transforms of a line that a thread holds in registers.
 *
 *  Lengths and roots of unity are known to the compiler; wave vectors are in natural order.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_FFT_LINES_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_FFT_LINES_CUH

#include <type_traits>
#include <utility>

#include "m2l_periodic/index.h"

namespace farfield
{

//! Longest line that a thread transforms; a row of even length is a line of half of it.
constexpr int c_longestLine = 24;
constexpr int c_longestRow  = 2 * c_longestLine;

//! Cosine of an angle of up to an eighth of a turn.
constexpr double seriesCos(double x)
{
    double term = 1, sum = 1;
    for (int k = 2; k < 24; k += 2)
    {
        term *= -x * x / (k * (k - 1));
        sum += term;
    }
    return sum;
}
//! Sine of such an angle.
constexpr double seriesSin(double x)
{
    double term = x, sum = x;
    for (int k = 3; k < 25; k += 2)
    {
        term *= -x * x / (k * (k - 1));
        sum += term;
    }
    return sum;
}
//! cos 2 pi k / r for 0 <= k < r.
constexpr double rootCos(int r, int k)
{
    constexpr double c_turn = 6.283185307179586476925;
    k                       = (2 * k > r) ? r - k : k;
    const bool negative     = 4 * k > r;
    const int turns         = negative ? r - 2 * k : k;
    const int of            = negative ? 2 * r : r;
    const double value      = (8 * turns > of) ? seriesSin(c_turn * (of - 4 * turns) / (4 * of))
                                               : seriesCos(c_turn * turns / of);
    return negative ? -value : value;
}
//! sin 2 pi k / r for 0 <= k < r.
constexpr double rootSin(int r, int k)
{
    return rootCos(4 * r, (4 * k + 3 * r) % (4 * r));
}

template<class Real>
FARFIELD_HD Complex<Real> operator+(Complex<Real> a, Complex<Real> b)
{
    return { a.re + b.re, a.im + b.im };
}
template<class Real>
FARFIELD_HD Complex<Real> operator-(Complex<Real> a, Complex<Real> b)
{
    return { a.re - b.re, a.im - b.im };
}
template<class Real>
FARFIELD_HD Complex<Real> operator*(Complex<Real> a, Complex<Real> b)
{
    return { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}
template<class Real>
FARFIELD_HD Complex<Real> conjugate(Complex<Real> a)
{
    return { a.re, -a.im };
}

//! exp(-2 pi i K / R), its conjugate for inverse transforms.
template<class Real, int R, int K, bool Inverse>
__device__ __forceinline__ Complex<Real> rootOfUnity()
{
    constexpr Real cosine = static_cast<Real>(rootCos(R, K % R));
    constexpr Real sine   = static_cast<Real>(rootSin(R, K % R));
    return { cosine, Inverse ? sine : -sine };
}

template<class Use, int... K>
__device__ __forceinline__ void forEachOf(std::integer_sequence<int, K...>, const Use& use)
{
    (use(std::integral_constant<int, K>()), ...);
}
//! Calls use with 0, ..., Count - 1, known to the compiler.
template<int Count, class Use>
__device__ __forceinline__ void forEachIndex(const Use& use)
{
    forEachOf(std::make_integer_sequence<int, Count>(), use);
}

//! Transform of R numbers in natural order, by halves and then directly.
template<int R, bool Inverse, class Real>
__device__ __forceinline__ void transformFew(Complex<Real> (&v)[R])
{
    if constexpr (R % 2 == 0)
    {
        constexpr int c_half = R / 2;
        Complex<Real> even[c_half], odd[c_half];
#pragma unroll
        for (int k = 0; k < c_half; k++)
        {
            even[k] = v[2 * k];
            odd[k]  = v[2 * k + 1];
        }
        transformFew<c_half, Inverse>(even);
        transformFew<c_half, Inverse>(odd);
        forEachIndex<c_half>(
                [&](auto index)
                {
                    constexpr int k = decltype(index)::value;
                    Complex<Real> t = odd[k];
                    if constexpr (4 * k == R)
                    {
                        t = Inverse ? Complex<Real>{ -t.im, t.re } : Complex<Real>{ t.im, -t.re };
                    }
                    else if constexpr (k > 0)
                    {
                        t = t * rootOfUnity<Real, R, k, Inverse>();
                    }
                    v[k]          = even[k] + t;
                    v[k + c_half] = even[k] - t;
                });
    }
    else if constexpr (R > 1)
    {
        constexpr int c_half = R / 2;
        Complex<Real> sum[c_half], difference[c_half], total = v[0];
#pragma unroll
        for (int j = 0; j < c_half; j++)
        {
            sum[j]        = v[j + 1] + v[R - 1 - j];
            difference[j] = v[j + 1] - v[R - 1 - j];
            total         = total + sum[j];
        }
        const Complex<Real> zeroth = v[0];
        v[0]                       = total;
        forEachIndex<c_half>(
                [&](auto outer)
                {
                    constexpr int k = decltype(outer)::value + 1;
                    Complex<Real> a = zeroth, b = { 0, 0 };
                    forEachIndex<c_half>(
                            [&](auto inner)
                            {
                                constexpr int j = decltype(inner)::value;
                                const Complex<Real> root =
                                        rootOfUnity<Real, R, (j + 1) * k, true>();
                                a.re += root.re * sum[j].re;
                                a.im += root.re * sum[j].im;
                                b.re += root.im * difference[j].re;
                                b.im += root.im * difference[j].im;
                            });
                    // a - i b and a + i b
                    const Complex<Real> minus = { a.re + b.im, a.im - b.re };
                    const Complex<Real> plus  = { a.re - b.im, a.im + b.re };
                    v[k]                      = Inverse ? plus : minus;
                    v[R - k]                  = Inverse ? minus : plus;
                });
    }
}

//! As many numbers of a row as are read at once.
template<class Real, int N>
struct RowPiece
{
    static constexpr int c_count = (N % 4 == 0 && sizeof(Real) == 4) ? 4 : (N % 2 == 0) ? 2 : 1;
    struct alignas(c_count * sizeof(Real)) Type
    {
        Real value[c_count];
    };
};

//! A real row to its wave vectors 0, ..., N / 2.
template<int N, class Real>
__device__ __forceinline__ void forwardRow(const Real* __restrict__ from, Complex<Real>* to)
{
    using Piece           = typename RowPiece<Real, N>::Type;
    constexpr int c_count = RowPiece<Real, N>::c_count;
    Real x[N];
#pragma unroll
    for (int k = 0; k < N / c_count; k++)
    {
        const Piece piece = reinterpret_cast<const Piece*>(from)[k];
#pragma unroll
        for (int c = 0; c < c_count; c++)
        {
            x[k * c_count + c] = piece.value[c];
        }
    }
    if constexpr (N % 2 == 0)
    {
        constexpr int c_half = N / 2;
        Complex<Real> v[c_half];
#pragma unroll
        for (int k = 0; k < c_half; k++)
        {
            v[k] = { x[2 * k], x[2 * k + 1] };
        }
        transformFew<c_half, false>(v);
        // from the transform of pairs of neighbours to that of the row
        forEachIndex<c_half / 2 + 1>(
                [&](auto index)
                {
                    constexpr int k       = decltype(index)::value;
                    const Complex<Real> a = v[k];
                    const Complex<Real> b = conjugate(v[(c_half - k) % c_half]);
                    const Complex<Real> e = { Real(0.5) * (a.re + b.re),
                                              Real(0.5) * (a.im + b.im) };
                    const Complex<Real> o = { Real(0.5) * (a.im - b.im),
                                              Real(-0.5) * (a.re - b.re) };
                    const Complex<Real> t = rootOfUnity<Real, N, k, false>() * o;
                    to[k]                 = e + t;
                    if constexpr (2 * k != c_half)
                    {
                        to[c_half - k] = conjugate(e - t);
                    }
                });
    }
    else
    {
        Complex<Real> v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
        {
            v[k] = { x[k], Real(0) };
        }
        transformFew<N, false>(v);
#pragma unroll
        for (int k = 0; k <= N / 2; k++)
        {
            to[k] = v[k];
        }
    }
}

//! Its inverse, times N.
template<int N, class Real>
__device__ __forceinline__ void backwardRow(const Complex<Real>* from, Real* __restrict__ to)
{
    using Piece           = typename RowPiece<Real, N>::Type;
    constexpr int c_count = RowPiece<Real, N>::c_count;
    Real x[N];
    if constexpr (N % 2 == 0)
    {
        constexpr int c_half = N / 2;
        Complex<Real> v[c_half];
        forEachIndex<c_half / 2 + 1>(
                [&](auto index)
                {
                    constexpr int k = decltype(index)::value;
                    Complex<Real> a = from[k];
                    Complex<Real> b = conjugate(from[c_half - k]);
                    if constexpr (k == 0) // real but for rounding
                    {
                        a.im = 0;
                        b.im = 0;
                    }
                    const Complex<Real> e = a + b;
                    const Complex<Real> o = a - b;
                    const Complex<Real> t =
                            rootOfUnity<Real, N, k, true>() * Complex<Real>{ -o.im, o.re };
                    v[k] = e + t;
                    if constexpr (k != 0 && 2 * k != c_half)
                    {
                        v[c_half - k] = conjugate(e - t);
                    }
                });
        transformFew<c_half, true>(v);
#pragma unroll
        for (int k = 0; k < c_half; k++)
        {
            x[2 * k]     = v[k].re;
            x[2 * k + 1] = v[k].im;
        }
    }
    else
    {
        Complex<Real> v[N];
        v[0] = { from[0].re, Real(0) };
#pragma unroll
        for (int k = 1; k <= N / 2; k++)
        {
            v[k]     = from[k];
            v[N - k] = conjugate(v[k]);
        }
        transformFew<N, true>(v);
#pragma unroll
        for (int k = 0; k < N; k++)
        {
            x[k] = v[k].re;
        }
    }
#pragma unroll
    for (int k = 0; k < N / c_count; k++)
    {
        Piece piece;
#pragma unroll
        for (int c = 0; c < c_count; c++)
        {
            piece.value[c] = x[k * c_count + c];
        }
        reinterpret_cast<Piece*>(to)[k] = piece;
    }
}

//! A complex line; may be in place.
template<int N, bool Inverse, class Real>
__device__ __forceinline__ void
transformLine(const Complex<Real>* from, int fromStep, Complex<Real>* to, int toStep)
{
    Complex<Real> v[N];
#pragma unroll
    for (int k = 0; k < N; k++)
    {
        v[k] = from[k * fromStep];
    }
    transformFew<N, Inverse>(v);
#pragma unroll
    for (int k = 0; k < N; k++)
    {
        to[k * toStep] = v[k];
    }
}

template<bool Row, int Length, class Use>
__device__ __forceinline__ bool useIfLength(int length, const Use& use)
{
    if constexpr (Length <= c_longestLine || (Row && Length % 2 == 0))
    {
        if (length == Length)
        {
            use(std::integral_constant<int, Length>());
            return true;
        }
    }
    return false;
}
template<bool Row, class Use, int... K>
__device__ __forceinline__ void withLengthOf(std::integer_sequence<int, K...>,
                                             int length,
                                             const Use& use)
{
    static_cast<void>((useIfLength<Row, K + 1>(length, use) || ...));
}
//! Calls use with a length, known to the compiler.
template<class Use>
__device__ __forceinline__ void withLineLength(int length, const Use& use)
{
    withLengthOf<false>(std::make_integer_sequence<int, c_longestLine>(), length, use);
}
//! The same for rows.
template<class Use>
__device__ __forceinline__ void withRowLength(int length, const Use& use)
{
    withLengthOf<true>(std::make_integer_sequence<int, c_longestRow>(), length, use);
}

} // namespace farfield

#endif
