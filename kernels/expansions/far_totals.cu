/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Sums over the particles and over the slots of the leaves in one launch: blocks take stretches of
// the ones, then of the others.
#include <algorithm>

#include "expansions/expansions.h"
#include "runtime/load.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;
//! Coefficients of a slot that one thread sums in the precision of the expansions.
constexpr int c_stretch = 32;

template<class Real>
struct FarTotalsTask
{
    SortedParticles<Real> particles;
    const Real4<Real>* forces;
    double traceScale;
    int coefficients;
    LevelView<Real> leaves;
    double scale;
    int particleParts; //!< parts of the particles, c_threads each; those of the slots follow
    int slotParts;     //!< parts of the slots, c_threads each, for each stretch of coefficients
    int parts;         //!< of both
    double *energy, *virial;
    OrderedSums::View sums;
};

//! Adds the sums that farTotals() describes.
template<bool Virial, class Real>
__global__ void __launch_bounds__(c_threads) sumFarTotals(const FarTotalsTask<Real> task)
{
    constexpr int c_values = Virial ? 7 : 1;
    double own[c_values]   = {};
    for (int part = blockIdx.x; part < task.parts; part += gridDim.x)
    {
        if (part < task.particleParts)
        {
            const int i = part * c_threads + threadIdx.x;
            if (i < task.particles.n)
            {
                const Real4<Real> a = load(task.particles.xq + i);
                own[0] += task.traceScale
                          * static_cast<double>(a.w * (a.x * a.x + a.y * a.y + a.z * a.z));
                if constexpr (Virial)
                {
                    const Real4<Real> f = load(task.forces + i);
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
        const int slot = (part - task.particleParts) % task.slotParts * c_threads + threadIdx.x;
        // what L holds for slots without a cell is not defined
        if (slot < task.leaves.stride && __ldg(task.leaves.cellOf + slot) >= 0)
        {
            const int first = (part - task.particleParts) / task.slotParts * c_stretch;
            const int end   = min(task.coefficients, first + c_stretch);
            Real product    = 0;
            for (int i = first; i < end; i++)
            {
                const size_t at = static_cast<size_t>(i) * task.leaves.stride + slot;
                product += __ldg(task.leaves.M + at) * __ldg(task.leaves.L + at);
            }
            own[0] += task.scale * static_cast<double>(product);
        }
    }
    double* to[7] = { task.energy };
    for (int k = 1; k < c_values; k++)
    {
        to[k] = task.virial + (k - 1);
    }
    addInOrder<c_values>(own, task.sums, to);
}

} // namespace

template<class Real>
void farTotals(int order,
               const SortedParticles<Real>& particles,
               const LevelView<Real>& leaves,
               const Real4<Real>* forces,
               double scale,
               double traceScale,
               const FarSums& sums,
               cudaStream_t stream)
{
    const int coefficients  = (order + 1) * (order + 1);
    const bool anyParticles = sums.virial != nullptr || traceScale != 0;
    const int particleParts = anyParticles ? blocksFor(particles.n, c_threads) : 0;
    const int slotParts     = blocksFor(leaves.stride, c_threads);
    const int parts         = particleParts + slotParts * blocksFor(coefficients, c_stretch);
    if (parts == 0)
    {
        return;
    }
    const auto kernel =
            (sums.virial != nullptr) ? sumFarTotals<true, Real> : sumFarTotals<false, Real>;
    const FarTotalsTask<Real> task = {
        particles,     forces,    traceScale, coefficients, leaves,      scale,
        particleParts, slotParts, parts,      sums.energy,  sums.virial, sums.scratch->view()
    };
    kernel<<<std::min(parts, OrderedSums::c_maxBlocks), c_threads, 0, stream>>>(task);
    checkLaunch("summing the energy and the virial of the far field");
}

#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void farTotals<Real>(int,                                                             \
                                  const SortedParticles<Real>&,                                    \
                                  const LevelView<Real>&,                                          \
                                  const Real4<Real>*,                                              \
                                  double,                                                          \
                                  double,                                                          \
                                  const FarSums&,                                                  \
                                  cudaStream_t)
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
