/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/site_forces.h"

#include <limits>

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

template<class Real>
__global__ void __launch_bounds__(c_threads) gatherKernel(const Real* __restrict__ x,
                                                          const int* __restrict__ atoms,
                                                          int n,
                                                          double* __restrict__ to)
{
    const int k = blockIdx.x * c_threads + threadIdx.x;
    if (k < 3 * n)
    {
        to[k] = static_cast<double>(x[3 * static_cast<size_t>(atoms[k / 3]) + k % 3]);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        forceKernel(const __grid_constant__ SiteForces<Real> of)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= of.n)
    {
        return;
    }
    const int site  = of.order[i];
    double force[3] = { 0, 0, 0 };
    for (int s = 0; s < of.sets; s++)
    {
        const double weight =
                of.factors[s] * static_cast<double>(of.q[static_cast<size_t>(site) * of.sets + s]);
        for (int k = 0; k < 3; k++)
        {
            force[k] += weight * of.sums[(static_cast<size_t>(s) * 4 + 1 + k) * of.n + i];
        }
    }
    const bool isValid = *of.invalid == 0;
    for (int k = 0; k < 3; k++)
    {
        of.forces[3 * static_cast<size_t>(of.atoms[site]) + k] +=
                isValid ? static_cast<Real>(force[k]) : std::numeric_limits<Real>::quiet_NaN();
    }
}

} // namespace

template<class Real>
void gatherPositions(const Real* x, const int* atoms, int n, double* to, cudaStream_t stream)
{
    if (n > 0)
    {
        gatherKernel<<<blocksFor(3LL * n, c_threads), c_threads, 0, stream>>>(x, atoms, n, to);
        checkLaunch("gathering positions");
    }
}

template<class Real>
void addSiteForces(const SiteForces<Real>& of, cudaStream_t stream)
{
    if (of.n > 0)
    {
        forceKernel<<<blocksFor(of.n, c_threads), c_threads, 0, stream>>>(of);
        checkLaunch("adding forces");
    }
}

template void gatherPositions(const float*, const int*, int, double*, cudaStream_t);
template void gatherPositions(const double*, const int*, int, double*, cudaStream_t);
template void addSiteForces(const SiteForces<float>&, cudaStream_t);
template void addSiteForces(const SiteForces<double>&, cudaStream_t);

} // namespace farfield
