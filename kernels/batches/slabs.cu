/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boxes of slabs, and what their layers have of each other.
 */
#include <cmath>

#include "batches/cells.cuh"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

//! The largest value of a block, in each of its threads.
__device__ double blockLargest(double value)
{
    __shared__ double all[c_batchThreads];
    all[threadIdx.x] = value;
    __syncthreads();
    for (int step = c_batchThreads / 2; step > 0; step /= 2)
    {
        if (static_cast<int>(threadIdx.x) < step)
        {
            all[threadIdx.x] = fmax(all[threadIdx.x], all[threadIdx.x + step]);
        }
        __syncthreads();
    }
    value = all[0];
    __syncthreads();
    return value;
}

//! blockSum() of all moments, in each thread.
__device__ SlabMoments sumOfBlock(const SlabMoments& own)
{
    __shared__ SlabMoments all;
    const double net = blockSum(own.net), dipole = blockSum(own.dipole);
    const double square = blockSum(own.square);
    if (threadIdx.x == 0)
    {
        all.net    = net;
        all.dipole = dipole;
        all.square = square;
    }
    __syncthreads();
    const SlabMoments result = all;
    __syncthreads();
    return result;
}

//! A block a system.
template<class Real>
__global__ void boxSlabsOf(SystemArrays systems, BatchParticles<Real> particles, double accuracy)
{
    if (systems.status->badInput != c_noSystem)
    {
        return;
    }
    const size_t system       = blockIdx.x;
    const double* const given = systems.given + 9 * system;
    SystemInBox& in           = systems.inBox[system];
    double normal[3];
    findNormal(given, normal);
    // what is not finite is refused later
    double lowest = INFINITY, highest = -INFINITY;
    for (int i = static_cast<int>(threadIdx.x); i < in.n; i += static_cast<int>(blockDim.x))
    {
        const Real* const x = particles.x + 3 * (static_cast<size_t>(in.first) + i);
        const double at[]   = { static_cast<double>(x[0]),
                                static_cast<double>(x[1]),
                                static_cast<double>(x[2]) };
        const double z      = dotOf(at, normal);
        if (isfinite(z))
        {
            lowest  = fmin(lowest, z);
            highest = fmax(highest, z);
        }
    }
    lowest  = -blockLargest(-lowest);
    highest = blockLargest(highest);
    if (threadIdx.x == 0)
    {
        const bool any        = lowest <= highest;
        const SlabBox slab    = slabBox(given, any ? lowest : 0, any ? highest : 0, accuracy);
        systems.slabs[system] = slab;
        in.shift              = 0.5 - slab.middle / slab.height;
        in.fullness           = slab.fullness;
        layOutCells(compactBox(slab.rows), static_cast<int>(system), &systems.boxes[system], &in);
        if (slab.isTooHigh)
        {
            atomicMin(&systems.status->tooHigh, static_cast<int>(system));
        }
    }
}

//! A block a system.
template<class Real>
__global__ void addSlabsOf(BatchSums<Real> sums)
{
    if (static_cast<int>(blockIdx.x) >= *sums.computed)
    {
        return;
    }
    const SystemSums& s     = sums.systems[blockIdx.x];
    const SlabBox& slab     = sums.slabs[s.system];
    const double* const n   = slab.normal;
    const SlabEnergy layers = { 0.5 * s.scale, slab.height };
    const int channels      = sums.particles.channels;
    const double widens     = sums.tangents ? s.strain[0] + s.strain[4] + s.strain[8] : 0;
    double turn[3];
    for (int k = 0; k < 3; k++)
    {
        turn[k] = n[0] * s.strain[k] + n[1] * s.strain[3 + k] + n[2] * s.strain[6 + k];
    }
    const auto thirdOf = [&](const double* fractions, int i)
    { return fractions[3 * (static_cast<size_t>(s.first) + i) + 2]; };
    const auto along  = [&](int i) { return (thirdOf(sums.particles.f, i) - 0.5) * slab.height; };
    const auto change = [&](int i) { return thirdOf(sums.changes.fractions, i) * slab.height; };
    double energy = 0, derivative = 0;
    for (int c = 0; c < channels; c++)
    {
        const auto at = [&](int i) { return (static_cast<size_t>(s.first) + i) * channels + c; };
        SlabMoments own, ownChange;
        for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
        {
            const auto q = static_cast<double>(sums.particles.q[at(i)]);
            own.add(q, along(i));
            if (sums.tangents)
            {
                ownChange.addChange(
                        q, along(i), static_cast<double>(sums.changes.q[at(i)]), change(i));
            }
        }
        const SlabMoments all   = sumOfBlock(own);
        const SlabMoments moved = sums.tangents ? sumOfBlock(ownChange) : SlabMoments();
        energy += layers.of(all, all);
        derivative += 2 * layers.of(all, moved) - widens * layers.of(all, all);
        for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
        {
            const auto q       = static_cast<double>(sums.particles.q[at(i)]);
            const double z     = along(i);
            const double field = layers.field(all, z);
            double push = q * field, aside = 0;
            double potential = layers.potential(all, z);
            if (sums.tangents)
            {
                const auto dq   = static_cast<double>(sums.changes.q[at(i)]);
                const double dz = change(i);
                potential       = layers.potentialChange(all, moved, z, dz, widens);
                aside           = push;
                push            = dq * field + q * layers.fieldChange(all, moved, z, dz, widens);
            }
            sums.potentials[s.isDetour][at(i)] += potential;
            double* const force = sums.forces[s.isDetour] + 3 * (static_cast<size_t>(s.first) + i);
            for (int k = 0; k < 3; k++)
            {
                force[k] += push * n[k] + aside * turn[k];
            }
        }
    }
    if (threadIdx.x == 0)
    {
        SystemTotals& to = sums.ofSlabs[blockIdx.x];
        to.energy        = energy;
        // without tangents no energy turns
        const double own          = sums.tangents ? derivative : energy;
        const double ofTurn       = sums.tangents ? energy : 0;
        const int components[][2] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, 1 }, { 0, 2 }, { 1, 2 } };
        for (int k = 0; k < 6; k++)
        {
            const int a = components[k][0], b = components[k][1];
            to.virial[k] = own * (n[a] * n[b] - (a == b ? 0.5 : 0))
                           + ofTurn * (turn[a] * n[b] + n[a] * turn[b]);
        }
    }
}

} // namespace

template<class Real>
void boxSlabs(const SystemArrays& systems,
              const BatchParticles<Real>& particles,
              double accuracy,
              cudaStream_t stream)
{
    if (systems.count > 0)
    {
        boxSlabsOf<Real>
                <<<systems.count, c_batchThreads, 0, stream>>>(systems, particles, accuracy);
        checkLaunch("boxes of slabs");
    }
}

template<class Real>
void addSlabs(const BatchSums<Real>& sums, int most, cudaStream_t stream)
{
    if (most > 0)
    {
        addSlabsOf<Real><<<most, c_batchThreads, 0, stream>>>(sums);
        checkLaunch("layers of slabs");
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template decltype(boxSlabs<Real>) boxSlabs<Real>;                                              \
    template decltype(addSlabs<Real>) addSlabs<Real>;
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
