/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/places.h"

#include "batches/batch_warp.cuh"
#include "runtime/device.h"

namespace farfield
{
namespace
{

//! A warp a tile.
template<class Real, class Place>
__global__ void placeParticlesOf(BatchSums<Real> sums, const BlockPart* blocks)
{
    const BlockPart block = blocks[blockIdx.x];
    if (block.system < 0)
    {
        return;
    }
    const SystemSums& s = sums.systems[block.system];
    const int slot      = block.part * c_batchThreads + static_cast<int>(threadIdx.x);
    const int lane      = static_cast<int>(threadIdx.x) % c_tile;
    if (slot - lane >= s.n)
    {
        return;
    }
    auto* const places =
            reinterpret_cast<Place*>(sums.places) + 3 * c_tile * static_cast<size_t>(s.firstTile);
    auto* const tile = reinterpret_cast<Place*>(sums.tiles)
                       + 6 * static_cast<size_t>(s.firstTile + slot / c_tile);
    // behind the last particle that of the first lane
    const bool isThere = slot < s.n;
    const size_t i     = static_cast<size_t>(s.first)
                     + sums.particles.order[s.first + (isThere ? slot : slot - lane)];
    double u[3] = { 0, 0, 0 };
    for (int k = 0; k < 3 && s.hasImages; k++)
    {
        u[k] = sums.particles.f[3 * i + k] - 0.5;
    }
    for (int d = 0; d < 3; d++)
    {
        const double r   = s.hasImages ? u[0] * s.vectors[d] + u[1] * s.vectors[3 + d]
                                               + u[2] * s.vectors[6 + d]
                                       : static_cast<double>(sums.particles.x[3 * i + d]);
        const auto place = placeAt<Place>(r);
        if (isThere)
        {
            places[static_cast<size_t>(d) * s.n + slot] = place;
        }
        const Place least = warpLeast(place), most = -warpLeast(static_cast<Place>(-place));
        if (lane == 0)
        {
            tile[d]     = least;
            tile[3 + d] = most;
        }
    }
}

} // namespace

template<class Real>
void placeParticles(const BatchSums<Real>& sums,
                    bool hasImages,
                    const BlockPart* blocks,
                    int count,
                    cudaStream_t stream)
{
    if (count == 0)
    {
        return;
    }
    const auto kernel = hasImages ? placeParticlesOf<Real, typename PlaceOfImage<Real>::Type>
                                  : placeParticlesOf<Real, Real>;
    kernel<<<count, c_batchThreads, 0, stream>>>(sums, blocks);
    checkLaunch("placing particles");
}

template decltype(placeParticles<float>) placeParticles<float>;
template decltype(placeParticles<double>) placeParticles<double>;

} // namespace farfield
