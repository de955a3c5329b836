/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Sums over the particles and over the slots of the leaves in one launch: blocks take stretches of
// the ones, then of the others.
#include "expansions/expansions.h"

#include <algorithm>

namespace farfield
{
namespace
{

constexpr int c_threads = 128;
//! Coefficients of a slot that one thread sums in the precision of the expansions.
constexpr int c_stretch = 32;

/*! \brief Adds the sums that farTotals() describes.
 *
 *  \param[in] particleParts  parts of the particles, c_threads each; those of the slots follow
 *  \param[in] slotParts      parts of the slots, c_threads each, for each stretch of coefficients
 *  \param[in] parts          of both */
template<bool Virial, class Real>
__global__ void __launch_bounds__(c_threads) sumFarTotals(int n,
                                                          const Real4<Real>* __restrict__ xq,
                                                          const Real4<Real>* __restrict__ forces,
                                                          double traceScale,
                                                          int coefficients,
                                                          int stride,
                                                          const int* __restrict__ cellOf,
                                                          const Real* __restrict__ M,
                                                          const Real* __restrict__ L,
                                                          double scale,
                                                          int particleParts,
                                                          int slotParts,
                                                          int parts,
                                                          double* energy,
                                                          double* virial,
                                                          OrderedSums::View sums)
{
    constexpr int c_values = Virial ? 7 : 1;
    double own[c_values]   = {};
    for (int part = blockIdx.x; part < parts; part += gridDim.x)
    {
        if (part < particleParts)
        {
            const int i = part * c_threads + threadIdx.x;
            if (i < n)
            {
                const Real4<Real> a = xq[i];
                own[0] +=
                        traceScale * static_cast<double>(a.w * (a.x * a.x + a.y * a.y + a.z * a.z));
                if constexpr (Virial)
                {
                    const Real4<Real> f = forces[i];
                    own[1] -= 0.5 * static_cast<double>(a.x * f.x);
                    own[2] -= 0.5 * static_cast<double>(a.y * f.y);
                    own[3] -= 0.5 * static_cast<double>(a.z * f.z);
                    own[4] -= 0.25 * static_cast<double>(a.x * f.y + a.y * f.x);
                    own[5] -= 0.25 * static_cast<double>(a.x * f.z + a.z * f.x);
                    own[6] -= 0.25 * static_cast<double>(a.y * f.z + a.z * f.y);
                }
            }
            continue;
        }
        const int slot = (part - particleParts) % slotParts * c_threads + threadIdx.x;
        // what L holds for slots without a cell is not defined
        if (slot < stride && cellOf[slot] >= 0)
        {
            const int first = (part - particleParts) / slotParts * c_stretch;
            const int end   = min(coefficients, first + c_stretch);
            Real product    = 0;
            for (int i = first; i < end; i++)
            {
                const size_t at = static_cast<size_t>(i) * stride + slot;
                product += M[at] * L[at];
            }
            own[0] += scale * static_cast<double>(product);
        }
    }
    double* to[7] = { energy };
    for (int k = 1; k < c_values; k++)
    {
        to[k] = virial + (k - 1);
    }
    addInOrder<c_values>(own, sums, to);
}

} // namespace

template<class Real>
void farTotals(int order,
               const SortedParticles<Real>& particles,
               const LevelView<Real>& leaves,
               const Real4<Real>* forces,
               double scale,
               double traceScale,
               double* energy,
               double* virial,
               OrderedSums* scratch,
               cudaStream_t stream)
{
    const int coefficients  = (order + 1) * (order + 1);
    const bool anyParticles = virial != nullptr || traceScale != 0;
    const int particleParts = anyParticles ? blocksFor(particles.n, c_threads) : 0;
    const int slotParts     = blocksFor(leaves.stride, c_threads);
    const int parts         = particleParts + slotParts * blocksFor(coefficients, c_stretch);
    if (parts == 0)
    {
        return;
    }
    const auto kernel = (virial != nullptr) ? sumFarTotals<true, Real> : sumFarTotals<false, Real>;
    kernel<<<std::min(parts, OrderedSums::c_maxBlocks), c_threads, 0, stream>>>(particles.n,
                                                                                particles.xq,
                                                                                forces,
                                                                                traceScale,
                                                                                coefficients,
                                                                                leaves.stride,
                                                                                leaves.cellOf,
                                                                                leaves.M,
                                                                                leaves.L,
                                                                                scale,
                                                                                particleParts,
                                                                                slotParts,
                                                                                parts,
                                                                                energy,
                                                                                virial,
                                                                                scratch->view());
    checkLaunch("summing the energy and the virial of the far field");
}

template void farTotals<float>(int,
                               const SortedParticles<float>&,
                               const LevelView<float>&,
                               const Real4<float>*,
                               double,
                               double,
                               double*,
                               double*,
                               OrderedSums*,
                               cudaStream_t);
template void farTotals<double>(int,
                                const SortedParticles<double>&,
                                const LevelView<double>&,
                                const Real4<double>*,
                                double,
                                double,
                                double*,
                                double*,
                                OrderedSums*,
                                cudaStream_t);

} // namespace farfield
