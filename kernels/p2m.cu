/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A block serves 32 neighbouring slots: a lane per slot, a warp per m, or per two m one after the
// other for high orders. All warps together stage the particles, so that memory is read in runs;
// coefficients stay in registers until the end.
#include "expansions.h"
#include "harmonics.h"
#include "order_dispatch.h"

namespace farfield
{
namespace
{

constexpr unsigned c_allLanes = 0xffffffffu;
//! Staged particles of a slot are this far apart: odd, so that lanes do not share banks.
constexpr int c_pitch = c_warp + 1;

__device__ int warpMax(int value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(c_allLanes, value);
#else
    for (int distance = c_warp / 2; distance > 0; distance /= 2)
    {
        value = max(value, __shfl_xor_sync(c_allLanes, value, distance));
    }
    return value;
#endif
}

//! Warps of a block: with more of them there would be too few registers for each.
template<int P>
constexpr int c_warps = (P < 12) ? P + 1 : P / 2 + 1;

template<int P, class Real>
__global__ void __launch_bounds__(c_warp* c_warps<P>)
        sumMultipoles(const Real4<Real>* __restrict__ xq,
                      const int* __restrict__ start,
                      const int* __restrict__ cellOf,
                      int stride,
                      Real inverseUnit,
                      const Real* __restrict__ beta,
                      const Real* __restrict__ scale,
                      Real* __restrict__ M)
{
    __shared__ Real4<Real> staged[c_warp * c_pitch];
    const int lane = threadIdx.x % c_warp;
    const int warp = threadIdx.x / c_warp;
    const int slot = blockIdx.x * c_warp + lane;
    const int cell = cellOf[slot];
    int first      = 0;
    int count      = 0;
    if (cell >= 0)
    {
        first = start[cell];
        count = start[cell + 1] - first;
    }
    const int longest = warpMax(count);
    for (int m0 = 0; m0 <= P; m0 += c_warps<P>)
    {
        const int m = m0 + warp; // beyond P in the last round of some warps: they only stage
        Real ownBeta[P + 1], c[P + 1], s[P + 1];
#pragma unroll
        for (int j = 0; j <= P; j++)
        {
            ownBeta[j] = (m <= P) ? beta[m * (P + 1) + j] : Real(0);
            c[j]       = 0;
            s[j]       = 0;
        }
        for (int base = 0; base < longest; base += c_warp)
        {
            if (m0 + base > 0)
            {
                __syncthreads(); // before what is staged is overwritten
            }
#pragma unroll 4
            for (int other = warp; other < c_warp; other += c_warps<P>)
            {
                const int k     = base + lane;
                const int from  = __shfl_sync(c_allLanes, first, other);
                const int there = __shfl_sync(c_allLanes, count, other);
                Real4<Real> a   = { 0, 0, 0, 0 };
                if (k < there)
                {
                    a = xq[from + k];
                }
                staged[lane * c_pitch + other] = {
                    a.x * inverseUnit, a.y * inverseUnit, a.z * inverseUnit, a.w
                };
            }
            __syncthreads();
            const int steps = (m <= P) ? min(longest - base, c_warp) : 0;
            // charges behind the last particle of a slot are zero
            for (int k = 0; k < steps; k += 2)
            {
                const Real4<Real> a = staged[k * c_pitch + lane];
                const Real4<Real> b = staged[(k + 1) * c_pitch + lane];
                const Real x[2]     = { a.x, b.x };
                const Real y[2]     = { a.y, b.y };
                const Real z[2]     = { a.z, b.z };
                const Real q[2]     = { a.w, b.w };
                addMultipoles<P>(m, x, y, z, q, ownBeta, c, s);
            }
        }
#pragma unroll
        for (int j = 0; j <= P; j++)
        {
            if (j > P - m)
            {
                break;
            }
            const int l                                           = m + j;
            const Real value                                      = scale[m * (P + 1) + j];
            M[static_cast<size_t>(l * l + l + m) * stride + slot] = value * c[j];
            if (m > 0)
            {
                M[static_cast<size_t>(l * l + l - m) * stride + slot] = value * s[j];
            }
        }
    }
}

} // namespace

template<class Real>
void p2m(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         cudaStream_t stream)
{
    const int blocks = leaves.stride / c_warp;
    if (blocks == 0)
    {
        return;
    }
    dispatchOrder(tables.order(),
                  [&](auto order)
                  {
                      constexpr int P = decltype(order)::value;
                      sumMultipoles<P, Real>
                              <<<blocks, c_warp * c_warps<P>, 0, stream>>>(particles.xq,
                                                                           particles.start,
                                                                           leaves.cellOf,
                                                                           leaves.stride,
                                                                           tables.inverseUnit(),
                                                                           tables.beta(),
                                                                           tables.scale(),
                                                                           leaves.M);
                  });
    checkLaunch("multipoles of the leaves");
}

template void p2m<float>(const DeviceExpansionTables<float>&,
                         const SortedParticles<float>&,
                         const LevelView<float>&,
                         cudaStream_t);
template void p2m<double>(const DeviceExpansionTables<double>&,
                          const SortedParticles<double>&,
                          const LevelView<double>&,
                          cudaStream_t);

} // namespace farfield
