/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A thread per sorted particle: neighbours are in the same or the next cells, so that a warp reads
// a coefficient of a few neighbouring slots at once.
#include "expansions.h"
#include "harmonics.h"
#include "order_dispatch.h"

namespace farfield
{
namespace
{

//! Small blocks: a small system should reach all multiprocessors.
constexpr int c_threads = 64;

//! The coefficients of one slot; rows are the same for all threads.
template<class Real>
struct Expansion
{
    const Real* L;
    int stride;
    unsigned slot;
    FARFIELD_HD Real operator()(int i) const { return (L + static_cast<size_t>(i) * stride)[slot]; }
};

template<int P, class Real>
__global__ void __launch_bounds__(c_threads) farForces(int n,
                                                       const Real4<Real>* __restrict__ xq,
                                                       const int* __restrict__ cell,
                                                       const int* __restrict__ slotOf,
                                                       const Real* __restrict__ L,
                                                       int stride,
                                                       Real inverseUnit,
                                                       Real pull,
                                                       GradientWeights<Real, P> weights,
                                                       Real4<Real>* __restrict__ forces)
{
    const int i       = blockIdx.x * c_threads + threadIdx.x;
    const int slot    = (i < n) ? slotOf[cell[i]] : -1;
    Real4<Real> force = { 0, 0, 0, 0 };
    if (slot >= 0)
    {
        const Real4<Real> a = xq[i];
        Real g[3];
        localGradient<P>(Expansion<Real>{ L, stride, static_cast<unsigned>(slot) },
                         weights,
                         a.x * inverseUnit,
                         a.y * inverseUnit,
                         a.z * inverseUnit,
                         g);
        // phi = sum_i L_i u_i(b / unit) / unit
        const Real scale = inverseUnit * inverseUnit;
        force.x          = a.w * (pull * a.x - scale * g[0]);
        force.y          = a.w * (pull * a.y - scale * g[1]);
        force.z          = a.w * (pull * a.z - scale * g[2]);
    }
    if (i < n)
    {
        forces[i] = force;
    }
}

} // namespace

template<class Real>
void l2p(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         Real pull,
         Real4<Real>* forces,
         cudaStream_t stream)
{
    const int blocks = blocksFor(particles.n, c_threads);
    if (blocks == 0)
    {
        return;
    }
    dispatchOrder(tables.order(),
                  [&](auto order)
                  {
                      constexpr int P                               = decltype(order)::value;
                      static const GradientWeights<Real, P> weights = gradientWeights<Real, P>();
                      farForces<P, Real><<<blocks, c_threads, 0, stream>>>(particles.n,
                                                                           particles.xq,
                                                                           particles.cell,
                                                                           leaves.slotOf,
                                                                           leaves.L,
                                                                           leaves.stride,
                                                                           tables.inverseUnit(),
                                                                           pull,
                                                                           weights,
                                                                           forces);
                  });
    checkLaunch("far-field forces");
}

template void l2p<float>(const DeviceExpansionTables<float>&,
                         const SortedParticles<float>&,
                         const LevelView<float>&,
                         float,
                         Real4<float>*,
                         cudaStream_t);
template void l2p<double>(const DeviceExpansionTables<double>&,
                          const SortedParticles<double>&,
                          const LevelView<double>&,
                          double,
                          Real4<double>*,
                          cudaStream_t);

} // namespace farfield
