/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <climits>

#include <algorithm>
#include <type_traits>

#include "cells/minimum_image.h"
#include "near/exclusion_rows.h"
#include "near/near.h"
#include "near/near_functions.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;
//! Of findCloseKernel(): some for each multiprocessor.
constexpr int c_mostBlocks = 1024;

template<class Real>
struct ExclusionTask
{
    MinimumImage image;
    Real safe2, close2;
    int n, own;
    const Real* x;
    const Real* q;
    NearFunctionView<Real> functions;
    const int* offsets;
    const int* partners;
    unsigned char* close;
    int* anyClose;
    Real* forces;
    NearTotals* totals;
    OrderedSums::View sums;
};

//! Particles with more partners than this are taken by several lanes.
constexpr int c_fewPartners = 4;
//! So many lanes.
constexpr int c_lanes = 4;

/*! \brief So many lanes per particle subtract q_i q_j / r of its partners, or q_i q_j f.
 *
 *  Both directions of a pair do the same arithmetic, so that forces cancel and marks agree. */
template<class Real, bool Energy, bool Virial, int Lanes, bool Functions>
__global__ void __launch_bounds__(c_threads) exclusionKernel(const ExclusionTask<Real> task)
{
    double sums[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    bool found     = false;
    // particles of whole warps, as lanes exchange their sums; lanes of all would be more than an int counts
    constexpr int c_ofWarp = c_warp / Lanes, c_ofBlock = c_threads / Lanes;
    const int all  = (task.n + c_ofWarp - 1) / c_ofWarp * c_ofWarp;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    // in the caller's order: partners are mostly neighbours there
    for (int i = static_cast<int>(blockIdx.x) * c_ofBlock + static_cast<int>(threadIdx.x) / Lanes;
         i < all;
         i += static_cast<int>(gridDim.x) * c_ofBlock)
    {
        const int begin = (i < task.n) ? task.offsets[i] : 0;
        const int end   = (i < task.n) ? task.offsets[i + 1] : 0;
        Real F[3]       = { 0, 0, 0 };
        if (begin < end)
        {
            const size_t at = 3 * static_cast<size_t>(i);
            const Real x = task.x[at], y = task.x[at + 1], z = task.x[at + 2], q = task.q[i];
            for (int k = begin + lane; k < end; k += Lanes)
            {
                const int j        = task.partners[k];
                const size_t other = 3 * static_cast<size_t>(j);
                // The difference of near positions is exact in either precision.
                Real dx = x - task.x[other], dy = y - task.x[other + 1], dz = z - task.x[other + 2];
                Real r2 = dx * dx + dy * dy + dz * dz;
                if (r2 > task.safe2)
                {
                    // box vectors have more digits than single precision would leave of the result
                    double d[3] = { static_cast<double>(x) - static_cast<double>(task.x[other]),
                                    static_cast<double>(y) - static_cast<double>(task.x[other + 1]),
                                    static_cast<double>(z)
                                            - static_cast<double>(task.x[other + 2]) };
                    task.image.search(d);
                    dx = static_cast<Real>(d[0]);
                    dy = static_cast<Real>(d[1]);
                    dz = static_cast<Real>(d[2]);
                    r2 = dx * dx + dy * dy + dz * dz;
                }
                const bool near = r2 < task.close2;
                task.close[k]   = near ? 1 : 0;
                if (near)
                {
                    found = true;
                    continue;
                }
                const Real qj   = task.q[j];
                const Real root = Real(1) / sqrt(r2);
                Real f          = -(q * qj) * root * (root * root);
                Real value = root, excess = 0;
                if constexpr (Functions)
                {
                    const auto pair = potentialOf(task.functions,
                                                  r2,
                                                  root,
                                                  task.functions.terms[i],
                                                  task.functions.terms[j]);
                    f               = -(q * qj) * pair.slope;
                    value           = pair.value;
                    excess          = pair.excess;
                }
                F[0] += f * dx;
                F[1] += f * dy;
                F[2] += f * dz;
                if (Energy && i < task.own)
                {
                    // half of the pair; the other half is its partner's
                    sums[0] -= 0.5 * static_cast<double>(q) * static_cast<double>(qj)
                               * static_cast<double>(value);
                }
                if (Virial && i < task.own)
                {
                    sums[1] -= 0.25 * static_cast<double>(dx * (f * dx));
                    sums[2] -= 0.25 * static_cast<double>(dy * (f * dy));
                    sums[3] -= 0.25 * static_cast<double>(dz * (f * dz));
                    sums[4] -= 0.25 * static_cast<double>(dx * (f * dy));
                    sums[5] -= 0.25 * static_cast<double>(dx * (f * dz));
                    sums[6] -= 0.25 * static_cast<double>(dy * (f * dz));
                    sums[7] -= 0.25 * static_cast<double>(q * qj * excess);
                }
            }
        }
#pragma unroll
        for (int offset = 1; offset < Lanes; offset *= 2)
        {
            for (int c = 0; c < 3; c++)
            {
                F[c] += __shfl_xor_sync(0xffffffffU, F[c], offset);
            }
        }
        if (i < task.n && lane == 0)
        {
            for (int c = 0; c < 3; c++)
            {
                task.forces[3 * static_cast<size_t>(i) + c] = F[c];
            }
        }
    }

    // The last block publishes whether there are close pairs and resets the counters.
    int* running         = task.anyClose + 1;
    unsigned int* done   = reinterpret_cast<unsigned int*>(task.anyClose + 2);
    const bool anyInHere = __syncthreads_or(found) != 0;
    if (threadIdx.x == 0 && anyInHere)
    {
        atomicOr(running, 1);
    }
    if (lastBlock(done, gridDim.x) && threadIdx.x == 0)
    {
        task.anyClose[0] = atomicExch(running, 0);
    }
    if (Energy)
    {
        double* to[8] = { &task.totals->energy };
        for (int k = 0; k < 6; k++)
        {
            to[1 + k] = &task.totals->excludedVirial[k];
        }
        to[7] = &task.totals->excess;
        addInOrder<!Virial ? 1 : Functions ? 8 : 7>(sums, task.sums, to);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        findCloseKernel(const SortedParticles<Real> particles,
                        const typename DeviceExclusions<Real>::View rows,
                        int4* __restrict__ closeOf)
{
    using Exclusions = DeviceExclusions<Real>;
    if (*rows.anyClose == 0)
    {
        return;
    }
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < particles.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const int own = particles.atom[i];
        int4 found    = {
               Exclusions::c_none, Exclusions::c_none, Exclusions::c_none, Exclusions::c_none
        };
        int count = 0, first = INT_MAX, last = 0;
        for (int k = rows.offsets[own]; k < rows.offsets[own + 1]; k++)
        {
            if (rows.close[k])
            {
                const int at = particles.position[rows.partners[k]];
                found        = { at, found.x, found.y, found.z };
                first        = min(first, at);
                last         = max(last, at);
                count++;
            }
        }
        closeOf[i] =
                (count <= 4) ? found : int4{ first, last, Exclusions::c_none, Exclusions::c_more };
    }
}

} // namespace

template<class Real>
void DeviceExclusions<Real>::reserve(int n, size_t partners)
{
    if (partners > 0)
    {
        offsets_.resize(static_cast<size_t>(n) + 1);
        partners_.resize(partners);
        close_.resize(partners);
        closeOf_.resize(n);
        anyClose_.resize(3);
        forces_.resize(3 * static_cast<size_t>(n));
    }
}

template<class Real>
void DeviceExclusions<Real>::set(const ExclusionRows& rows, int n, cudaStream_t stream)
{
    setRows(rows.offsets().data(),
            rows.partners().data(),
            n,
            rows.partners().size(),
            rows.longest(),
            stream);
}

template<class Real>
void DeviceExclusions<Real>::set(const DevicePlan<Real>& plan, cudaStream_t stream)
{
    setRows(plan.excludedOffsets(),
            plan.excludedPartners(),
            plan.count(),
            plan.excludedPairs(),
            plan.longestRow(),
            stream);
}

template<class Real>
void DeviceExclusions<Real>::setRows(const int* offsets,
                                     const int* partners,
                                     int n,
                                     size_t length,
                                     int longest,
                                     cudaStream_t stream)
{
    length_  = length;
    longest_ = longest;
    reserve(n, length);
    if (length_ > 0)
    {
        offsets_.upload(offsets, static_cast<size_t>(n) + 1, stream);
        partners_.upload(partners, length_, stream);
        close_.clear(stream);
        anyClose_.clear(stream);
    }
}

template<class Real>
void DeviceExclusions<Real>::subtract(const Mat3& box,
                                      double closeDistance,
                                      const NearFunctionView<Real>& functions,
                                      const Real* x,
                                      const Real* q,
                                      int n,
                                      int own,
                                      const NearResults& results,
                                      cudaStream_t stream)
{
    if (length_ == 0)
    {
        return;
    }
    ExclusionTask<Real> task = {};
    task.image               = MinimumImage::of(box);
    task.safe2               = static_cast<Real>(task.image.safe2);
    task.close2              = static_cast<Real>(closeDistance * closeDistance);
    task.x                   = x;
    task.q                   = q;
    task.functions           = functions;
    task.n                   = n;
    task.own                 = own;
    task.offsets             = offsets_.data();
    task.partners            = partners_.data();
    task.close               = close_.data();
    task.anyClose            = anyClose_.data();
    task.forces              = forces_.data();
    task.totals              = results.totals;
    if (results.wanted != NearSums::None)
    {
        task.sums = results.scratch->view();
    }
    const auto launch = [&](auto lanes, auto hasFunctions)
    {
        constexpr int c_of         = decltype(lanes)::value;
        constexpr bool c_functions = decltype(hasFunctions)::value;
        const int blocks           = blocksFor(static_cast<long long>(n) * c_of, c_threads);
        const int capped           = std::min(blocks, OrderedSums::c_maxBlocks);
        switch (results.wanted)
        {
            case NearSums::None:
                exclusionKernel<Real, false, false, c_of, c_functions>
                        <<<blocks, c_threads, 0, stream>>>(task);
                break;
            case NearSums::Energy:
                exclusionKernel<Real, true, false, c_of, c_functions>
                        <<<capped, c_threads, 0, stream>>>(task);
                break;
            case NearSums::EnergyAndVirial:
                exclusionKernel<Real, true, true, c_of, c_functions>
                        <<<capped, c_threads, 0, stream>>>(task);
                break;
        }
    };
    const auto launchFor = [&](auto hasFunctions)
    {
        longest_ > c_fewPartners ? launch(std::integral_constant<int, c_lanes>(), hasFunctions)
                                 : launch(std::integral_constant<int, 1>(), hasFunctions);
    };
    functions.any() ? launchFor(std::true_type()) : launchFor(std::false_type());
    checkLaunch("subtracting excluded pairs");
}

template<class Real>
void DeviceExclusions<Real>::findClose(const SortedParticles<Real>& particles, cudaStream_t stream)
{
    if (length_ > 0 && particles.n > 0)
    {
        // few blocks: mostly they have nothing to do
        const int blocks = std::min(blocksFor(particles.n, c_threads), c_mostBlocks);
        findCloseKernel<<<blocks, c_threads, 0, stream>>>(particles, view(), closeOf_.data());
        checkLaunch("looking for close excluded pairs");
    }
}

template<class Real>
typename DeviceExclusions<Real>::View DeviceExclusions<Real>::view() const
{
    if (length_ == 0)
    {
        return { nullptr, nullptr, nullptr, nullptr, nullptr };
    }
    return { offsets_.data(), partners_.data(), close_.data(), anyClose_.data(), closeOf_.data() };
}

template class DeviceExclusions<float>;
template class DeviceExclusions<double>;

} // namespace farfield
