/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Structure factors and weights of waves, see batch/wave_sums.h.
 */
#include <cmath>

#include "batches/batch_warp.cuh"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

template<class Real>
__device__ __forceinline__ void sineAndCosine(Real turns, Real* sine, Real* cosine);
template<>
__device__ __forceinline__ void sineAndCosine(float turns, float* sine, float* cosine)
{
    sincospif(2 * turns, sine, cosine);
}
template<>
__device__ __forceinline__ void sineAndCosine(double turns, double* sine, double* cosine)
{
    sincospi(2 * turns, sine, cosine);
}

//! A thread a particle; an axis is a row of blocks.
template<class Real>
__global__ void findPhasesOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    const SystemSums& s   = sums.systems[block.system];
    const int axis        = static_cast<int>(blockIdx.y);
    const int i           = block.part * c_batchThreads + static_cast<int>(threadIdx.x);
    if (i >= s.n)
    {
        return;
    }
    const double f = sums.particles.f[3 * (static_cast<size_t>(s.first) + i) + axis];
    Real c1, s1;
    const double origin = originOfPhases(f, axis, sums.slabs != nullptr);
    sineAndCosine(static_cast<Real>(f - origin), &s1, &c1);
    Real cosine = 1, sine = 0;
    Real* to = phasesOf(sums.phases, s, axis, 0) + i;
    for (int m = 0; m <= s.range[axis]; m++, to += 2 * static_cast<size_t>(s.n))
    {
        to[0]           = cosine;
        to[s.n]         = sine;
        const Real next = fma(-sine, s1, cosine * c1);
        sine            = fma(sine, c1, cosine * s1);
        cosine          = next;
    }
}

//! What a particle of a system has in a set of structure factors.
template<class Real>
__device__ __forceinline__ Real
chargeOf(const BatchSums<Real>& sums, size_t particle, int channel, int set)
{
    const size_t at = particle * sums.particles.channels + channel;
    if (set == 1)
    {
        return sums.changes.q[at];
    }
    const Real q = sums.particles.q[at];
    return set == 0 ? q
                    : static_cast<Real>(2 * M_PI * static_cast<double>(q)
                                        * sums.changes.fractions[3 * particle + set - 2]);
}

//! A warp takes c_wavesOfWarp waves of a column and a chunk of particles; channels and sets are rows.
template<class Real>
__global__ void sumFactorsOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    const SystemSums& s   = sums.systems[block.system];
    const int channel = static_cast<int>(blockIdx.y), set = static_cast<int>(blockIdx.z);
    const int lane = static_cast<int>(threadIdx.x) % c_tile;
    const int warp =
            block.part * (c_batchThreads / c_tile) + static_cast<int>(threadIdx.x) / c_tile;
    const int groups = s.range[2] / c_wavesOfWarp + 1;
    const int chunk  = warp % s.chunks;
    const int column = warp / s.chunks / groups;
    const int l      = warp / s.chunks % groups * c_wavesOfWarp; // the first one
    if (column >= s.columns || l > sums.columns[s.firstColumn + column].last)
    {
        return;
    }
    const WaveColumn w       = sums.columns[s.firstColumn + column];
    const Real* const alongX = phasesOf(sums.phases, s, 0, w.h);
    const Real* const alongY = phasesOf(sums.phases, s, 1, w.k);
    const Real* alongZ[c_wavesOfWarp];
#pragma unroll
    for (int m = 0; m < c_wavesOfWarp; m++)
    {
        // beyond the last one is nothing to add up
        alongZ[m] = phasesOf(sums.phases, s, 2, min(l + m, w.last));
    }
    Real own[c_wavesOfWarp * WaveProducts];
#pragma unroll
    for (int k = 0; k < c_wavesOfWarp * WaveProducts; k++)
    {
        own[k] = 0;
    }
    const int end = min(s.n, (chunk + 1) * c_chunk);
    for (int i = chunk * c_chunk + lane; i < end; i += c_tile)
    {
        const Real q  = chargeOf(sums, static_cast<size_t>(s.first) + i, channel, set);
        const Real cx = q * alongX[i], sx = q * alongX[s.n + i];
        const Real cy = alongY[i], sy = alongY[s.n + i];
        const Real products[] = { cx * cy, sx * cy, cx * sy, sx * sy };
#pragma unroll
        for (int m = 0; m < c_wavesOfWarp; m++)
        {
            const Real c = alongZ[m][i], sine = alongZ[m][s.n + i];
#pragma unroll
            for (int k = 0; k < 4; k++)
            {
                Real* const to = own + m * WaveProducts + k;
                to[0]          = fma(products[k], c, to[0]);
                to[4]          = fma(products[k], sine, to[4]);
            }
        }
    }
    const Real total = sumsOfLanes(own, lane);
    if (l + lane / WaveProducts <= w.last)
    {
        factorsOf(sums.sums,
                  s,
                  sums.tangents ? c_tangentSets : 1,
                  channel,
                  set,
                  chunk)[static_cast<size_t>(w.first + l) * WaveProducts + lane] = total;
    }
}

//! The waves (h, +-k, +-l) of a thread, from structure factors to weights.
template<class Real>
class Weigher
{
public:
    __device__ Weigher(const BatchSums<Real>& sums, const SystemSums& system, int channel) :
        sums_(sums), system_(system), channel_(channel),
        inverse_(0.25 / (system.splitting * system.splitting))
    {
    }

    //! \param[in,out] totals  [BlockTotals]
    __device__ void weigh(const WaveColumn& column, int l, double* totals)
    {
        const int sets = sums_.tangents ? c_tangentSets : 1;
        for (int set = 0; set < sets; set++)
        {
            for (int k = 0; k < WaveProducts; k++)
            {
                products_[set][k] = 0;
                for (int chunk = 0; chunk < system_.chunks; chunk++)
                {
                    products_[set][k] += static_cast<double>(at(set, chunk, column, l)[k]);
                }
            }
        }
        for (int signK = firstSignK(column); signK <= 1; signK += 2)
        {
            for (int signL = firstSignL(column); signL <= 1; signL += 2)
            {
                const int numbers[]   = { column.h, signK * column.k, signL * l };
                const WaveVector wave = waveOf(numbers);
                if (wave.square <= system_.waveCutoff * system_.waveCutoff
                    && countsWith(column, signL, l))
                {
                    add(wave, numbers, signK, signL, totals);
                }
            }
        }
        for (int k = 0; k < WaveProducts; k++)
        {
            at(0, 0, column, l)[k] = static_cast<Real>(weights_[k]);
            if (sums_.tangents)
            {
                at(1, 0, column, l)[k] = static_cast<Real>(tangents_[k]);
            }
        }
    }

private:
    __device__ Real* at(int set, int chunk, const WaveColumn& column, int l) const
    {
        return factorsOf(sums_.sums,
                         system_,
                         sums_.tangents ? c_tangentSets : 1,
                         channel_,
                         set,
                         chunk)
               + static_cast<size_t>(column.first + l) * WaveProducts;
    }

    __device__ WaveVector waveOf(const int* numbers) const
    {
        WaveVector wave = {};
        for (int d = 0; d < 3; d++)
        {
            wave.k[d] = numbers[0] * system_.waves[d] + numbers[1] * system_.waves[3 + d]
                        + numbers[2] * system_.waves[6 + d];
            wave.square += wave.k[d] * wave.k[d];
        }
        wave.weight = system_.scale * exp(-inverse_ * wave.square) / wave.square;
        return wave;
    }

    __device__ void
    add(const WaveVector& wave, const int* numbers, int signK, int signL, double* totals)
    {
        StructureFactor s[c_tangentSets];
        s[0]               = structureFactor(products_[0], signK, signL);
        const double twice = 2 * wave.weight;
        addWave(twice, s[0], signK, signL, weights_);
        if (!sums_.tangents)
        {
            const double energy = energyOf(wave, s[0]);
            totals[TotalEnergy] += energy;
            addWaveVirial(wave, energy, inverse_, totals + TotalVirial);
            return;
        }
        for (int set = 1; set < c_tangentSets; set++)
        {
            s[set] = structureFactor(products_[set], signK, signL);
        }
        const StrainedWave strained = strainedWave(wave, system_.strain, inverse_);
        const StructureFactor moved = movedFactor(s, numbers);
        addVirialTangent(wave, strained, s[0], moved, inverse_, totals + TotalVirial);
        addWave(twice * strained.rho, s[0], signK, signL, tangents_);
        addWave(twice, moved, signK, signL, tangents_);
    }

    const BatchSums<Real>& sums_;
    const SystemSums& system_;
    int channel_;
    double inverse_; //!< 1 / 4a^2, nm^2
    double products_[c_tangentSets][WaveProducts];
    double weights_[WaveProducts] = {}, tangents_[WaveProducts] = {};
};

//! A thread a (h, k, l); channels are rows.
template<class Real>
__global__ void weighFactorsOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block      = blocks[blockIdx.x];
    const SystemSums& s        = sums.systems[block.system];
    const int item             = block.part * c_batchThreads + static_cast<int>(threadIdx.x);
    const int column           = item / (s.range[2] + 1);
    const int l                = item % (s.range[2] + 1);
    double totals[BlockTotals] = {};
    if (column < s.columns && l <= sums.columns[s.firstColumn + column].last)
    {
        Weigher<Real>(sums, s, static_cast<int>(blockIdx.y))
                .weigh(sums.columns[s.firstColumn + column], l, totals);
    }
    const size_t at =
            (static_cast<size_t>(s.firstBlock[OfWeights]) + block.part) * gridDim.y + blockIdx.y;
    for (int k = 0; k < BlockTotals; k++)
    {
        const double all = blockSum(totals[k]);
        if (threadIdx.x == 0)
        {
            sums.waveTotals[at * BlockTotals + k] = all;
        }
    }
}

} // namespace

template<class Real>
void findPhases(const BatchSums<Real>& sums,
                const BlockPart* blocks,
                int count,
                cudaStream_t stream)
{
    if (count > 0)
    {
        findPhasesOf<Real><<<dim3(count, 3), c_batchThreads, 0, stream>>>(sums, blocks);
        checkLaunch("phases of waves");
    }
}

template<class Real>
void sumFactors(const BatchSums<Real>& sums,
                const BlockPart* blocks,
                int count,
                cudaStream_t stream)
{
    if (count > 0)
    {
        const dim3 grid(count, sums.particles.channels, sums.sets());
        sumFactorsOf<Real><<<grid, c_batchThreads, 0, stream>>>(sums, blocks);
        checkLaunch("structure factors");
    }
}

template<class Real>
void weighFactors(const BatchSums<Real>& sums,
                  const BlockPart* blocks,
                  int count,
                  cudaStream_t stream)
{
    if (count > 0)
    {
        const dim3 grid(count, sums.particles.channels);
        weighFactorsOf<Real><<<grid, c_batchThreads, 0, stream>>>(sums, blocks);
        checkLaunch("weights of waves");
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template decltype(findPhases<Real>) findPhases<Real>;                                          \
    template decltype(sumFactors<Real>) sumFactors<Real>;                                          \
    template decltype(weighFactors<Real>) weighFactors<Real>;
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
