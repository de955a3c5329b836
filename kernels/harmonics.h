/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The arithmetic of P2M and L2P for one particle; for host and device.
 *
 *  Orders are compile-time constants, so that whole expansions stay in registers.
 */
#ifndef FARFIELD_KERNELS_HARMONICS_H
#define FARFIELD_KERNELS_HARMONICS_H

#include <cmath>

#include "layout.h"

#if defined(__CUDA_ARCH__)
#define FARFIELD_UNROLL _Pragma("unroll")
#else
#define FARFIELD_UNROLL
#endif

namespace farfield
{

/*! \brief Adds q A_lm of two particles for one m and l = m .. P.
 *
 *  A_lm are the monic functions of MonicRecurrence; the two are advanced in step, which hides the
 *  latency of the recurrences. Positions in units of the cell, as x[2] and so on.
 *  \param[in]     beta  of the recurrence, for l = m + j at position j
 *  \param[in,out] c, s  real and imaginary parts, l = m + j at position j */
template<int P, class Real>
FARFIELD_HD void addMultipoles(int m,
                               const Real* x,
                               const Real* y,
                               const Real* z,
                               const Real* q,
                               const Real* beta,
                               Real* c,
                               Real* s)
{
    Real re[2] = { q[0], q[1] };
    Real im[2] = { 0, 0 };
    for (int k = 0; k < m; k++)
    {
        FARFIELD_UNROLL
        for (int a = 0; a < 2; a++)
        {
            const Real turned = x[a] * re[a] - y[a] * im[a];
            im[a]             = x[a] * im[a] + y[a] * re[a];
            re[a]             = turned;
        }
    }
    const Real r2[2]   = { x[0] * x[0] + y[0] * y[0] + z[0] * z[0],
                           x[1] * x[1] + y[1] * y[1] + z[1] * z[1] };
    Real rePrevious[2] = { 0, 0 };
    Real imPrevious[2] = { 0, 0 };
    FARFIELD_UNROLL
    for (int j = 0; j <= P; j++)
    {
        if (j > P - m)
        {
            break;
        }
        FARFIELD_UNROLL
        for (int a = 0; a < 2; a++)
        {
            c[j] += re[a];
            s[j] += im[a];
            if (j < P)
            {
                const Real f      = beta[j] * r2[a];
                const Real reNext = z[a] * re[a] - f * rePrevious[a];
                const Real imNext = z[a] * im[a] - f * imPrevious[a];
                rePrevious[a]     = re[a];
                imPrevious[a]     = im[a];
                re[a]             = reNext;
                im[a]             = imNext;
            }
        }
    }
}

//! Weights of the coefficients of a local expansion in localGradient().
template<class Real, int P>
struct GradientWeights
{
    static constexpr int c_count = (P + 1) * (P + 2) / 2;
    Real w[c_count]; //!< sqrt((l+m)! (l-m)!) / (l-1)!, times sqrt(2) for m > 0, at l (l + 1) / 2 +
                     //!< m
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
            weights.w[l * (l + 1) / 2 + m] =
                    static_cast<Real>(factorials * (m > 0 ? std::sqrt(2.0) : 1.0));
        }
    }
    return weights;
}

/*! \brief Gradient of sum_i L_i u_i(r), r in units of the cell.
 *
 *  In terms of R_lm = r^l P_lm e^(im phi) / (l+m)!, whose derivatives are those of
 * derivativeTerms(), the derivative of the term (l, m) is a combination of the functions (l-1, m)
 * and (l-1, m+-1). The functions are evaluated as l! R_lm, which for m = l still are as large as (r
 * / 2)^l, degree after degree: two rows of them and a window over the expansion are all that has to
 * be kept. \param[in]  L   L(i) is coefficient i \param[out] g   [3] */
template<int P, class Real, class Coefficients>
FARFIELD_HD void localGradient(const Coefficients& L,
                               const GradientWeights<Real, P>& weights,
                               Real x,
                               Real y,
                               Real z,
                               Real* g)
{
    constexpr int c_rows = (P > 0) ? P : 1;
    Real c[c_rows], s[c_rows], cPrevious[c_rows] = {}, sPrevious[c_rows] = {};
    const Real r2    = x * x + y * y + z * z;
    const Real xHalf = Real(-0.5) * x;
    const Real yHalf = Real(-0.5) * y;
    // shares of the real and of the imaginary parts; twice the derivatives by x and y
    Real gx[2] = { 0, 0 }, gy[2] = { 0, 0 }, gz[2] = { 0, 0 };
    c[0] = 1;
    s[0] = 0;
    FARFIELD_UNROLL
    for (int k = 0; k < P; k++)
    {
        const int l = k + 1;
        FARFIELD_UNROLL
        for (int m = 0; m <= P; m++)
        {
            if (m > l)
            {
                continue;
            }
            const Real w = weights.w[l * (l + 1) / 2 + m];
            const Real a = w * L(l * l + l + m);
            if (m == 0)
            {
                gz[0] += a * c[0];
                if (k > 0)
                {
                    gx[0] += (a + a) * c[1];
                    gy[0] += (a + a) * s[1];
                }
                continue;
            }
            const Real b = w * L(l * l + l - m);
            if (m <= k)
            {
                gz[0] += a * c[m];
                gz[1] += b * s[m];
            }
            // functions beyond the degree and the imaginary part for m = 0 vanish
            if (m + 1 <= k && m > 1)
            {
                gx[0] += a * (c[m + 1] - c[m - 1]);
                gx[1] += b * (s[m + 1] - s[m - 1]);
                gy[0] += a * (s[m + 1] + s[m - 1]);
                gy[1] -= b * (c[m + 1] + c[m - 1]);
            }
            else if (m + 1 <= k)
            {
                gx[0] += a * (c[m + 1] - c[m - 1]);
                gx[1] += b * s[m + 1];
                gy[0] += a * s[m + 1];
                gy[1] -= b * (c[m + 1] + c[m - 1]);
            }
            else
            {
                gx[0] -= a * c[m - 1];
                gy[1] -= b * c[m - 1];
                if (m > 1)
                {
                    gx[1] -= b * s[m - 1];
                    gy[0] += a * s[m - 1];
                }
            }
        }
        if (k + 1 < P)
        {
            // R_k+1,m = ((2k+1) z R_km - r^2 R_k-1,m) / ((k+1)^2 - m^2), here times (k+1)!
            const Real cDiagonal = xHalf * c[k] - yHalf * s[k];
            const Real sDiagonal = xHalf * s[k] + yHalf * c[k];
            FARFIELD_UNROLL
            for (int m = 0; m < P; m++)
            {
                if (m > k)
                {
                    continue;
                }
                const Real inverse = Real(1) / static_cast<Real>(l * l - m * m);
                const Real f       = (static_cast<Real>((2 * k + 1) * l) * inverse) * z;
                Real cNext         = f * c[m];
                Real sNext         = f * s[m];
                if (m < k)
                {
                    const Real h = (static_cast<Real>(l * k) * inverse) * r2;
                    cNext -= h * cPrevious[m];
                    sNext -= h * sPrevious[m];
                }
                cPrevious[m] = c[m];
                sPrevious[m] = s[m];
                c[m]         = cNext;
                s[m]         = (m > 0) ? sNext : Real(0);
            }
            c[k + 1] = cDiagonal;
            s[k + 1] = sDiagonal;
        }
    }
    g[0] = Real(0.5) * (gx[0] + gx[1]);
    g[1] = Real(0.5) * (gy[0] + gy[1]);
    g[2] = gz[0] + gz[1];
}

} // namespace farfield

#endif
