/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Monic solid harmonics at sites, in kernels.
 */
#ifndef FARFIELD_KERNELS_SITES_MONIC_CUH
#define FARFIELD_KERNELS_SITES_MONIC_CUH

#include "operators/solid_harmonics.h"
#include "sites/sites.h"

namespace farfield
{
namespace siteDetail
{

//! Calls visit(i, A_i) for the monic functions of one m. \param[in] re, im  of (x + iy)^m
template<class Real, class Visit>
__device__ __forceinline__ void forMonicOf(const SiteTables<Real>& tables,
                                           int m,
                                           Real re,
                                           Real im,
                                           Real z,
                                           Real r2,
                                           const Visit& visit)
{
    Real previous = 0, current = 1;
    for (int l = m; l <= tables.order; l++)
    {
        visit(coefficientIndex(l, m), current * re);
        if (m > 0)
        {
            visit(coefficientIndex(l, -m), current * im);
        }
        const Real next = z * current - tables.beta[l * (tables.order + 1) + m] * r2 * previous;
        previous        = current;
        current         = next;
    }
}

//! Sets a complex number to itself times x + iy.
template<class Real>
__device__ __forceinline__ void turn(Real x, Real y, Real* re, Real* im)
{
    const Real turned = x * *re - y * *im;
    *im               = x * *im + y * *re;
    *re               = turned;
}

} // namespace siteDetail
} // namespace farfield

#endif
