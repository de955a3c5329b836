/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sites and pairs of them in kernels.
 */
#ifndef FARFIELD_KERNELS_SITES_SITE_PAIRS_CUH
#define FARFIELD_KERNELS_SITES_SITE_PAIRS_CUH

#include "near/near_functions.cuh"
#include "runtime/load.cuh"
#include "sites/sites.h"

namespace farfield
{
namespace siteDetail
{

//! A charge with moments up to a degree, in the frame of the cells. Those above are not read.
template<int Degree, class Real>
struct Site
{
    Real q;
    Real mu[3];
    Real theta[6];
};

template<int Degree, class Real>
__device__ __forceinline__ Site<Degree, Real> siteOf(const SortedMoments<Real>& moments,
                                                     int i,
                                                     Real q)
{
    Site<Degree, Real> site = {};
    site.q                  = q;
    if constexpr (Degree > 0)
    {
        const Real4<Real> d = load(moments.dipoles + i);
        site.mu[0]          = d.x;
        site.mu[1]          = d.y;
        site.mu[2]          = d.z;
        if constexpr (Degree > 1)
        {
            const Real4<Real> t = load(moments.quadrupoles + i);
            site.theta[0]       = d.w;
            site.theta[1]       = t.x;
            site.theta[2]       = -d.w - t.x;
            site.theta[3]       = t.y;
            site.theta[4]       = t.z;
            site.theta[5]       = t.w;
        }
    }
    return site;
}

template<class Real>
__device__ __forceinline__ Real dotProduct(const Real (&a)[3], const Real (&b)[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

//! A symmetric matrix times a vector. \param[in] m  xx yy zz xy xz yz
template<class Real>
__device__ __forceinline__ void timesVector(const Real* m, const Real (&v)[3], Real (&product)[3])
{
    product[0] = m[0] * v[0] + m[3] * v[1] + m[4] * v[2];
    product[1] = m[3] * v[0] + m[1] * v[1] + m[5] * v[2];
    product[2] = m[4] * v[0] + m[5] * v[1] + m[2] * v[2];
}

//! The sum of the products of all elements of two symmetric matrices.
template<class Real>
__device__ __forceinline__ Real doubleDot(const Real* a, const Real* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + 2 * (a[3] * b[3] + a[4] * b[4] + a[5] * b[5]);
}

//! What a lane has found of a site.
template<class Real>
struct LaneSums
{
    Real v[c_siteValues] = {};
    Real virial[6]       = {}; //!< sum of R (x) F over its pairs, symmetric
};

//! What a source has along R and besides: s_k and w_k of SourceMoments of the CPU, which has the formulas.
template<int Degree, class Real>
struct SourceAlong
{
    const Site<Degree, Real>& source;
    const Real (&R)[3];
    const Real (&B)[6];
    Real b = 0, c = 0, thetaR[3] = {};

    __device__ __forceinline__ SourceAlong(const Site<Degree, Real>& site,
                                           const Real (&vector)[3],
                                           const Real (&powers)[6]) :
        source(site),
        R(vector), B(powers)
    {
        if constexpr (Degree > 0)
        {
            b = dotProduct(source.mu, R);
        }
        if constexpr (Degree > 1)
        {
            timesVector(source.theta, R, thetaR);
            c = dotProduct(thetaR, R);
        }
    }
    __device__ __forceinline__ Real along(int k) const
    {
        Real sum = source.q * B[k];
        if constexpr (Degree > 0)
        {
            sum += b * B[k + 1];
        }
        if constexpr (Degree > 1)
        {
            sum += c * B[k + 2];
        }
        return sum;
    }
    __device__ __forceinline__ void besides(int k, Real (&w)[3]) const
    {
        for (int a = 0; a < 3; a++)
        {
            w[a] = Degree > 0 ? B[k] * source.mu[a] : Real(0);
            if constexpr (Degree > 1)
            {
                w[a] += 2 * B[k + 1] * thetaR[a];
            }
        }
    }
};

//! Third derivatives times the theta of the target: pullOfSource() of the CPU.
template<class Real>
__device__ __forceinline__ void pullOf(const SourceAlong<2, Real>& s,
                                       const Site<2, Real>& target,
                                       Real (&pull)[3])
{
    Real w2[3], w3[3], u[3], turned[3], pulled[3];
    s.besides(2, w2);
    s.besides(3, w3);
    timesVector(target.theta, s.R, u);
    timesVector(target.theta, w2, turned);
    timesVector(s.source.theta, u, pulled);
    const Real c    = dotProduct(u, s.R);
    const Real both = doubleDot(target.theta, s.source.theta);
    const Real ofR  = 2 * (dotProduct(u, w3) - s.B[3] * both) - s.along(3) * c;
    const Real ofU  = 2 * s.along(2);
    for (int a = 0; a < 3; a++)
    {
        pull[a] = ofR * s.R[a] + c * w3[a] + ofU * u[a] - 2 * turned[a] - 4 * s.B[3] * pulled[a];
    }
}

/*! \brief Adds a source, or takes it away: see siteRow() of the CPU.
 *  \param[in] R     from the source to the target, nm
 *  \param[in] sign  1 or -1
 *  \param[in] factors  of 1/r and its derivatives, where Functions
 *  \param[in] target  for the virial, and for what its quadrupole takes */
template<int Degree, bool Curved, bool Virial, bool Functions, class Real>
__device__ __forceinline__ void addSource(const Real (&R)[3],
                                          Real r2,
                                          Real sign,
                                          const DerivativeFactors<Real>& factors,
                                          const Site<Degree, Real>& source,
                                          const Site<Degree, Real>& target,
                                          LaneSums<Real>* sums)
{
    const Real w = 1 / r2;
    Real B[6];
    B[0] = sign / sqrt(r2);
    for (int k = 1; k < 6; k++)
    {
        B[k] = Real(2 * k - 1) * B[k - 1] * w;
    }
    if constexpr (Functions)
    {
        for (int k = 0; k < 4; k++)
        {
            B[k] *= factors.of[k];
        }
    }
    const SourceAlong<Degree, Real> s(source, R, B);
    const Real slope = s.along(1), along = s.along(2);
    Real w1[3], w2[3], g[3],
            t[3]; // the latter along R, less w2, which second derivatives have twice
    s.besides(1, w1);
    s.besides(2, w2);
    for (int k = 0; k < 3; k++)
    {
        g[k] = w1[k] - slope * R[k];
        t[k] = along * R[k] - w2[k];
    }
    sums->v[0] += s.along(0);
    sums->v[1] += g[0];
    sums->v[2] += g[1];
    sums->v[3] += g[2];
    Real pull[3] = { 0, 0, 0 };
    if constexpr (Curved)
    {
        for (int c = 0; c < 6; c++)
        {
            const int a = firstAxis(c), b = secondAxis(c);
            Real second = t[a] * R[b] - (Degree > 0 ? R[a] * w2[b] : Real(0));
            second -= a == b ? slope : Real(0);
            if constexpr (Degree > 1)
            {
                second += 2 * B[2] * source.theta[c];
            }
            sums->v[c_flatValues + c] += second;
        }
        if constexpr (Degree > 1)
        {
            pullOf(s, target, pull);
            for (int k = 0; k < 3; k++)
            {
                sums->v[c_curvedValues + k] += pull[k];
            }
        }
    }
    if constexpr (Virial)
    {
        Real alongR = 0, ofDipoles = 0, turned[3] = { 0, 0, 0 };
        if constexpr (Degree > 0)
        {
            alongR    = dotProduct(target.mu, R);
            ofDipoles = dotProduct(target.mu, w2);
        }
        if constexpr (Degree > 1)
        {
            timesVector(source.theta, target.mu, turned);
        }
        Real F[3];
        for (int k = 0; k < 3; k++)
        {
            F[k] = -target.q * g[k] - t[k] * alongR + R[k] * ofDipoles
                   + (Degree > 0 ? slope * target.mu[k] : Real(0));
            if constexpr (Degree > 1)
            {
                F[k] -= 2 * B[2] * turned[k] + pull[k];
            }
        }
        sums->virial[0] += R[0] * F[0];
        sums->virial[1] += R[1] * F[1];
        sums->virial[2] += R[2] * F[2];
        sums->virial[3] += Real(0.5) * (R[0] * F[1] + R[1] * F[0]);
        sums->virial[4] += Real(0.5) * (R[0] * F[2] + R[2] * F[0]);
        sums->virial[5] += Real(0.5) * (R[1] * F[2] + R[2] * F[1]);
    }
}

/*! \brief The factors of a pair.
 *  \param[in] a, b     see NearFunctionView::terms
 *  \param[in] others   of pairs with 1/r: 1, or 0 where only what is beyond 1/r is wanted */
template<class Real>
__device__ __forceinline__ DerivativeFactors<Real>
factorsOf(const NearFunctionView<Real>& functions, Real r2, Real a, Real b, Real others)
{
    if (r2 < functions.range2 && functions.isOfPair(functions.isWide(a), functions.isWide(b)))
    {
        DerivativeFactors<Real> factors = derivativeFactors(
                functions.function, sqrt(r2) * inverseWidth(functions.rule, a, b));
        for (Real& factor : factors.of)
        {
            factor -= 1 - others;
        }
        return factors;
    }
    return { { others, others, others, others } };
}

} // namespace siteDetail
} // namespace farfield

#endif
