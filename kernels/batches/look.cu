/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <cub/device/device_radix_sort.cuh>

#include "batch/places.h"

#include "batches/batch_warp.cuh"
#include "batches/device_plan.h"
#include "evaluation/charge_limits.h"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

//! x matrix, of rows.
__device__ __forceinline__ void multiply(const double* x, const double* matrix, double* to)
{
    for (int k = 0; k < 3; k++)
    {
        to[k] = x[0] * matrix[k] + x[1] * matrix[3 + k] + x[2] * matrix[6 + k];
    }
}

//! The cell of fractional coordinates. Those that follow each other are neighbours.
__device__ __forceinline__ int cellOf(const SystemInBox& s, const double* f)
{
    const int* const cells = s.cells;
    int at[3];
    for (int k = 0; k < 3; k++)
    {
        // particles of a slab are about the middle
        const double in = k == 2 && s.fullness < 1 ? (f[k] - 0.5) / s.fullness + 0.5 : f[k];
        at[k]           = max(0, min(cells[k] - 1, static_cast<int>(in * cells[k])));
    }
    const int row = at[0] * cells[1] + (at[0] % 2 == 0 ? at[1] : cells[1] - 1 - at[1]);
    return row * cells[2] + (row % 2 == 0 ? at[2] : cells[2] - 1 - at[2]);
}

//! Of a block, see EwaldSystem::lookAtNearForces(). \returns the middle one, in the first thread
template<class Real>
__device__ double nearForceOf(const SystemInBox& s,
                              const BatchParticles<Real>& particles,
                              const NearForces& near)
{
    __shared__ float forces[c_samples];
    // a warp has some samples, side by side
    constexpr int c_each = c_samples * c_tile / c_batchThreads;
    const int channels   = particles.channels;
    const int lane       = static_cast<int>(threadIdx.x) % c_tile;
    const int first      = static_cast<int>(threadIdx.x) / c_tile * c_each;
    const int last       = samplesOf(s.n) - 1;
    size_t targets[c_each];
    float force[c_each][3] = {};
    bool charged[c_each]   = {};
#pragma unroll
    for (int k = 0; k < c_each; k++)
    {
        targets[k] = static_cast<size_t>(s.first) + particleOfSample(min(first + k, last), s.n);
    }
    __syncthreads(); // fractional coordinates of others
    for (int j = lane; j < s.n; j += c_tile)
    {
        const size_t at = static_cast<size_t>(s.first) + j;
#pragma unroll
        for (int k = 0; k < c_each; k++)
        {
            float charges = 0;
            for (int c = 0; c < channels; c++)
            {
                const auto own = static_cast<float>(particles.q[targets[k] * channels + c]);
                charged[k]     = charged[k] || own != 0;
                charges += own * static_cast<float>(particles.q[at * channels + c]);
            }
            near.add(particles.f + 3 * targets[k], particles.f + 3 * at, charges, force[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < c_each; k++)
    {
        float square = 0;
        for (float& component : force[k])
        {
            component = static_cast<float>(warpSum(component));
            square += component * component;
        }
        const bool isCharged = __any_sync(c_allLanes, charged[k]);
        if (lane == 0)
        {
            forces[first + k] = isCharged ? sqrtf(square) : -1;
        }
    }
    __syncthreads();
    return threadIdx.x == 0 ? middleOf(forces, last + 1) : 0;
}

//! A block a system.
template<class Real>
__global__ void lookAtSystem(SystemArrays systems,
                             BatchParticles<Real> particles,
                             double smearing,
                             unsigned int* keys,
                             bool refuses)
{
    if (systems.status->badInput != c_noSystem)
    {
        return;
    }
    const SystemInBox& s = systems.inBox[blockIdx.x];
    const bool hasImages = systems.hasImages;
    const int channels   = particles.channels;
    __shared__ int least[3];
    if (threadIdx.x < 3)
    {
        least[threadIdx.x] = s.n;
    }
    __syncthreads();
    int charged = 0;
    for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
    {
        const size_t at      = static_cast<size_t>(s.first) + i;
        const double place[] = { static_cast<double>(particles.x[3 * at]),
                                 static_cast<double>(particles.x[3 * at + 1]),
                                 static_cast<double>(particles.x[3 * at + 2]) };
        if (!isfinite(place[0]) || !isfinite(place[1]) || !isfinite(place[2]))
        {
            atomicMin(&least[0], i);
        }
        bool isCharged = false, isLegal = true;
        for (int c = 0; c < channels; c++)
        {
            const Real q = particles.q[at * channels + c];
            isCharged    = isCharged || q != 0;
            isLegal      = isLegal && isLegalCharge(q);
        }
        charged += isCharged ? 1 : 0;
        if (!isLegal)
        {
            atomicMin(&least[1], i);
        }
        particles.order[at] = i;
        if (!hasImages)
        {
            continue;
        }
        double f[3];
        multiply(place, s.inverse, f);
        f[2] += s.shift;
        for (int k = 0; k < 3; k++)
        {
            // written so that NaN fails
            if (!(fabs(f[k]) < c_farthest))
            {
                atomicMin(&least[2], i);
                f[k] = 0;
            }
            f[k] -= floor(f[k]);
            particles.f[3 * at + k] = f[k];
        }
        keys[at] = static_cast<unsigned int>(s.firstCell + cellOf(s, f));
    }
    const double all  = blockSum(charged);
    double allSquared = 0;
    for (int c = 0; c < channels; c++)
    {
        double net = 0, squared = 0;
        for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
        {
            const auto q = static_cast<double>(
                    particles.q[(static_cast<size_t>(s.first) + i) * channels + c]);
            net += q;
            squared += q * q;
        }
        net     = blockSum(net);
        squared = blockSum(squared);
        if (threadIdx.x == 0)
        {
            const size_t at       = static_cast<size_t>(blockIdx.x) * channels + c;
            particles.net[at]     = net;
            particles.squared[at] = squared;
            allSquared += squared;
        }
    }
    const double volume = hasImages ? systems.boxes[blockIdx.x].volume * s.fullness : 0;
    double nearForce    = 0;
    if (hasImages && s.n > 0)
    {
        const NearForces near(systems.boxes[blockIdx.x].vectors, volume, s.n, smearing);
        nearForce = nearForceOf(s, particles, near);
    }
    if (threadIdx.x == 0)
    {
        const int ofCharges           = static_cast<int>(all);
        systems.findings[blockIdx.x]  = { least[0], least[1], least[2] };
        systems.traits[blockIdx.x]    = { ofCharges, allSquared, volume, s.fullness, nearForce };
        systems.isCharged[blockIdx.x] = ofCharges > 0 ? 1 : 0;
        if (ofCharges == 0 && s.n > 0)
        {
            atomicAdd(&systems.status->neutral, 1);
        }
        if (refuses && min(least[0], min(least[1], least[2])) < s.n)
        {
            atomicMin(&systems.status->badParticle, static_cast<int>(blockIdx.x));
        }
    }
}

//! A block a system.
template<class Real>
__global__ void takeDirectionOfSystem(const SystemInBox* systems,
                                      bool hasImages,
                                      BatchParticles<Real> particles,
                                      BatchChanges<Real> changes)
{
    const SystemInBox& s = systems[blockIdx.x];
    const int channels   = particles.channels;
    for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
    {
        const size_t at = 3 * (static_cast<size_t>(s.first) + i);
        double move[3]  = { 0, 0, 0 };
        for (int k = 0; k < 3 && changes.x != nullptr; k++)
        {
            move[k] = static_cast<double>(changes.x[at + k]);
        }
        if (hasImages)
        {
            const double place[] = { static_cast<double>(particles.x[at]),
                                     static_cast<double>(particles.x[at + 1]),
                                     static_cast<double>(particles.x[at + 2]) };
            double strained[3];
            multiply(place, s.strain, strained);
            for (int k = 0; k < 3; k++)
            {
                move[k] -= strained[k];
            }
            multiply(move, s.inverse, changes.fractions + at);
        }
        for (int k = 0; k < 3; k++)
        {
            changes.moves[at + k] = static_cast<Real>(move[k]);
        }
    }
    for (int c = 0; c < channels; c++)
    {
        double net = 0;
        for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
        {
            net += static_cast<double>(
                    changes.q[(static_cast<size_t>(s.first) + i) * channels + c]);
        }
        net = blockSum(net);
        if (threadIdx.x == 0)
        {
            changes.net[static_cast<size_t>(blockIdx.x) * channels + c] = net;
        }
    }
}

//! A block a system.
__global__ void rankInSystem(const SystemInBox* systems, const unsigned int* keys, int* order)
{
    __shared__ unsigned int all[c_mostRanked];
    const SystemInBox& s = systems[blockIdx.x];
    if (s.n > c_mostRanked)
    {
        return; // in the order that they are given in
    }
    for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
    {
        all[i] = keys[s.first + i];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
    {
        const unsigned int own = all[i];
        int rank               = 0;
        for (int j = 0; j < s.n; j++)
        {
            rank += all[j] < own || (all[j] == own && j < i) ? 1 : 0;
        }
        order[s.first + rank] = i;
    }
}

} // namespace

template<class Real>
void lookAt(const SystemArrays& systems,
            const BatchParticles<Real>& particles,
            double smearing,
            unsigned int* keys,
            bool refuses,
            cudaStream_t stream)
{
    if (systems.count > 0)
    {
        lookAtSystem<Real><<<systems.count, c_batchThreads, 0, stream>>>(
                systems, particles, smearing, keys, refuses);
        checkLaunch("looking at systems");
    }
}

template<class Real>
void takeDirection(const SystemInBox* systems,
                   int count,
                   bool hasImages,
                   const BatchParticles<Real>& particles,
                   const BatchChanges<Real>& changes,
                   cudaStream_t stream)
{
    if (count > 0)
    {
        takeDirectionOfSystem<Real>
                <<<count, c_batchThreads, 0, stream>>>(systems, hasImages, particles, changes);
        checkLaunch("taking a direction");
    }
}

void rankByCell(const SystemInBox* systems,
                int count,
                const unsigned int* keys,
                int* order,
                cudaStream_t stream)
{
    rankInSystem<<<count, c_batchThreads, 0, stream>>>(systems, keys, order);
    checkLaunch("sorting particles");
}

size_t sortByCell(const unsigned int* keys,
                  unsigned int* sortedKeys,
                  const int* order,
                  int* sortedOrder,
                  int n,
                  int cells,
                  void* space,
                  size_t bytes,
                  cudaStream_t stream)
{
    int bits = 1;
    while (bits < 31 && (1 << bits) < cells)
    {
        bits++;
    }
    check(cub::DeviceRadixSort::SortPairs(
                  space, bytes, keys, sortedKeys, order, sortedOrder, n, 0, bits, stream),
          "sorting particles");
    return bytes;
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template decltype(lookAt<Real>) lookAt<Real>;                                                  \
    template decltype(takeDirection<Real>) takeDirection<Real>;
// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
