/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The pairs of each particle: those within the cut-off are put together, then computed.
 *
 *  A warp takes one target after the other. Its lanes look for tiles within the cut-off of the target and
 *  of its images, then for particles in them. As soon as there are as many as lanes, each lane computes
 *  a pair. Targets see each of their pairs, so that no sum has terms of two warps.
 */
#include <cfloat>

#include "batch/places.h"
#include "farfield/farfield_batch.h"

#include "batches/batch_warp.cuh"
#include "batches/pair_values.cuh"
#include "runtime/device.h"

namespace farfield
{
namespace
{

//! Pairs that wait for each other, of a warp.
template<class Real>
struct PairBuffer
{
    Real distance[3][2 * c_tile]; //!< target less source, nm
    int source[2 * c_tile];       //!< place in the order
};

//! A target, and what a lane has of its sums. \tparam Most  channels at most
template<class Real, int Most, bool Tangent>
class TargetSums
{
public:
    __device__ __forceinline__ TargetSums(const BatchSums<Real>& sums,
                                          const SystemSums& system,
                                          int target) :
        sums_(sums),
        system_(system), particle_(particleAt(target)),
        splitting_(static_cast<Real>(system.splitting))
    {
        for (int k = 0; k < 9 && Tangent; k++)
        {
            strain_[k] = static_cast<Real>(system.strain[k]);
        }
        for (int c = 0; c < channels(); c++)
        {
            potential_[c] = 0;
        }
    }

    //! A pair. \param[in] distance  nm
    __device__ __forceinline__ void add(const Real* distance,
                                        int source,
                                        const ScaledErfc<Real>& constant)
    {
        const Real square = fma(
                distance[0], distance[0], fma(distance[1], distance[1], distance[2] * distance[2]));
        nearest_        = min(nearest_, square);
        const size_t j  = particleAt(source);
        const auto pair = pairValues<Tangent>(square, splitting_, constant);
        if (Tangent)
        {
            addTangent(distance, j, pair);
            return;
        }
        Real weight = 0;
        for (int c = 0; c < channels(); c++)
        {
            const Real q  = charge(j, c);
            potential_[c] = fma(q, pair.value, potential_[c]);
            weight        = fma(charge(particle_, c), q, weight);
        }
        const Real f = weight * pair.slope;
        Real force[3];
        for (int k = 0; k < 3; k++)
        {
            force[k] = f * distance[k];
            force_[k] += force[k];
        }
        if (sums_.virials)
        {
            const int first[] = { 0, 1, 2, 0, 0, 1 }, second[] = { 0, 1, 2, 1, 2, 2 };
#pragma unroll
            for (int m = 0; m < 6; m++)
            {
                virial_[m] = fma(force[first[m]], distance[second[m]], virial_[m]);
            }
        }
    }

    //! Adds up the lanes. \param[in,out] totals  of the block, [BlockTotals]
    __device__ __forceinline__ void finish(int lane, double* totals)
    {
        const double k = sums_.coulombConstant;
        for (int d = 0; d < 3; d++)
        {
            const double force = k * warpSum(static_cast<double>(force_[d]));
            if (lane == 0)
            {
                sums_.forces[system_.isDetour][3 * particle_ + d] = force;
            }
        }
        for (int c = 0; c < channels(); c++)
        {
            const double potential = k * warpSum(static_cast<double>(potential_[c]));
            totals[TotalEnergy] += 0.5 * static_cast<double>(charge(particle_, c)) * potential;
            if (lane == 0)
            {
                sums_.potentials[system_.isDetour][particle_ * channels() + c] = potential;
            }
        }
        if (sums_.virials)
        {
#pragma unroll
            for (int m = 0; m < 6; m++)
            {
                // each pair is at both of its particles
                totals[TotalVirial + m] -= 0.25 * k * warpSum(static_cast<double>(virial_[m]));
            }
        }
        const bool touches = static_cast<double>(warpLeast(nearest_)) <= system_.contact;
        totals[TotalContacts] += touches ? 1 : 0;
        if (lane == 0 && system_.isDetour == 0)
        {
            sums_.contacts[particle_] = touches ? 1 : 0;
        }
    }

private:
    __device__ __forceinline__ int channels() const
    {
        return Most == 1 ? 1 : sums_.particles.channels;
    }
    __device__ __forceinline__ size_t particleAt(int slot) const
    {
        return static_cast<size_t>(system_.first) + sums_.particles.order[system_.first + slot];
    }
    __device__ __forceinline__ Real charge(size_t particle, int c) const
    {
        return sums_.particles.q[particle * channels() + c];
    }
    __device__ __forceinline__ Real change(size_t particle, int c) const
    {
        return sums_.changes.q[particle * channels() + c];
    }

    //! See tangentsOf() of the CPU.
    __device__ __forceinline__ void addTangent(const Real* r,
                                               size_t j,
                                               const PairValues<Real>& pair)
    {
        Real dr[3], along = 0;
        for (int k = 0; k < 3; k++)
        {
            dr[k] = sums_.changes.moves[3 * particle_ + k] - sums_.changes.moves[3 * j + k];
            for (int m = 0; m < 3; m++)
            {
                dr[k] = fma(r[m], strain_[3 * m + k], dr[k]);
            }
            along = fma(r[k], dr[k], along);
        }
        const Real ofCharge = pair.slope * along;
        Real weight = 0, dWeight = 0;
        for (int c = 0; c < channels(); c++)
        {
            const Real q = charge(j, c), dq = change(j, c);
            weight        = fma(charge(particle_, c), q, weight);
            dWeight       = fma(change(particle_, c), q, dWeight);
            dWeight       = fma(charge(particle_, c), dq, dWeight);
            potential_[c] = fma(dq, pair.value, fma(-q, ofCharge, potential_[c]));
        }
        const Real across = weight * pair.slope;
        const Real radial = fma(-weight * pair.third, along, dWeight * pair.slope);
        Real force[3];
        for (int k = 0; k < 3; k++)
        {
            force[k] = fma(radial, r[k], across * dr[k]);
            force_[k] += force[k];
        }
        if (sums_.virials)
        {
            const int first[] = { 0, 1, 2, 0, 0, 1 }, second[] = { 0, 1, 2, 1, 2, 2 };
#pragma unroll
            for (int m = 0; m < 6; m++)
            {
                const int a = first[m], b = second[m];
                virial_[m] = fma(force[a], r[b], fma(across * r[a], dr[b], virial_[m]));
            }
        }
    }

    const BatchSums<Real>& sums_;
    const SystemSums& system_;
    size_t particle_;
    Real splitting_;
    Real strain_[9]; //!< of tangents
    Real potential_[Most];
    Real force_[3] = { 0, 0, 0 }, virial_[6] = { 0, 0, 0, 0, 0, 0 };
    Real nearest_ = sizeof(Real) == 4 ? Real(FLT_MAX) : Real(DBL_MAX);
};

//! Images of a target between which and the box a distance may be within the cut-off.
struct ImageRange
{
    int first[3] = { 0, 0, 0 }, last[3] = { 0, 0, 0 };
};

//! Gives the sums of a target its pairs, to as many lanes at once as there are.
template<class Real, class Place>
class PairSearch
{
public:
    __device__ __forceinline__ PairSearch(const BatchSums<Real>& sums,
                                          const SystemSums& system,
                                          const ScaledErfc<Real>& constant,
                                          PairBuffer<Real>* buffer,
                                          int lane) :
        system_(system),
        constant_(constant), places_(reinterpret_cast<const Place*>(sums.places)
                                     + 3 * c_tile * static_cast<size_t>(system.firstTile)),
        tiles_(reinterpret_cast<const Place*>(sums.tiles)
               + 6 * static_cast<size_t>(system.firstTile)),
        buffer_(buffer), lane_(lane), n_(system.n), numTiles_(system.tiles),
        unit_(static_cast<Real>(system.unit))
    {
        const double reach = system.cutoff / system.unit;
        square_            = system.hasImages ? static_cast<Real>(reach * reach)
                                              : (sizeof(Real) == 4 ? Real(FLT_MAX) : Real(DBL_MAX));
    }

    template<class Sums>
    __device__ __forceinline__ void find(int target, const ImageRange& images, Sums* own)
    {
        int waiting = 0;
        for (int a = images.first[0]; a <= images.last[0]; a++)
        {
            for (int b = images.first[1]; b <= images.last[1]; b++)
            {
                for (int c = images.first[2]; c <= images.last[2]; c++)
                {
                    Place at[3];
                    for (int d = 0; d < 3; d++)
                    {
                        const double shift = a * system_.vectors[d] + b * system_.vectors[3 + d]
                                             + c * system_.vectors[6 + d];
                        at[d] = places_[d * n_ + target] - placeAt<Place>(shift);
                    }
                    const bool isHome = a == 0 && b == 0 && c == 0;
                    waiting           = findAt(at, isHome ? target : -1, waiting, own);
                }
            }
        }
        if (lane_ < waiting)
        {
            computeAt(lane_, own);
        }
        __syncwarp();
    }

private:
    //! Partners of an image. \returns how many pairs wait
    template<class Sums>
    __device__ __forceinline__ int findAt(const Place* at, int self, int waiting, Sums* own)
    {
        for (int tile = 0; tile < numTiles_; tile += c_tile)
        {
            const bool mayBeNear = tile + lane_ < numTiles_ && isNearTile(at, tile + lane_);
            unsigned int near    = __ballot_sync(c_allLanes, mayBeNear);
            while (near != 0)
            {
                const int slot = (tile + __ffs(static_cast<int>(near)) - 1) * c_tile + lane_;
                near &= near - 1;
                waiting = look(at, slot, slot < n_ && slot != self, waiting, own);
            }
        }
        return waiting;
    }

    //! Whether a particle of a tile may be within the cut-off.
    __device__ __forceinline__ bool isNearTile(const Place* at, int tile) const
    {
        Real square = 0;
        for (int d = 0; d < 3; d++)
        {
            const Place below = tiles_[6 * tile + d] - at[d];
            const Place above = at[d] - tiles_[6 * tile + 3 + d];
            const Place most  = below > above ? below : above;
            const Real gap    = most > 0 ? static_cast<Real>(most) : Real(0);
            square            = fma(gap, gap, square);
        }
        // rounding must not part a pair: each of its particles has to see it
        return square <= Real(1.00001) * square_;
    }

    //! Tests a source of each lane; if there are enough pairs, each lane computes one.
    template<class Sums>
    __device__ __forceinline__ int
    look(const Place* at, int slot, bool isSource, int waiting, Sums* own)
    {
        Real distance[3] = { 0, 0, 0 }, square = 0;
        for (int d = 0; d < 3 && isSource; d++)
        {
            distance[d] = static_cast<Real>(at[d] - places_[d * n_ + slot]);
        }
        square = fma(
                distance[0], distance[0], fma(distance[1], distance[1], distance[2] * distance[2]));
        const bool isNear       = isSource && square < square_;
        const unsigned int near = __ballot_sync(c_allLanes, isNear);
        if (near == 0)
        {
            return waiting;
        }
        if (isNear)
        {
            const int to = waiting + __popc(near & ((1U << lane_) - 1));
            for (int d = 0; d < 3; d++)
            {
                buffer_->distance[d][to] = unit_ * distance[d];
            }
            buffer_->source[to] = slot;
        }
        waiting += __popc(near);
        __syncwarp();
        if (waiting >= c_tile)
        {
            computeAt(lane_, own);
            __syncwarp();
            waiting -= c_tile;
            if (lane_ < waiting)
            {
                for (int d = 0; d < 3; d++)
                {
                    buffer_->distance[d][lane_] = buffer_->distance[d][c_tile + lane_];
                }
                buffer_->source[lane_] = buffer_->source[c_tile + lane_];
            }
            __syncwarp();
        }
        return waiting;
    }

    template<class Sums>
    __device__ __forceinline__ void computeAt(int place, Sums* own)
    {
        const Real distance[] = { buffer_->distance[0][place],
                                  buffer_->distance[1][place],
                                  buffer_->distance[2][place] };
        own->add(distance, buffer_->source[place], constant_);
    }

    const SystemSums& system_;
    const ScaledErfc<Real>& constant_;
    const Place* places_;
    const Place* tiles_;
    PairBuffer<Real>* buffer_;
    int lane_, n_, numTiles_;
    Real unit_, square_;
};

template<class Real>
__device__ ImageRange imagesOf(const BatchSums<Real>& sums, const SystemSums& s, int target)
{
    ImageRange images;
    if (s.hasImages)
    {
        const size_t i = static_cast<size_t>(s.first) + sums.particles.order[s.first + target];
        for (int k = 0; k < 3; k++)
        {
            const double f  = sums.particles.f[3 * i + k];
            images.first[k] = static_cast<int>(ceil(f - s.margin[k] - 1));
            images.last[k]  = static_cast<int>(floor(f + s.margin[k]));
        }
    }
    return images;
}

template<class Real, class Place, int Most, bool Tangent>
__global__ void __launch_bounds__(c_pairWarps* c_tile)
        sumPairsOf(BatchSums<Real> sums, const BlockPart* blocks, ScaledErfc<Real> constant)
{
    __shared__ PairBuffer<Real> buffers[c_pairWarps];
    __shared__ double ofWarps[c_pairWarps][BlockTotals];
    const BlockPart block = blocks[blockIdx.x];
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s        = sums.systems[block.system];
    const int warp             = static_cast<int>(threadIdx.x) / c_tile;
    const int lane             = static_cast<int>(threadIdx.x) % c_tile;
    double totals[BlockTotals] = {};
    PairSearch<Real, Place> search(sums, s, constant, &buffers[warp], lane);
    const int first = (block.part * c_pairWarps + warp) * c_targetsOfWarp;
    for (int target = first; target < first + c_targetsOfWarp && target < s.n; target++)
    {
        TargetSums<Real, Most, Tangent> own(sums, s, target);
        search.find(target, imagesOf(sums, s, target), &own);
        own.finish(lane, totals);
    }
#pragma unroll
    for (int k = 0; k < BlockTotals; k++)
    {
        if (lane == 0)
        {
            ofWarps[warp][k] = totals[k];
        }
    }
    __syncthreads();
    if (threadIdx.x < BlockTotals)
    {
        double all = 0;
        for (int w = 0; w < c_pairWarps; w++)
        {
            all += ofWarps[w][threadIdx.x];
        }
        const size_t at = static_cast<size_t>(s.firstBlock[OfTargets]) + block.part;
        sums.pairTotals[at * BlockTotals + threadIdx.x] = all;
    }
}

template<class Real, class Place, int Most>
void launch(const BatchSums<Real>& sums,
            const BlockPart* blocks,
            int count,
            const ScaledErfc<Real>& constant,
            cudaStream_t stream)
{
    const auto kernel = sums.tangents ? sumPairsOf<Real, Place, Most, true>
                                      : sumPairsOf<Real, Place, Most, false>;
    kernel<<<count, c_pairWarps * c_tile, 0, stream>>>(sums, blocks, constant);
    checkLaunch("pairs of systems");
}

} // namespace

template<class Real>
void sumPairs(const BatchSums<Real>& sums,
              bool hasImages,
              const BlockPart* blocks,
              int count,
              const ScaledErfc<Real>& constant,
              cudaStream_t stream)
{
    if (count == 0)
    {
        return;
    }
    using Image      = typename PlaceOfImage<Real>::Type;
    const bool isOne = sums.particles.channels == 1;
    const auto chosen =
            hasImages ? (isOne ? launch<Real, Image, 1> : launch<Real, Image, c_mostChannels>)
                      : (isOne ? launch<Real, Real, 1> : launch<Real, Real, c_mostChannels>);
    chosen(sums, blocks, count, constant, stream);
}

template decltype(sumPairs<float>) sumPairs<float>;
template decltype(sumPairs<double>) sumPairs<double>;

} // namespace farfield
