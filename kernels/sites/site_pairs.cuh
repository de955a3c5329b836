/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Pairs of sites in kernels.
 */
#ifndef FARFIELD_KERNELS_SITES_SITE_PAIRS_CUH
#define FARFIELD_KERNELS_SITES_SITE_PAIRS_CUH

#include "near/near_functions.cuh"
#include "sites/sites.h"

namespace farfield
{
namespace siteDetail
{

//! What a lane has found of a site.
template<class Real>
struct LaneSums
{
    Real v[c_values] = {};
    Real virial[6]   = {}; //!< sum of R (x) F over its pairs, symmetric
};

/*! \brief Adds a source, or takes it away: see siteRow() of the CPU.
 *  \param[in] R     from the source to the target, nm
 *  \param[in] sign  1 or -1
 *  \param[in] factors  of 1/r and its derivatives, where Functions
 *  \param[in] own   charge and dipole of the target, for the virial */
template<bool Dipoles, bool Curved, bool Virial, bool Functions, class Real>
__device__ __forceinline__ void addSource(const Real (&R)[3],
                                          Real r2,
                                          Real sign,
                                          const DerivativeFactors<Real>& factors,
                                          Real q,
                                          const Real (&mu)[3],
                                          Real ownCharge,
                                          const Real (&own)[3],
                                          LaneSums<Real>* sums)
{
    const Real w = 1 / r2;
    Real B0      = sign / sqrt(r2);
    Real B1      = B0 * w;
    Real B2      = 3 * B1 * w;
    Real B3      = 5 * B2 * w;
    if constexpr (Functions)
    {
        B0 *= factors.of[0];
        B1 *= factors.of[1];
        B2 *= factors.of[2];
        B3 *= factors.of[3];
    }
    Real value = q * B0, slope = q * B1, along = q * B2;
    if constexpr (Dipoles)
    {
        const Real b = mu[0] * R[0] + mu[1] * R[1] + mu[2] * R[2];
        value += b * B1;
        slope += b * B2;
        along += b * B3;
    }
    Real g[3], t[3]; // the latter along R, less B2 mu, which second derivatives have twice
    for (int k = 0; k < 3; k++)
    {
        g[k] = (Dipoles ? B1 * mu[k] : Real(0)) - slope * R[k];
        t[k] = along * R[k] - (Dipoles ? B2 * mu[k] : Real(0));
    }
    sums->v[0] += value;
    sums->v[1] += g[0];
    sums->v[2] += g[1];
    sums->v[3] += g[2];
    if constexpr (Curved)
    {
        const auto second = [&](int a, int b)
        { return t[a] * R[b] - (Dipoles ? R[a] * (B2 * mu[b]) : Real(0)); };
        sums->v[4] += second(0, 0) - slope;
        sums->v[5] += second(1, 1) - slope;
        sums->v[6] += second(2, 2) - slope;
        sums->v[7] += second(0, 1);
        sums->v[8] += second(0, 2);
        sums->v[9] += second(1, 2);
    }
    if constexpr (Virial)
    {
        Real alongR = 0, ofDipoles = 0;
        if constexpr (Dipoles)
        {
            alongR    = own[0] * R[0] + own[1] * R[1] + own[2] * R[2];
            ofDipoles = B2 * (own[0] * mu[0] + own[1] * mu[1] + own[2] * mu[2]);
        }
        Real F[3];
        for (int k = 0; k < 3; k++)
        {
            F[k] = -ownCharge * g[k] - t[k] * alongR + R[k] * ofDipoles
                   + (Dipoles ? slope * own[k] : Real(0));
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
