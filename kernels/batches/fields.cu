/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Fields of waves at the particles, and totals of systems.
 */
#include <cmath>

#include "batches/batch_warp.cuh"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

//! A potential of waves and its derivatives by fractional coordinates, over powers of 2 pi.
template<class Real>
struct FieldOfWaves
{
    Real potential = 0, gradient[3] = { 0, 0, 0 };
    Real curvature[6] = { 0, 0, 0, 0, 0, 0 }; //!< xx yy zz xy xz yz
};

//! Sums along the third axis and their derivatives, see waveFields() of the CPU.
template<bool Curvature, class Real>
__device__ __forceinline__ FieldOfWaves<Real>
fieldAt(const BatchSums<Real>& sums, const SystemSums& s, const Real* weights, int i)
{
    FieldOfWaves<Real> field;
    const Real* const alongZ = phasesOf(sums.phases, s, 2, 0) + i;
    for (int column = 0; column < s.columns; column++)
    {
        const WaveColumn w = sums.columns[s.firstColumn + column];
        Real t[4] = { 0, 0, 0, 0 }, u[4] = { 0, 0, 0, 0 }, z[4] = { 0, 0, 0, 0 };
        const Real* weight = weights + static_cast<size_t>(w.first) * WaveProducts;
        const Real* atZ    = alongZ;
        for (int l = 0; l <= w.last;
             l++, weight += WaveProducts, atZ += 2 * static_cast<size_t>(s.n))
        {
            const Real c = atZ[0], sine = atZ[s.n];
            const auto number = static_cast<Real>(l);
            const Real dc = -number * sine, ds = number * c;
#pragma unroll
            for (int k = 0; k < 4; k++)
            {
                const Real ofCosine = weight[k], ofSine = weight[4 + k];
                t[k] = fma(ofSine, sine, fma(ofCosine, c, t[k]));
                u[k] = fma(ofSine, ds, fma(ofCosine, dc, u[k]));
                if (Curvature)
                {
                    z[k] = fma(ofSine, number * dc, fma(-ofCosine, number * ds, z[k]));
                }
            }
        }
        const Real* const atX = phasesOf(sums.phases, s, 0, w.h) + i;
        const Real* const atY = phasesOf(sums.phases, s, 1, w.k) + i;
        const Real cx = atX[0], sx = atX[s.n], cy = atY[0], sy = atY[s.n];
        const auto h = static_cast<Real>(w.h), k = static_cast<Real>(w.k);
        // cos and sin along the first axis have these factors
        const Real a = fma(sy, t[2], cy * t[0]), b = fma(sy, t[3], cy * t[1]);
        const Real da = fma(-sy, t[0], cy * t[2]), db = fma(-sy, t[1], cy * t[3]);
        const Real za = fma(sy, u[2], cy * u[0]), zb = fma(sy, u[3], cy * u[1]);
        const Real value = fma(sx, b, cx * a);
        field.potential += value;
        field.gradient[0] = fma(h, fma(-sx, a, cx * b), field.gradient[0]);
        field.gradient[1] = fma(k, fma(sx, db, cx * da), field.gradient[1]);
        field.gradient[2] += fma(sx, zb, cx * za);
        if (Curvature)
        {
            const Real zza = fma(sy, z[2], cy * z[0]), zzb = fma(sy, z[3], cy * z[1]);
            const Real dza = fma(-sy, u[0], cy * u[2]), dzb = fma(-sy, u[1], cy * u[3]);
            Real* const second = field.curvature;
            second[0]          = fma(-h * h, value, second[0]);
            second[1]          = fma(-k * k, value, second[1]);
            second[2] += fma(sx, zzb, cx * zza);
            second[3] = fma(h * k, fma(-sx, da, cx * db), second[3]);
            second[4] = fma(h, fma(-sx, za, cx * zb), second[4]);
            second[5] = fma(k, fma(sx, dzb, cx * dza), second[5]);
        }
    }
    return field;
}

//! matrix column, of rows.
__device__ __forceinline__ void transform(const double* matrix, const double* column, double* to)
{
    for (int d = 0; d < 3; d++)
    {
        to[d] = matrix[3 * d] * column[0] + matrix[3 * d + 1] * column[1]
                + matrix[3 * d + 2] * column[2];
    }
}

//! Adds what a channel of a particle has of waves. \returns the potential
template<class Real>
__device__ double
addEvaluation(const BatchSums<Real>& sums, const SystemSums& s, int i, int channel, double* force)
{
    const auto field = fieldAt<false>(sums, s, factorsOf(sums.sums, s, 1, channel, 0, 0), i);
    const size_t at  = (static_cast<size_t>(s.first) + i) * sums.particles.channels + channel;
    const auto q     = static_cast<double>(sums.particles.q[at]);
    const double gradient[] = { static_cast<double>(field.gradient[0]),
                                static_cast<double>(field.gradient[1]),
                                static_cast<double>(field.gradient[2]) };
    double turned[3];
    transform(s.inverse, gradient, turned);
    for (int d = 0; d < 3; d++)
    {
        force[d] -= 2 * M_PI * q * turned[d];
    }
    const double net =
            sums.particles.net[static_cast<size_t>(s.system) * sums.particles.channels + channel];
    return static_cast<double>(field.potential) - 2 * (s.self * q + s.background * net);
}

//! The derivative of a net potential of a background.
template<class Real>
__device__ __forceinline__ double changeOfBackground(const BatchSums<Real>& sums,
                                                     const SystemSums& s,
                                                     int channel)
{
    const size_t at = static_cast<size_t>(s.system) * sums.particles.channels + channel;
    return s.background
           * (sums.changes.net[at]
              - (s.strain[0] + s.strain[4] + s.strain[8]) * sums.particles.net[at]);
}

//! The same of tangents, see EwaldSystem::addWaveTangents() of the CPU.
template<class Real>
__device__ double
addTangent(const BatchSums<Real>& sums, const SystemSums& s, int i, int channel, double* force)
{
    const auto field =
            fieldAt<true>(sums, s, factorsOf(sums.sums, s, c_tangentSets, channel, 0, 0), i);
    const auto other =
            fieldAt<false>(sums, s, factorsOf(sums.sums, s, c_tangentSets, channel, 1, 0), i);
    const size_t particle = static_cast<size_t>(s.first) + i;
    const size_t at       = particle * sums.particles.channels + channel;
    const auto q          = static_cast<double>(sums.particles.q[at]);
    const auto dq         = static_cast<double>(sums.changes.q[at]);
    double fraction[3], gradient[3], change[3];
    for (int d = 0; d < 3; d++)
    {
        fraction[d] = 2 * M_PI * sums.changes.fractions[3 * particle + d];
        gradient[d] = static_cast<double>(field.gradient[d]);
        change[d]   = static_cast<double>(other.gradient[d]);
    }
    const int component[3][3] = { { 0, 3, 4 }, { 3, 1, 5 }, { 4, 5, 2 } };
    double potential          = static_cast<double>(other.potential);
    for (int a = 0; a < 3; a++)
    {
        for (int b = 0; b < 3; b++)
        {
            change[a] += static_cast<double>(field.curvature[component[a][b]]) * fraction[b];
        }
        potential += fraction[a] * gradient[a];
    }
    double own[3], moved[3], strained[3];
    transform(s.inverse, gradient, own);
    transform(s.inverse, change, moved);
    transform(s.strain, own, strained);
    for (int d = 0; d < 3; d++)
    {
        force[d] -= 2 * M_PI * (dq * own[d] + q * (moved[d] - strained[d]));
    }
    return potential - 2 * (s.self * dq + changeOfBackground(sums, s, channel));
}

//! A thread a particle.
template<class Real, bool Tangent>
__global__ void addFieldsOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    const SystemSums& s   = sums.systems[block.system];
    const int i           = block.part * c_fieldThreads + static_cast<int>(threadIdx.x);
    if (i >= s.n)
    {
        return;
    }
    const size_t particle = static_cast<size_t>(s.first) + i;
    const bool hasPairs   = s.blocks[OfTargets] > 0;
    double force[3];
    for (int d = 0; d < 3; d++)
    {
        force[d] = hasPairs ? sums.forces[s.isDetour][3 * particle + d] : 0;
    }
    for (int c = 0; c < sums.particles.channels; c++)
    {
        const double potential =
                Tangent ? addTangent(sums, s, i, c, force) : addEvaluation(sums, s, i, c, force);
        double* const to = sums.potentials[s.isDetour] + particle * sums.particles.channels + c;
        *to              = (hasPairs ? *to : 0) + potential;
    }
    for (int d = 0; d < 3; d++)
    {
        sums.forces[s.isDetour][3 * particle + d] = force[d];
    }
}

//! A block a system.
template<class Real>
__global__ void addTotalsOf(BatchSums<Real> sums)
{
    const SystemSums& s = sums.systems[blockIdx.x];
    const int channels  = sums.particles.channels;
    double all[BlockTotals];
    for (int k = 0; k < BlockTotals; k++)
    {
        double own = 0;
        for (int b = static_cast<int>(threadIdx.x); b < s.blocks[OfTargets];
             b += static_cast<int>(blockDim.x))
        {
            own += sums.pairTotals[(static_cast<size_t>(s.firstBlock[OfTargets]) + b) * BlockTotals
                                   + k];
        }
        const size_t first = static_cast<size_t>(s.firstBlock[OfWeights]) * channels;
        for (int b = static_cast<int>(threadIdx.x); b < s.blocks[OfWeights] * channels;
             b += static_cast<int>(blockDim.x))
        {
            own += sums.waveTotals[(first + b) * BlockTotals + k];
        }
        all[k] = blockSum(own);
    }
    double squares = 0;
    for (int k = static_cast<int>(threadIdx.x); k < 3 * s.n; k += static_cast<int>(blockDim.x))
    {
        const double force = sums.forces[s.isDetour][3 * static_cast<size_t>(s.first) + k];
        squares += force * force;
    }
    squares = blockSum(squares);
    if (threadIdx.x != 0)
    {
        return;
    }
    for (int c = 0; c < channels && s.hasImages; c++)
    {
        const size_t at  = static_cast<size_t>(s.system) * channels + c;
        const double net = sums.particles.net[at];
        double ofVirial  = s.background * net * net;
        if (sums.tangents)
        {
            ofVirial = net * (changeOfBackground(sums, s, c) + s.background * sums.changes.net[at]);
        }
        all[TotalEnergy] -= s.self * sums.particles.squared[at] + s.background * net * net;
        addUnit(0.5 * ofVirial, all + TotalVirial);
    }
    if (sums.slabs != nullptr)
    {
        const SystemTotals& ofSlab = sums.ofSlabs[blockIdx.x];
        all[TotalEnergy] += ofSlab.energy;
        for (int k = 0; k < 6; k++)
        {
            all[TotalVirial + k] += ofSlab.virial[k];
        }
    }
    SystemTotals& to = sums.totals[blockIdx.x];
    to.energy        = all[TotalEnergy];
    to.squares       = squares;
    to.contacts      = all[TotalContacts];
    for (int k = 0; k < 6; k++)
    {
        to.virial[k] = all[TotalVirial + k];
    }
}

template<class Real>
__global__ void narrowAll(const double* from, Real* to, size_t count)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < count)
    {
        to[k] = static_cast<Real>(from[k]);
    }
}

} // namespace

template<class Real>
void addFields(const BatchSums<Real>& sums, const BlockPart* blocks, int count, cudaStream_t stream)
{
    if (count > 0)
    {
        const auto kernel = sums.tangents ? addFieldsOf<Real, true> : addFieldsOf<Real, false>;
        kernel<<<count, c_fieldThreads, 0, stream>>>(sums, blocks);
        checkLaunch("fields of waves");
    }
}

template<class Real>
void addTotals(const BatchSums<Real>& sums, int count, cudaStream_t stream)
{
    if (count > 0)
    {
        addTotalsOf<Real><<<count, c_batchThreads, 0, stream>>>(sums);
        checkLaunch("totals of systems");
    }
}

template<class Real>
void narrow(const double* from, Real* to, size_t count, cudaStream_t stream)
{
    if (count > 0)
    {
        narrowAll<Real><<<blocksFor(static_cast<long long>(count), c_batchThreads),
                          c_batchThreads,
                          0,
                          stream>>>(from, to, count);
        checkLaunch("copying results");
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template decltype(addFields<Real>) addFields<Real>;                                            \
    template decltype(addTotals<Real>) addTotals<Real>;                                            \
    template decltype(narrow<Real>) narrow<Real>;
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
