/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Fourier transforms of many small real fields, one launch per direction.
 *
 *  A block keeps a field in shared memory and transforms its dimensions in turn, in place, by mixed
 *  radices: decimation in frequency forward (results in digit-reversed order), in time backward.
 *  Cooley and Tukey, Math. Comput. 19, 297 (1965), doi:10.1090/S0025-5718-1965-0178586-1. Rows of
 *  even length are taken as complex ones of half the length; rows of odd length are summed
 *  directly.
 */
#ifndef FARFIELD_KERNELS_SMALL_FFT_CUH
#define FARFIELD_KERNELS_SMALL_FFT_CUH

#include <algorithm>
#include <cmath>
#include <vector>

#include "closure_index.h"
#include "device.h"
#include "overlap.cuh"

namespace farfield
{

//! Largest radix.
constexpr int c_maxRadix = 9;
//! Most factors of a length.
constexpr int c_maxFactors = 5;
//! Longest row of odd length.
constexpr int c_maxOddRow = 63;

//! Division of numbers whose product with the divisor is below 2^32.
struct FastDivide
{
    unsigned int divisor, factor;

    FARFIELD_HD int operator()(int n) const
    {
        return divisor == 1
                       ? n
                       : static_cast<int>((static_cast<unsigned long long>(n) * factor) >> 32U);
    }
};

inline FastDivide fastDivide(int divisor)
{
    const auto d = static_cast<unsigned int>(divisor);
    return { d, static_cast<unsigned int>(((1ULL << 32U) + d - 1) / d) };
}

//! One radix of one dimension.
struct TransformPass
{
    int radix;
    int items;          //!< small transforms
    FastDivide perLine; //!< items of a line
    int pitch;          //!< distance of lines
    FastDivide inner;   //!< distance of the elements of a small transform
    FastDivide unit;    //!< distance of elements of the dimension
    int step;           //!< of roots of unity in the table, 0: no roots
    int table;          //!< where the roots are
};

//! What is done for a field, by value.
struct SmallPlan
{
    int rows;            //!< lengths[0] * lengths[1]
    int length;          //!< of rows
    int half;            //!< wave vectors of a row
    int pitch;           //!< distance of rows in shared memory, complex numbers
    int pairs;           //!< complex numbers of a row of even length, 0: odd length
    FastDivide byRow1;   //!< lengths[1]
    FastDivide byHalf;   //!< half
    FastDivide byPairs;  //!< pairs
    FastDivide bySplits; //!< pairs / 2 + 1
    FastDivide byLength; //!< length
    int tables;          //!< roots of unity
    int positions;       //!< where wave vectors are: per dimension
    int rootsX;          //!< first root of the rows
    int place[3];        //!< first position of each dimension
    int passes[3];
    TransformPass pass[3][c_maxFactors];
};

//! cos and sin of 2 pi k / r for small r, folded at compile time.
constexpr double rootCos(int r, int k)
{
    if (2 * k > r)
    {
        k = r - k;
    }
    if (k == 0)
    {
        return 1;
    }
    switch (16 * r + k)
    {
        case 16 * 3 + 1:
            return -0.5;
        case 16 * 5 + 1:
            return 0.30901699437494742410;
        case 16 * 5 + 2:
            return -0.80901699437494742410;
        case 16 * 6 + 1:
            return 0.5;
        case 16 * 6 + 2:
            return -0.5;
        case 16 * 7 + 1:
            return 0.62348980185873353053;
        case 16 * 7 + 2:
            return -0.22252093395631440429;
        case 16 * 7 + 3:
            return -0.90096886790241912624;
        case 16 * 8 + 1:
            return 0.70710678118654752440;
        case 16 * 8 + 3:
            return -0.70710678118654752440;
        case 16 * 9 + 1:
            return 0.76604444311897803520;
        case 16 * 9 + 2:
            return 0.17364817766693034885;
        case 16 * 9 + 3:
            return -0.5;
        case 16 * 9 + 4:
            return -0.93969262078590838405;
        default:
            return 0; // a quarter
    }
}
constexpr double rootSin(int r, int k)
{
    double sign = 1;
    if (2 * k > r)
    {
        k    = r - k;
        sign = -1;
    }
    switch (16 * r + k)
    {
        case 16 * 3 + 1:
            return sign * 0.86602540378443864676;
        case 16 * 5 + 1:
            return sign * 0.95105651629515357212;
        case 16 * 5 + 2:
            return sign * 0.58778525229247312917;
        case 16 * 6 + 1:
            return sign * 0.86602540378443864676;
        case 16 * 6 + 2:
            return sign * 0.86602540378443864676;
        case 16 * 7 + 1:
            return sign * 0.78183148246802980871;
        case 16 * 7 + 2:
            return sign * 0.97492791218182360702;
        case 16 * 7 + 3:
            return sign * 0.43388373911755812048;
        case 16 * 8 + 1:
            return sign * 0.70710678118654752440;
        case 16 * 8 + 3:
            return sign * 0.70710678118654752440;
        case 16 * 9 + 1:
            return sign * 0.64278760968653932632;
        case 16 * 9 + 2:
            return sign * 0.98480775301220805937;
        case 16 * 9 + 3:
            return sign * 0.86602540378443864676;
        case 16 * 9 + 4:
            return sign * 0.34202014332566873304;
        default:
            return (4 * k == r) ? sign : 0;
    }
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
        if constexpr (c_half > 1)
        {
            transformFew<c_half, Inverse>(even);
            transformFew<c_half, Inverse>(odd);
        }
#pragma unroll
        for (int k = 0; k < c_half; k++)
        {
            Complex<Real> t = odd[k];
            if (4 * k == R)
            {
                t = Inverse ? Complex<Real>{ -t.im, t.re } : Complex<Real>{ t.im, -t.re };
            }
            else if (k > 0)
            {
                const Real sine = static_cast<Real>(rootSin(R, k));
                t = t * Complex<Real>{ static_cast<Real>(rootCos(R, k)), Inverse ? sine : -sine };
            }
            v[k]          = even[k] + t;
            v[k + c_half] = even[k] - t;
        }
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
#pragma unroll
        for (int k = 1; k <= c_half; k++)
        {
            Complex<Real> a = zeroth, b = { 0, 0 };
#pragma unroll
            for (int j = 0; j < c_half; j++)
            {
                const Real cosine = static_cast<Real>(rootCos(R, (j + 1) * k % R));
                const Real sine   = static_cast<Real>(rootSin(R, (j + 1) * k % R));
                a.re += cosine * sum[j].re;
                a.im += cosine * sum[j].im;
                b.re += sine * difference[j].re;
                b.im += sine * difference[j].im;
            }
            // a - i b and a + i b
            const Complex<Real> minus = { a.re + b.im, a.im - b.re };
            const Complex<Real> plus  = { a.re - b.im, a.im + b.re };
            v[k]                      = Inverse ? plus : minus;
            v[R - k]                  = Inverse ? minus : plus;
        }
    }
}

//! One radix over a field in shared memory; all threads of a block.
template<int R, bool Inverse, class Real>
__device__ __forceinline__ void transformItems(const TransformPass& pass,
                                               const Complex<Real>* roots,
                                               Complex<Real>* field,
                                               int thread,
                                               int threads)
{
    const int inner = static_cast<int>(pass.inner.divisor);
    for (int item = thread; item < pass.items; item += threads)
    {
        const int line    = pass.perLine(item);
        const int rest    = item - line * static_cast<int>(pass.perLine.divisor);
        const int outer   = pass.inner(rest);
        const int in      = rest - outer * inner;
        const int twist   = pass.unit(in) * pass.step;
        Complex<Real>* at = field + line * pass.pitch + outer * inner * R + in;
        Complex<Real> v[R];
#pragma unroll
        for (int r = 0; r < R; r++)
        {
            v[r] = at[r * inner];
        }
        if (Inverse && pass.step != 0)
        {
#pragma unroll
            for (int r = 1; r < R; r++)
            {
                v[r] = v[r] * conjugate(roots[pass.table + r * twist]);
            }
        }
        transformFew<R, Inverse>(v);
        if (!Inverse && pass.step != 0)
        {
#pragma unroll
            for (int r = 1; r < R; r++)
            {
                v[r] = v[r] * roots[pass.table + r * twist];
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++)
        {
            at[r * inner] = v[r];
        }
    }
}

template<bool Inverse, class Real>
__device__ __forceinline__ void transformPass(const TransformPass& pass,
                                              const Complex<Real>* roots,
                                              Complex<Real>* field,
                                              int thread,
                                              int threads)
{
    switch (pass.radix)
    {
        case 2:
            transformItems<2, Inverse>(pass, roots, field, thread, threads);
            break;
        case 3:
            transformItems<3, Inverse>(pass, roots, field, thread, threads);
            break;
        case 4:
            transformItems<4, Inverse>(pass, roots, field, thread, threads);
            break;
        case 5:
            transformItems<5, Inverse>(pass, roots, field, thread, threads);
            break;
        case 6:
            transformItems<6, Inverse>(pass, roots, field, thread, threads);
            break;
        case 7:
            transformItems<7, Inverse>(pass, roots, field, thread, threads);
            break;
        case 8:
            transformItems<8, Inverse>(pass, roots, field, thread, threads);
            break;
        default:
            transformItems<9, Inverse>(pass, roots, field, thread, threads);
            break;
    }
}

//! Threads of a block.
template<class Real>
constexpr int c_transformThreads = sizeof(Real) == 4 ? 1024 : 512;

//! Shared memory of a block: the field, roots of unity, positions of wave vectors.
template<class Real>
struct TransformShared
{
    Complex<Real>* field;
    Complex<Real>* roots;
    int* positions;

    FARFIELD_HD TransformShared(const SmallPlan& plan, unsigned char* memory) :
        field(reinterpret_cast<Complex<Real>*>(memory)), roots(field + plan.rows * plan.pitch),
        positions(reinterpret_cast<int*>(roots + plan.tables))
    {
    }
    //! Where a wave vector in the order of the spectrum lies in the field.
    FARFIELD_HD int position(const SmallPlan& plan, int e) const
    {
        const int row = plan.byHalf(e);
        const int x   = e - row * plan.half;
        const int z   = plan.byRow1(row);
        const int y   = row - z * static_cast<int>(plan.byRow1.divisor);
        return (positions[plan.place[0] + z] * static_cast<int>(plan.byRow1.divisor)
                + positions[plan.place[1] + y])
                       * plan.pitch
               + positions[plan.place[2] + x];
    }
};

//! Real fields to spectra; a block per field.
template<class Real>
__global__ void __launch_bounds__(c_transformThreads<Real>)
        smallForwardKernel(SmallPlan plan,
                           const Complex<Real>* __restrict__ roots,
                           const int* __restrict__ positions,
                           const Real* __restrict__ fields,
                           int stride,
                           Complex<Real>* __restrict__ spectra,
                           int spectrumStride)
{
    extern __shared__ __align__(16) unsigned char s_transform[];
    const TransformShared<Real> shared(plan, s_transform);
    const int thread  = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    const Real* from  = fields + static_cast<size_t>(blockIdx.x) * stride;
    letNextLaunchPrepare();
    for (int i = thread; i < plan.tables; i += threads)
    {
        shared.roots[i] = roots[i];
    }
    for (int i = thread; i < plan.positions; i += threads)
    {
        shared.positions[i] = positions[i];
    }
    if (plan.pairs > 0)
    {
        const auto* two = reinterpret_cast<const Complex<Real>*>(from);
#pragma unroll 4
        for (int e = thread; e < plan.rows * plan.pairs; e += threads)
        {
            const int row                                           = plan.byPairs(e);
            shared.field[row * plan.pitch + (e - row * plan.pairs)] = two[e];
        }
        __syncthreads();
        for (int k = 0; k < plan.passes[2]; k++)
        {
            transformPass<false>(plan.pass[2][k], shared.roots, shared.field, thread, threads);
            __syncthreads();
        }
        // From the transform Z of pairs of neighbours to that of the row: wave vectors k and
        // pairs - k at a time.
        const int perRow = static_cast<int>(plan.bySplits.divisor);
        for (int item = thread; item < plan.rows * perRow; item += threads)
        {
            const int row         = plan.bySplits(item);
            const int k           = item - row * perRow;
            Complex<Real>* line   = shared.field + row * plan.pitch;
            const int* place      = shared.positions + plan.place[2];
            Complex<Real>& low    = line[place[k]];
            Complex<Real>& high   = line[place[plan.pairs - k]];
            const Complex<Real> a = low;
            const Complex<Real> b = conjugate(k == 0 ? low : high);
            const Complex<Real> e = { Real(0.5) * (a.re + b.re), Real(0.5) * (a.im + b.im) };
            const Complex<Real> o = { Real(0.5) * (a.im - b.im), Real(-0.5) * (a.re - b.re) };
            const Complex<Real> t = shared.roots[plan.rootsX + k] * o;
            low                   = e + t;
            if (2 * k != plan.pairs)
            {
                high = conjugate(e - t);
            }
        }
    }
    else
    {
        __syncthreads();
        for (int e = thread; e < plan.rows * plan.half; e += threads)
        {
            const int row     = plan.byHalf(e);
            const int k       = e - row * plan.half;
            Complex<Real> sum = { 0, 0 };
            int turn          = 0;
            for (int x = 0; x < plan.length; x++)
            {
                const Real value         = from[row * plan.length + x];
                const Complex<Real> root = shared.roots[plan.rootsX + turn];
                sum.re += value * root.re;
                sum.im += value * root.im;
                turn += k;
                turn -= (turn >= plan.length) ? plan.length : 0;
            }
            shared.field[row * plan.pitch + k] = sum;
        }
    }
    __syncthreads();
    for (int d = 1; d >= 0; d--)
    {
        for (int k = 0; k < plan.passes[d]; k++)
        {
            transformPass<false>(plan.pass[d][k], shared.roots, shared.field, thread, threads);
            __syncthreads();
        }
    }
    Complex<Real>* to = spectra + static_cast<size_t>(blockIdx.x) * spectrumStride;
    for (int e = thread; e < plan.rows * plan.half; e += threads)
    {
        to[e] = shared.field[shared.position(plan, e)];
    }
}

//! Spectra to real fields, not normalised; a block per field.
template<class Real>
__global__ void __launch_bounds__(c_transformThreads<Real>)
        smallBackwardKernel(SmallPlan plan,
                            const Complex<Real>* __restrict__ roots,
                            const int* __restrict__ positions,
                            const Complex<Real>* __restrict__ spectra,
                            int spectrumStride,
                            Real* __restrict__ fields,
                            int stride)
{
    extern __shared__ __align__(16) unsigned char s_transform[];
    const TransformShared<Real> shared(plan, s_transform);
    const int thread  = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    for (int i = thread; i < plan.tables; i += threads)
    {
        shared.roots[i] = roots[i];
    }
    for (int i = thread; i < plan.positions; i += threads)
    {
        shared.positions[i] = positions[i];
    }
    waitForLaunchBefore();
    __syncthreads();
    const Complex<Real>* from = spectra + static_cast<size_t>(blockIdx.x) * spectrumStride;
#pragma unroll 4
    for (int e = thread; e < plan.rows * plan.half; e += threads)
    {
        shared.field[shared.position(plan, e)] = from[e];
    }
    __syncthreads();
    for (int d = 0; d < 2; d++)
    {
        for (int k = plan.passes[d] - 1; k >= 0; k--)
        {
            transformPass<true>(plan.pass[d][k], shared.roots, shared.field, thread, threads);
            __syncthreads();
        }
    }
    Real* to = fields + static_cast<size_t>(blockIdx.x) * stride;
    if (plan.pairs > 0)
    {
        const int perRow = static_cast<int>(plan.bySplits.divisor);
        for (int item = thread; item < plan.rows * perRow; item += threads)
        {
            const int row       = plan.bySplits(item);
            const int k         = item - row * perRow;
            Complex<Real>* line = shared.field + row * plan.pitch;
            const int* place    = shared.positions + plan.place[2];
            Complex<Real>& low  = line[place[k]];
            Complex<Real>& high = line[place[plan.pairs - k]];
            Complex<Real> a     = low;
            Complex<Real> b     = conjugate(high);
            if (k == 0) // real but for rounding
            {
                a.im = 0;
                b.im = 0;
            }
            const Complex<Real> e = a + b;
            const Complex<Real> o = a - b;
            const Complex<Real> t =
                    conjugate(shared.roots[plan.rootsX + k]) * Complex<Real>{ -o.im, o.re };
            low = e + t;
            if (k != 0 && 2 * k != plan.pairs)
            {
                high = conjugate(e - t);
            }
        }
        __syncthreads();
        for (int k = plan.passes[2] - 1; k >= 0; k--)
        {
            transformPass<true>(plan.pass[2][k], shared.roots, shared.field, thread, threads);
            __syncthreads();
        }
        auto* two = reinterpret_cast<Complex<Real>*>(to);
        for (int e = thread; e < plan.rows * plan.pairs; e += threads)
        {
            const int row = plan.byPairs(e);
            two[e]        = shared.field[row * plan.pitch + (e - row * plan.pairs)];
        }
    }
    else
    {
        for (int e = thread; e < plan.rows * plan.length; e += threads)
        {
            const int row             = plan.byLength(e);
            const int x               = e - row * plan.length;
            const Complex<Real>* line = shared.field + row * plan.pitch;
            Real sum                  = 0;
            int turn                  = x;
            for (int k = 1; k < plan.half; k++)
            {
                const Complex<Real> root = shared.roots[plan.rootsX + turn];
                sum += line[k].re * root.re + line[k].im * root.im;
                turn += x;
                turn -= (turn >= plan.length) ? plan.length : 0;
            }
            to[e] = line[0].re + 2 * sum;
        }
    }
}

//! Factors from 2 to c_maxRadix, as few and as equal as possible; empty for a length of 1.
inline bool findFactors(int length, std::vector<int>* factors)
{
    if (length == 1)
    {
        factors->clear();
        return true;
    }
    bool found = false;
    std::vector<int> rest;
    for (int f = 2; f <= c_maxRadix; f++)
    {
        if (length % f == 0 && findFactors(length / f, &rest))
        {
            rest.push_back(f);
            const auto largest = [](const std::vector<int>& v)
            { return *std::max_element(v.begin(), v.end()); };
            if (!found || rest.size() < factors->size()
                || (rest.size() == factors->size() && largest(rest) < largest(*factors)))
            {
                *factors = rest;
                found    = true;
            }
        }
    }
    return found && factors->size() <= c_maxFactors;
}

/*! \brief A plan with its tables.
 *
 *  \param[in]  lengths    of the dimensions, the last is that of the rows
 *  \param[out] roots      exp(-2 pi i k / length), re and im, of the three dimensions
 *  \param[out] positions  of the wave vectors of the three dimensions
 *  \returns whether there is one: lengths are products of small factors */
inline bool makeSmallPlan(const int lengths[3],
                          SmallPlan* plan,
                          std::vector<double>* roots,
                          std::vector<int>* positions)
{
    SmallPlan s = {};
    s.rows      = lengths[0] * lengths[1];
    s.length    = lengths[2];
    s.half      = s.length / 2 + 1;
    s.pitch     = s.half | 1; // an odd number: rows start in different banks
    s.pairs     = (s.length % 2 == 0) ? s.length / 2 : 0;
    s.byRow1    = fastDivide(lengths[1]);
    s.byHalf    = fastDivide(s.half);
    s.byPairs   = fastDivide(std::max(s.pairs, 1));
    s.bySplits  = fastDivide(s.pairs / 2 + 1);
    s.byLength  = fastDivide(s.length);
    if (s.pairs == 0 && s.length > c_maxOddRow)
    {
        return false;
    }
    const long long size = static_cast<long long>(s.rows) * s.pitch;
    if (size > 32768) // larger than any shared memory; FastDivide
    {
        return false;
    }
    const int total = static_cast<int>(size);
    roots->clear();
    positions->clear();
    for (int d = 0; d < 3; d++)
    {
        const int table = static_cast<int>(roots->size() / 2);
        for (int k = 0; k < lengths[d]; k++)
        {
            roots->push_back(std::cos(2 * M_PI * k / lengths[d]));
            roots->push_back(-std::sin(2 * M_PI * k / lengths[d]));
        }
        s.place[d] = static_cast<int>(positions->size());
        std::vector<int> factors;
        const int length = (d == 2) ? s.pairs : lengths[d];
        if (d == 2)
        {
            s.rootsX = table;
        }
        if (length > 0 && !findFactors(length, &factors))
        {
            return false;
        }
        s.passes[d]    = static_cast<int>(factors.size());
        const int unit = (d == 2) ? 1 : (d == 1) ? s.pitch : lengths[1] * s.pitch;
        int block      = length;
        for (int k = 0; k < s.passes[d]; k++)
        {
            TransformPass& pass = s.pass[d][k];
            pass.radix          = factors[k];
            const int sub       = block / pass.radix;
            // lines of rows have unused ends, those of other dimensions follow each other
            pass.perLine = fastDivide(d == 2 ? length / pass.radix : total / pass.radix);
            pass.items   = (d == 2) ? s.rows * (length / pass.radix) : total / pass.radix;
            pass.pitch   = s.pitch;
            pass.inner   = fastDivide(sub * unit);
            pass.unit    = fastDivide(unit);
            pass.step    = (sub > 1) ? lengths[d] / block : 0;
            pass.table   = table;
            block        = sub;
        }
        const int waves = (d == 2) ? s.half : lengths[d];
        for (int wave = 0; wave < waves; wave++)
        {
            // the first factor is the fastest digit of a wave vector and the slowest of its place
            int rest = wave, place = 0, span = length;
            for (int f : factors)
            {
                span /= f;
                place += rest % f * span;
                rest /= f;
            }
            // the last of an even row has a place of its own behind the others
            const bool plain = d == 2 && (length == 0 || wave == length);
            positions->push_back(plain ? wave : place);
        }
    }
    s.tables    = static_cast<int>(roots->size() / 2);
    s.positions = static_cast<int>(positions->size());
    *plan       = s;
    return true;
}

//! Transforms of the fields of a grid that fits into shared memory.
template<class Real>
class SmallTransform
{
public:
    /*! \brief Makes a plan.
     *  \param[in] shared  shared memory a block may have, bytes
     *  \returns whether there is one for the lengths */
    bool prepare(const int lengths[3], size_t shared, cudaStream_t stream)
    {
        std::vector<double> roots;
        std::vector<int> positions;
        if (!makeSmallPlan(lengths, &plan_, &roots, &positions))
        {
            return false;
        }
        const size_t complex = sizeof(Complex<Real>);
        bytes_ = (static_cast<size_t>(plan_.rows) * plan_.pitch + plan_.tables) * complex
                 + plan_.positions * sizeof(int);
        if (bytes_ > shared)
        {
            return false;
        }
        std::vector<Complex<Real>> rounded(plan_.tables);
        for (int k = 0; k < plan_.tables; k++)
        {
            rounded[k] = { static_cast<Real>(roots[2 * k]), static_cast<Real>(roots[2 * k + 1]) };
        }
        roots_.upload(rounded.data(), rounded.size(), stream);
        positions_.upload(positions.data(), positions.size(), stream);
        // four elements per thread and pass
        const int items = plan_.rows * plan_.pitch / 4;
        threads_        = std::clamp((items + 31) / 32 * 32, 64, c_transformThreads<Real>);
        const int limit = static_cast<int>(shared);
        check(cudaFuncSetAttribute(
                      smallForwardKernel<Real>, cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
              "asking for shared memory");
        check(cudaFuncSetAttribute(smallBackwardKernel<Real>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   limit),
              "asking for shared memory");
        return true;
    }
    void forward(const Real* fields,
                 int stride,
                 int count,
                 Complex<Real>* spectra,
                 int spectrumStride,
                 cudaStream_t stream) const
    {
        smallForwardKernel<Real><<<count, threads_, bytes_, stream>>>(
                plan_, roots_.data(), positions_.data(), fields, stride, spectra, spectrumStride);
        checkLaunch("smallForwardKernel");
    }
    //! \param[in] overlap  may start while the launch before runs
    void backward(const Complex<Real>* spectra,
                  int spectrumStride,
                  int count,
                  Real* fields,
                  int stride,
                  bool overlap,
                  cudaStream_t stream) const
    {
        launchAfter(overlap,
                    smallBackwardKernel<Real>,
                    count,
                    threads_,
                    bytes_,
                    stream,
                    plan_,
                    roots_.data(),
                    positions_.data(),
                    spectra,
                    spectrumStride,
                    fields,
                    stride);
    }

private:
    SmallPlan plan_ = {};
    size_t bytes_   = 0;
    int threads_    = 0;
    DeviceBuffer<Complex<Real>> roots_;
    DeviceBuffer<int> positions_;
};

} // namespace farfield

#endif
