/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What farfield_cuda.h has of a KernelSum. Streams are cudaStream_t.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_SUM_ACCESS_H
#define FARFIELD_PAIR_KERNELS_KERNEL_SUM_ACCESS_H

#include "farfield/farfield_kernels.h"

namespace farfield
{

template<class Real>
struct KernelSumAccess
{
    static void setSites(KernelSum<Real>& sum, const KernelSites<Real>& sites);
    static Totals enqueue(KernelSum<Real>& sum,
                          const Real* x,
                          const double (*box)[3],
                          const KernelRequest& request,
                          void* stream);
    static void addForces(KernelSum<Real>& sum, Real* forces, void* stream);
    static bool mustRecordAgain(const KernelSum<Real>& sum);
};

} // namespace farfield

#endif
