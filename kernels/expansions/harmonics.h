/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The arithmetic of P2M and L2P for one particle; for host and device.
 *
 *  Orders are compile-time constants, so that whole expansions stay in registers.
 */
#ifndef FARFIELD_KERNELS_EXPANSIONS_HARMONICS_H
#define FARFIELD_KERNELS_EXPANSIONS_HARMONICS_H

#include <cmath>

#include "operators/monic_recurrence.h"
#include "runtime/layout.h"

#if defined(__CUDA_ARCH__)
#define FARFIELD_UNROLL _Pragma("unroll")
#else
#define FARFIELD_UNROLL
#endif

namespace farfield
{

//! Sums over particles that addMultipoles() keeps for one m.
template<int P>
FARFIELD_HD constexpr int multipolesOf(int m)
{
    return (m > 0 ? 2 : 1) * (P - m + 1);
}

//! The same for all smaller m.
template<int P>
FARFIELD_HD constexpr int multipolesBelow(int m)
{
    return (m > 0) ? P + 1 + 2 * (m - 1) * (P + 1) - m * (m - 1) : 0;
}

/*! \brief Adds q A_lm of a particle for m = First .. End - 1 and l = m .. P.
 *
 *  A_lm = (x + iy)^m Q_lm(z, r^2) are the monic functions of MonicRecurrence; the recurrence is
 *  that of the real Q_lm. Positions in units of the cell.
 *  \tparam First  power is q (x + iy)^First
 *  \param[in,out] sums  for each m: real parts by l, then for m > 0 imaginary parts by l */
template<int P, int First, int End, class Real>
FARFIELD_HD void addMultipoles(Real x, Real y, Real z, Real r2, Real re, Real im, Real* sums)
{
    constexpr int c_terms = P - First + 1;
    Real previous = 0, current = 1;
    FARFIELD_UNROLL
    for (int j = 0; j < c_terms; j++)
    {
        sums[j] += current * re;
        if (First > 0)
        {
            sums[c_terms + j] += current * im;
        }
        // a constant once the loop is unrolled
        const int l     = First + j;
        const Real beta = static_cast<Real>(monicBeta(l, First));
        const Real next = (j > 0) ? z * current - (beta * r2) * previous : z;
        previous        = current;
        current         = next;
    }
    if constexpr (First + 1 < End)
    {
        addMultipoles<P, First + 1, End>(
                x, y, z, r2, x * re - y * im, x * im + y * re, sums + multipolesOf<P>(First));
    }
}

//! The same, from the charge.
template<int P, int First, int End, class Real>
FARFIELD_HD void addMultipoles(Real x, Real y, Real z, Real q, Real* sums)
{
    Real re = q;
    Real im = 0;
    FARFIELD_UNROLL
    for (int k = 0; k < First; k++)
    {
        const Real turned = x * re - y * im;
        im                = x * im + y * re;
        re                = turned;
    }
    addMultipoles<P, First, End>(x, y, z, x * x + y * y + z * z, re, im, sums);
}

//! Weights of the coefficients of a local expansion in localGradient().
template<class Real, int P>
struct GradientWeights
{
    static constexpr int c_count = (P + 1) * (P + 1);
    Real w[c_count]; //!< sqrt((l+m)! (l-m)!) / (l-1)!, times sqrt(2) for m != 0
};

//! The weights, host only.
template<class Real, int P>
GradientWeights<Real, P> gradientWeights()
{
    GradientWeights<Real, P> weights = {};
    for (int l = 1; l <= P; l++)
    {
        double factorials = l; // sqrt(l! l!) / (l-1)!
        for (int m = 0; m <= l; m++)
        {
            if (m > 0)
            {
                factorials *= std::sqrt((l + m) / (l - m + 1.0));
            }
            const Real weight = static_cast<Real>(factorials * (m > 0 ? std::sqrt(2.0) : 1.0));
            weights.w[l * l + l + m] = weight;
            weights.w[l * l + l - m] = weight;
        }
    }
    return weights;
}

/*! \brief Gradient of sum_i L_i u_i(r), r in units of the cell.
 *
 *  In terms of R_lm = r^l P_lm e^(im phi) / (l+m)!, whose derivatives are those of
 *  derivativeTerms(), the derivative of the term (l, m) is a combination of the functions (l-1, m)
 *  and (l-1, m+-1). These are a power of -(x + iy) / 2 times a real function, which is evaluated
 *  times l!, so that it is 1 for m = l: numbers of any order stay in the range of float.
 *  \param[in]  L   L(i) is coefficient i times its weight, see gradientWeights()
 *  \param[out] g   [3] */
template<int P, class Real, class Coefficients>
FARFIELD_HD void localGradient(const Coefficients& L, Real x, Real y, Real z, Real* g)
{
    constexpr int c_rows = (P > 0) ? P : 1;
    const Real r2        = x * x + y * y + z * z;
    const Real xHalf     = Real(-0.5) * x;
    const Real yHalf     = Real(-0.5) * y;
    Real q[c_rows] = {}, previous[c_rows] = {};
    // sums over the degrees with the coefficients of m - 1, of m + 1, and of m
    Real aLower[c_rows] = {}, bLower[c_rows] = {};
    Real aUpper[c_rows] = {}, bUpper[c_rows] = {};
    Real aSame[c_rows] = {}, bSame[c_rows] = {};
    FARFIELD_UNROLL
    for (int degree = 0; degree < P; degree++)
    {
        const int l  = degree + 1;
        const int at = l * l + l;
        // R_d+1,m = ((2d+1) z R_dm - r^2 R_d-1,m) / ((d+1)^2 - m^2), here times (d+1)!
        const int last    = degree - 1;
        const Real shared = static_cast<Real>(last / (2 * last + 1.0)) * r2;
        FARFIELD_UNROLL
        for (int m = 0; m < c_rows; m++)
        {
            if (m > degree)
            {
                continue;
            }
            if (m == degree)
            {
                q[m] = 1;
            }
            else if (m + 1 == degree)
            {
                previous[m] = 1;
                q[m]        = static_cast<Real>(degree) * z;
            }
            else
            {
                const Real factor =
                        static_cast<Real>((2.0 * last + 1) * degree / (degree * degree - m * m));
                const Real next = factor * (z * q[m] - shared * previous[m]);
                previous[m]     = q[m];
                q[m]            = next;
            }
            if (m > 0)
            {
                aLower[m] += q[m] * L(at + m - 1);
                bSame[m] += q[m] * L(at - m);
            }
            if (m > 1)
            {
                bLower[m] += q[m] * L(at - m + 1);
            }
            aSame[m] += q[m] * L(at + m);
            aUpper[m] += q[m] * L(at + m + 1);
            bUpper[m] += q[m] * L(at - m - 1);
        }
    }
    g[0] = g[1] = g[2] = 0;
    Real re            = 1;
    Real im            = 0;
    FARFIELD_UNROLL
    for (int m = 0; m < c_rows; m++)
    {
        // R_l,-1 is minus the conjugate of R_l1: that of m = 0 counts twice
        const Real lower = (m == 1) ? aLower[m] + aLower[m] : aLower[m];
        g[0] += re * (lower - aUpper[m]) + im * (bLower[m] - bUpper[m]);
        g[1] += im * (lower + aUpper[m]) - re * (bLower[m] + bUpper[m]);
        g[2] += re * aSame[m] + im * bSame[m];
        const Real turned = xHalf * re - yHalf * im;
        im                = xHalf * im + yHalf * re;
        re                = turned;
    }
    g[0] *= Real(0.5);
    g[1] *= Real(0.5);
}

} // namespace farfield

#endif
