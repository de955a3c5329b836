/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"

#include "pair_kernels/kernel_sum_access.h"

namespace farfield
{

template<class Real>
void setSites(KernelSum<Real>& sum, const KernelSites<Real>& sites)
{
    KernelSumAccess<Real>::setSites(sum, sites);
}

template<class Real>
Totals enqueue(KernelSum<Real>& sum,
               const Real* x,
               const double (*box)[3],
               const KernelRequest& request,
               cudaStream_t stream)
{
    return KernelSumAccess<Real>::enqueue(sum, x, box, request, stream);
}

template<class Real>
void addForces(KernelSum<Real>& sum, Real* forces, cudaStream_t stream)
{
    KernelSumAccess<Real>::addForces(sum, forces, stream);
}

template<class Real>
bool mustRecordAgain(const KernelSum<Real>& sum)
{
    return KernelSumAccess<Real>::mustRecordAgain(sum);
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template FARFIELD_EXPORT decltype(setSites<Real>) setSites<Real>;                              \
    template FARFIELD_EXPORT Totals enqueue(KernelSum<Real>&,                                      \
                                            const Real*,                                           \
                                            const double(*)[3],                                    \
                                            const KernelRequest&,                                  \
                                            cudaStream_t);                                         \
    template FARFIELD_EXPORT decltype(addForces<Real>) addForces<Real>;                            \
    template FARFIELD_EXPORT bool mustRecordAgain(const KernelSum<Real>&);
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
