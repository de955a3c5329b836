/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Structure factors and weights of waves, see batch/wave_sums.h.
 */
#include <algorithm>
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
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s = sums.systems[block.system];
    const int axis      = static_cast<int>(blockIdx.y);
    const int i         = block.part * c_batchThreads + static_cast<int>(threadIdx.x);
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

//! Particles whose phases a block has in shared memory, and the room for a phase of them.
template<class Real>
constexpr int c_staged = 128 / static_cast<int>(sizeof(Real));
template<class Real>
constexpr size_t c_stagedBytes = (c_staged<Real> + 1) * sizeof(Phase<Real>);
//! Of shared memory for phases; more than 48 KiB in all need permission.
constexpr size_t c_mostShared = 47 << 10;

//! Waves (h, k, l) to (h, k, l + c_wavesOfTile - 1) of a thread, and their structure factors.
template<class Real>
class WaveTile
{
public:
    //! Those of a number; beyond the last one: the last one.
    __device__ __forceinline__ WaveTile(const BatchSums<Real>& sums,
                                        const SystemSums& s,
                                        int number)
    {
        const int wave = min(number * c_wavesOfTile, s.waveCount - c_wavesOfTile);
        int column     = 0;
        for (int beyond = s.columns; column + 1 < beyond;)
        {
            const int middle = (column + beyond) / 2;
            (sums.columns[s.firstColumn + middle].first <= wave ? column : beyond) = middle;
        }
        const WaveColumn w = sums.columns[s.firstColumn + column];
        x_                 = numberOfPhase(s, 0, w.h);
        y_                 = numberOfPhase(s, 1, w.k);
        for (int m = 0; m < c_wavesOfTile; m++)
        {
            // beyond the last one is nothing to add up
            z_[m] = numberOfPhase(s, 2, min(wave - w.first + m, w.last));
        }
    }

    //! Adds a particle. \param[in] phase  of a number of all axes
    template<class PhaseAt>
    __device__ __forceinline__ void add(Real q, const PhaseAt& phase)
    {
        const Phase<Real> x = phase(x_), y = phase(y_);
        const Real cx = q * x.c, sx = q * x.s;
        const Real products[] = { cx * y.c, sx * y.c, cx * y.s, sx * y.s };
#pragma unroll
        for (int m = 0; m < c_wavesOfTile; m++)
        {
            const Phase<Real> z = phase(z_[m]);
#pragma unroll
            for (int k = 0; k < 4; k++)
            {
                Real* const to = sums_ + m * WaveProducts + k;
                to[0]          = fma(products[k], z.c, to[0]);
                to[4]          = fma(products[k], z.s, to[4]);
            }
        }
    }

    __device__ __forceinline__ void write(Real* to) const
    {
#pragma unroll
        for (int k = 0; k < c_wavesOfTile * WaveProducts; k++)
        {
            to[k] = sums_[k];
        }
    }

private:
    int x_, y_, z_[c_wavesOfTile]; //!< numbers of phases
    Real sums_[c_wavesOfTile * WaveProducts] = {};
};

/*! \brief A thread takes a tile of waves, a block c_factorThreads of them and a chunk of particles.
 *
 *  Channels and sets are rows of blocks.
 *  \param[in] room  for phases of a particle; a system that has more reads them where they are */
template<class Real>
__global__ void __launch_bounds__(c_factorThreads)
        sumFactorsOf(BatchSums<Real> sums, const BlockPart* blocks, int room)
{
    extern __shared__ double2 shared[];
    __shared__ Real charges[c_staged<Real>];
    auto* const staged    = reinterpret_cast<Phase<Real>*>(shared);
    const BlockPart block = blocks[blockIdx.x];
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s = sums.systems[block.system];
    const int channel = static_cast<int>(blockIdx.y), set = static_cast<int>(blockIdx.z);
    const int thread = static_cast<int>(threadIdx.x);
    const int chunk  = block.part % s.chunks;
    const int number = block.part / s.chunks * c_factorThreads + thread;
    const int phases = phasesOfParticle(s);
    WaveTile<Real> tile(sums, s, number);
    const auto charge = [&](int i)
    { return chargeOf(sums, static_cast<size_t>(s.first) + i, channel, set); };
    const Real* const all = phasesOf(sums.phases, s, 0, 0);
    const auto phaseOf    = [&](int k, int i) -> Phase<Real>
    {
        const Real* const from = all + 2 * static_cast<size_t>(k) * s.n + i;
        return { from[0], from[s.n] };
    };
    const int end = min(s.n, (chunk + 1) * c_chunk);
    if (phases > room)
    {
        for (int i = chunk * c_chunk; i < end; i++)
        {
            tile.add(charge(i), [&](int k) { return phaseOf(k, i); });
        }
    }
    else
    {
        constexpr int c_most = c_staged<Real>, c_stride = c_most + 1;
        for (int first = chunk * c_chunk; first < end; first += c_most)
        {
            const int count = min(end - first, c_most);
            __syncthreads();
            if (thread < count)
            {
                charges[thread] = charge(first + thread);
            }
            for (int k = thread; k < phases * c_most; k += c_factorThreads)
            {
                staged[k / c_most * c_stride + k % c_most] =
                        phaseOf(k / c_most, first + min(k % c_most, count - 1));
            }
            __syncthreads();
#pragma unroll 4
            for (int i = 0; i < count; i++)
            {
                tile.add(charges[i], [&](int k) { return staged[k * c_stride + i]; });
            }
        }
    }
    if (number < s.waveCount / c_wavesOfTile)
    {
        Real* const to =
                factorsOf(sums.sums, s, sums.tangents ? c_tangentSets : 1, channel, set, chunk);
        tile.write(to + static_cast<size_t>(number) * c_wavesOfTile * WaveProducts);
    }
}

//! The waves (h, +-k, +-l) of a thread, from structure factors to weights.
template<class Real, bool Tangents>
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
        for (int set = 0; set < c_sets; set++)
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
            if (Tangents)
            {
                at(1, 0, column, l)[k] = static_cast<Real>(tangents_[k]);
            }
        }
    }

private:
    static constexpr int c_sets = Tangents ? c_tangentSets : 1;

    __device__ Real* at(int set, int chunk, const WaveColumn& column, int l) const
    {
        return factorsOf(sums_.sums, system_, c_sets, channel_, set, chunk)
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
        StructureFactor s[c_sets];
        s[0]               = structureFactor(products_[0], signK, signL);
        const double twice = 2 * wave.weight;
        addWave(twice, s[0], signK, signL, weights_);
        if constexpr (!Tangents)
        {
            const double energy = energyOf(wave, s[0]);
            totals[TotalEnergy] += energy;
            addWaveVirial(wave, energy, inverse_, totals + TotalVirial);
        }
        else
        {
            for (int set = 1; set < c_sets; set++)
            {
                s[set] = structureFactor(products_[set], signK, signL);
            }
            const StrainedWave strained = strainedWave(wave, system_.strain, inverse_);
            const StructureFactor moved = movedFactor(s, numbers);
            addVirialTangent(wave, strained, s[0], moved, inverse_, totals + TotalVirial);
            addWave(twice * strained.rho, s[0], signK, signL, tangents_);
            addWave(twice, moved, signK, signL, tangents_);
        }
    }

    const BatchSums<Real>& sums_;
    const SystemSums& system_;
    int channel_;
    double inverse_; //!< 1 / 4a^2, nm^2
    double products_[c_sets][WaveProducts];
    double weights_[WaveProducts] = {}, tangents_[WaveProducts] = {};
};

//! A thread a (h, k, l); channels are rows.
template<class Real, bool Tangents>
__global__ void weighFactorsOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s        = sums.systems[block.system];
    const int item             = block.part * c_batchThreads + static_cast<int>(threadIdx.x);
    const int column           = item / (s.range[2] + 1);
    const int l                = item % (s.range[2] + 1);
    double totals[BlockTotals] = {};
    if (column < s.columns && l <= sums.columns[s.firstColumn + column].last)
    {
        Weigher<Real, Tangents>(sums, s, static_cast<int>(blockIdx.y))
                .weigh(sums.columns[s.firstColumn + column], l, totals);
    }
    const size_t at =
            (static_cast<size_t>(s.firstBlock[OfWeights]) + block.part) * gridDim.y + blockIdx.y;
    const bool hasVirial = sums.virials || Tangents;
    for (int k = 0; k < BlockTotals; k++)
    {
        const bool isThere = k == TotalEnergy || (hasVirial && k < TotalContacts);
        const double all   = isThere ? blockSum(totals[k]) : 0;
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
                int phases,
                cudaStream_t stream)
{
    if (count > 0)
    {
        const dim3 grid(count, sums.particles.channels, sums.sets());
        const size_t room =
                std::min(static_cast<size_t>(phases), c_mostShared / c_stagedBytes<Real>);
        sumFactorsOf<Real><<<grid, c_factorThreads, room * c_stagedBytes<Real>, stream>>>(
                sums, blocks, static_cast<int>(room));
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
        const auto kernel =
                sums.tangents ? weighFactorsOf<Real, true> : weighFactorsOf<Real, false>;
        kernel<<<grid, c_batchThreads, 0, stream>>>(sums, blocks);
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
