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

    __device__ __forceinline__ void add(const FieldOfWaves& other)
    {
        potential += other.potential;
        for (int k = 0; k < 3; k++)
        {
            gradient[k] += other.gradient[k];
        }
        for (int k = 0; k < 6; k++)
        {
            curvature[k] += other.curvature[k];
        }
    }
};

/*! \brief Adds a column.
 *  \param[in] x, y     phases along the first two axes
 *  \param[in] t, u, z  [4] sums along the third one and their derivatives */
template<bool Curvature, class Real>
__device__ __forceinline__ void addColumn(const WaveColumn& w,
                                          const Phase<Real>& x,
                                          const Phase<Real>& y,
                                          const Real* t,
                                          const Real* u,
                                          const Real* z,
                                          FieldOfWaves<Real>* field)
{
    const auto h = static_cast<Real>(w.h), k = static_cast<Real>(w.k);
    // cos and sin along the first axis have these factors
    const Real a = fma(y.s, t[2], y.c * t[0]), b = fma(y.s, t[3], y.c * t[1]);
    const Real da = fma(-y.s, t[0], y.c * t[2]), db = fma(-y.s, t[1], y.c * t[3]);
    const Real za = fma(y.s, u[2], y.c * u[0]), zb = fma(y.s, u[3], y.c * u[1]);
    const Real value = fma(x.s, b, x.c * a);
    field->potential += value;
    field->gradient[0] = fma(h, fma(-x.s, a, x.c * b), field->gradient[0]);
    field->gradient[1] = fma(k, fma(x.s, db, x.c * da), field->gradient[1]);
    field->gradient[2] += fma(x.s, zb, x.c * za);
    if (Curvature)
    {
        const Real zza = fma(y.s, z[2], y.c * z[0]), zzb = fma(y.s, z[3], y.c * z[1]);
        const Real dza = fma(-y.s, u[0], y.c * u[2]), dzb = fma(-y.s, u[1], y.c * u[3]);
        Real* const second = field->curvature;
        second[0]          = fma(-h * h, value, second[0]);
        second[1]          = fma(-k * k, value, second[1]);
        second[2] += fma(x.s, zzb, x.c * zza);
        second[3] = fma(h * k, fma(-x.s, da, x.c * db), second[3]);
        second[4] = fma(h, fma(-x.s, za, x.c * zb), second[4]);
        second[5] = fma(k, fma(x.s, dzb, x.c * dza), second[5]);
    }
}

//! The weights of (h, k, l), in loads of 16 bytes.
template<class Real>
__device__ __forceinline__ void loadWeights(const Real* from, Real (&to)[WaveProducts])
{
    constexpr int c_atOnce = 16 / sizeof(Real);
    struct alignas(16) Some
    {
        Real values[c_atOnce];
    };
#pragma unroll
    for (int k = 0; k < WaveProducts; k += c_atOnce)
    {
        const Some some = *reinterpret_cast<const Some*>(from + k);
#pragma unroll
        for (int m = 0; m < c_atOnce; m++)
        {
            to[k + m] = some.values[m];
        }
    }
}

/*! \brief Sums along the third axis and their derivatives, see waveFields() of the CPU.
 *
 *  A warp takes every so many-th column. All its lanes read the same weights, for as many particles as
 *  they have.
 *  \tparam Many        particles of a thread
 *  \param[in] warp     of the block
 *  \param[in] particles  [Many] of the system */
template<bool Curvature, int Many, class Real>
__device__ __forceinline__ void addColumns(const BatchSums<Real>& sums,
                                           const SystemSums& s,
                                           const Real* weights,
                                           int warp,
                                           const int (&particles)[Many],
                                           FieldOfWaves<Real> (&fields)[Many])
{
    const Real* const alongX = phasesOf(sums.phases, s, 0, 0);
    const Real* const alongY = phasesOf(sums.phases, s, 1, 0);
    const Real* const alongZ = phasesOf(sums.phases, s, 2, min(1, s.range[2]));
    Real c1[Many], s1[Many];
#pragma unroll
    for (int m = 0; m < Many; m++)
    {
        c1[m] = alongZ[particles[m]];
        s1[m] = alongZ[s.n + particles[m]];
    }
    for (int column = warp; column < s.columns; column += c_fieldWarps)
    {
        const WaveColumn w = sums.columns[s.firstColumn + column];
        Real t[Many][4] = {}, u[Many][4] = {}, z[Many][4] = {};
        const Real* at = weights + static_cast<size_t>(w.first) * WaveProducts;
        Real c[Many], sine[Many], number = 0;
#pragma unroll
        for (int m = 0; m < Many; m++)
        {
            c[m]    = 1;
            sine[m] = 0;
        }
        for (int l = 0; l <= w.last; l++, at += WaveProducts, number += 1)
        {
            Real weight[WaveProducts];
            loadWeights(at, weight);
#pragma unroll
            for (int m = 0; m < Many; m++)
            {
                const Real dc = -number * sine[m], ds = number * c[m];
#pragma unroll
                for (int k = 0; k < 4; k++)
                {
                    const Real ofCosine = weight[k], ofSine = weight[4 + k];
                    t[m][k] = fma(ofSine, sine[m], fma(ofCosine, c[m], t[m][k]));
                    u[m][k] = fma(ofSine, ds, fma(ofCosine, dc, u[m][k]));
                    if (Curvature)
                    {
                        z[m][k] = fma(ofSine, number * dc, fma(-ofCosine, number * ds, z[m][k]));
                    }
                }
                // as findPhasesOf()
                const Real next = fma(-sine[m], s1[m], c[m] * c1[m]);
                sine[m]         = fma(sine[m], c1[m], c[m] * s1[m]);
                c[m]            = next;
            }
        }
        const size_t rowX = 2 * static_cast<size_t>(w.h) * s.n;
        const size_t rowY = 2 * static_cast<size_t>(w.k) * s.n;
#pragma unroll
        for (int m = 0; m < Many; m++)
        {
            const Real* const atX = alongX + rowX + particles[m];
            const Real* const atY = alongY + rowY + particles[m];
            addColumn<Curvature>(
                    w, { atX[0], atX[s.n] }, { atY[0], atY[s.n] }, t[m], u[m], z[m], &fields[m]);
        }
    }
}

/*! \brief The field at the particle of a thread, of those that are the first c_fieldParticles of a block.
 *
 *  All threads of the block call it. \param[in] first  particle of the block */
template<bool Curvature, class Real>
__device__ FieldOfWaves<Real>
fieldAt(const BatchSums<Real>& sums, const SystemSums& s, const Real* weights, int first)
{
    __shared__ FieldOfWaves<Real> parts[c_fieldWarps][c_fieldParticles];
    const int lane = static_cast<int>(threadIdx.x) % c_tile;
    const int warp = static_cast<int>(threadIdx.x) / c_tile;
    const int last = s.n - 1;
    __syncthreads();
    if (first + c_tile <= last)
    {
        FieldOfWaves<Real> own[2];
        addColumns<Curvature, 2>(
                sums, s, weights, warp, { first + lane, min(first + c_tile + lane, last) }, own);
        parts[warp][lane]          = own[0];
        parts[warp][c_tile + lane] = own[1];
    }
    else
    {
        FieldOfWaves<Real> own[1];
        addColumns<Curvature, 1>(sums, s, weights, warp, { min(first + lane, last) }, own);
        parts[warp][lane] = own[0];
    }
    __syncthreads();
    FieldOfWaves<Real> field;
    for (int w = 0; w < c_fieldWarps && threadIdx.x < c_fieldParticles; w++)
    {
        field.add(parts[w][threadIdx.x]);
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

/*! \brief Adds what a channel of a particle has of waves.
 *  \param[in] first  particle of the block \param[in] i  that of the thread \returns the potential */
template<class Real>
__device__ double addEvaluation(const BatchSums<Real>& sums,
                                const SystemSums& s,
                                int first,
                                int i,
                                int channel,
                                double* force)
{
    const auto field = fieldAt<false>(sums, s, factorsOf(sums.sums, s, 1, channel, 0, 0), first);
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
__device__ double addTangent(const BatchSums<Real>& sums,
                             const SystemSums& s,
                             int first,
                             int i,
                             int channel,
                             double* force)
{
    const auto field =
            fieldAt<true>(sums, s, factorsOf(sums.sums, s, c_tangentSets, channel, 0, 0), first);
    const auto other =
            fieldAt<false>(sums, s, factorsOf(sums.sums, s, c_tangentSets, channel, 1, 0), first);
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

//! A block takes c_fieldParticles; in the end each of them has a thread.
template<class Real, bool Tangent>
__global__ void __launch_bounds__(c_fieldWarps* c_tile)
        addFieldsOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s = sums.systems[block.system];
    const int thread    = static_cast<int>(threadIdx.x);
    const int first     = block.part * c_fieldParticles;
    // the other threads take part in the sums
    const int i           = min(first + thread, s.n - 1);
    const bool writes     = thread < c_fieldParticles && first + thread < s.n;
    const size_t particle = static_cast<size_t>(s.first) + i;
    const bool hasPairs   = writes && s.blocks[OfTargets] > 0;
    double force[3];
    for (int d = 0; d < 3; d++)
    {
        force[d] = hasPairs ? sums.forces[s.isDetour][3 * particle + d] : 0;
    }
    for (int c = 0; c < sums.particles.channels; c++)
    {
        const double potential = Tangent ? addTangent(sums, s, first, i, c, force)
                                         : addEvaluation(sums, s, first, i, c, force);
        double* const to = sums.potentials[s.isDetour] + particle * sums.particles.channels + c;
        if (writes)
        {
            *to = (hasPairs ? *to : 0) + potential;
        }
    }
    for (int d = 0; d < 3 && writes; d++)
    {
        sums.forces[s.isDetour][3 * particle + d] = force[d];
    }
}

//! Whether a charge is at the place of another particle: as refuseContact() of the host.
template<class Real>
__device__ bool hasContacts(const BatchSums<Real>& sums, const SystemSums& s)
{
    const int channels    = sums.particles.channels;
    const auto particleAt = [&](int i) { return static_cast<size_t>(s.first) + i; };
    const auto squareOf   = [&](int i, int j)
    {
        double d[3], r[3];
        for (int k = 0; k < 3; k++)
        {
            const size_t a = 3 * particleAt(i) + k, b = 3 * particleAt(j) + k;
            d[k] = s.hasImages ? sums.particles.f[a] - sums.particles.f[b]
                               : static_cast<double>(sums.particles.x[a] - sums.particles.x[b]);
        }
        double square = 0;
        for (int k = 0; k < 3; k++)
        {
            r[k] = d[k];
            if (s.hasImages)
            {
                r[k] = 0;
                for (int m = 0; m < 3; m++)
                {
                    r[k] += s.unit * s.vectors[3 * m + k] * (d[m] - rint(d[m]));
                }
            }
            square += r[k] * r[k];
        }
        return square;
    };
    const auto matters = [&](int i, int j)
    {
        bool result = false;
        for (int c = 0; c < channels; c++)
        {
            const bool one   = sums.particles.q[particleAt(i) * channels + c] != 0;
            const bool other = sums.particles.q[particleAt(j) * channels + c] != 0;
            result           = result || (one && other) || (sums.wantsPotentials && (one || other));
        }
        return result;
    };
    for (int i = 0; i < s.n; i++)
    {
        if (sums.contacts[particleAt(i)] == 0)
        {
            continue;
        }
        for (int j = static_cast<int>(threadIdx.x); j < s.n; j += static_cast<int>(blockDim.x))
        {
            // rounding is that of other sums here
            if (j != i && squareOf(i, j) <= 4 * s.contact && matters(i, j))
            {
                return true;
            }
        }
    }
    return false;
}

//! A block a system.
template<class Real>
__global__ void addTotalsOf(BatchSums<Real> sums)
{
    if (static_cast<int>(blockIdx.x) >= *sums.computed)
    {
        return;
    }
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
    // those of thread 0 are the sums
    const bool touches = __syncthreads_or(threadIdx.x == 0 && all[TotalContacts] > 0 ? 1 : 0) != 0;
    if (touches && __syncthreads_or(s.isDetour == 0 && hasContacts(sums, s) ? 1 : 0) == 0)
    {
        all[TotalContacts] = 0;
    }
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

} // namespace

template<class Real>
void addFields(const BatchSums<Real>& sums, const BlockPart* blocks, int count, cudaStream_t stream)
{
    if (count > 0)
    {
        const auto kernel = sums.tangents ? addFieldsOf<Real, true> : addFieldsOf<Real, false>;
        kernel<<<count, c_fieldWarps * c_tile, 0, stream>>>(sums, blocks);
        checkLaunch("fields of waves");
    }
}

template<class Real>
void addTotals(const BatchSums<Real>& sums, int most, cudaStream_t stream)
{
    if (most > 0)
    {
        addTotalsOf<Real><<<most, c_batchThreads, 0, stream>>>(sums);
        checkLaunch("totals of systems");
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template decltype(addFields<Real>) addFields<Real>;                                            \
    template decltype(addTotals<Real>) addTotals<Real>;
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
