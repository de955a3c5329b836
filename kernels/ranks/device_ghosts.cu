/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/device_ghosts.h"

#include "runtime/layout.h"

namespace farfield
{
namespace
{

constexpr int c_threads       = 128;
constexpr unsigned c_allLanes = 0xffffffffU;

template<class Real>
struct GatherTask
{
    int own;
    long long sent; //!< particles, to all ranks
    const Real* x;
    const Real* planned;
    const int* sentOf;
    Real toCells[3][3];
    Real *positions, *packed;
    float* farthest;
};

//! Copies a position of ours, or packs one that is sent. \returns how far it has moved, cells
template<class Real>
__device__ Real copyPosition(const GatherTask<Real>& task, long long i)
{
    const bool isCopy = i < task.own;
    const size_t from = 3 * static_cast<size_t>(isCopy ? i : task.sentOf[i - task.own]);
    const Real r[3]   = { task.x[from], task.x[from + 1], task.x[from + 2] };
    Real* to = isCopy ? task.positions + from : task.packed + 3 * static_cast<size_t>(i - task.own);
    to[0]    = r[0];
    to[1]    = r[1];
    to[2]    = r[2];
    if (!isCopy)
    {
        return 0;
    }
    Real moved = 0;
    for (int c = 0; c < 3; c++)
    {
        const Real u =
                r[0] * task.toCells[0][c] + r[1] * task.toCells[1][c] + r[2] * task.toCells[2][c];
        const Real d = abs(u - task.planned[from + c]);
        moved        = d > moved ? d : moved; // also where d is not a number
    }
    return moved;
}

//! Copies positions of ours, and packs those that are sent.
template<class Real>
__global__ void __launch_bounds__(c_threads) gather(const __grid_constant__ GatherTask<Real> task)
{
    const long long i = static_cast<long long>(blockIdx.x) * c_threads + threadIdx.x;
    Real moved        = 0;
    if (i < task.own + task.sent)
    {
        moved = copyPosition(task, i);
    }
    float most = static_cast<float>(moved);
    for (int offset = c_warp / 2; offset > 0; offset /= 2)
    {
        most = fmaxf(most, __shfl_xor_sync(c_allLanes, most, offset));
    }
    // few warps are ahead of the others
    if (threadIdx.x % c_warp == 0 && most > *static_cast<volatile float*>(task.farthest))
    {
        // numbers that are not negative are in the order of their bits
        atomicMax(reinterpret_cast<int*>(task.farthest), __float_as_int(most));
    }
}

} // namespace

template<class Real>
void DeviceGhosts<Real>::plan(const DevicePlan<Real>& plan,
                              const Partition<Real>& partition,
                              cudaStream_t stream)
{
    const int me = partition.ranks().rank(), ranks = partition.ranks().size();
    plan_ = &plan;
    packed_.resize(3 * plan.sent().size());
    positions_.resize(3 * static_cast<size_t>(plan.count()));
    constexpr size_t c_bytes = 3 * sizeof(Real);
    const auto stretchOf     = [&](const std::vector<size_t>& offsets, int rank, size_t before)
    {
        return Stretch{ c_bytes * (before + offsets[rank]),
                        c_bytes * (offsets[rank + 1] - offsets[rank]) };
    };
    sentStretches_.assign(ranks, {});
    receivedStretches_.assign(ranks, {});
    messages_ = bytes_ = 0;
    for (int r = 0; r < ranks; r++)
    {
        if (r == me)
        {
            continue;
        }
        sentStretches_[r]     = stretchOf(plan.sentOffsets(), r, 0);
        receivedStretches_[r] = stretchOf(plan.ghostOffsets(), r, plan.own());
        messages_ += sentStretches_[r].size > 0 ? 1 : 0;
        bytes_ += static_cast<long long>(sentStretches_[r].size);
    }
    farthest_.resize(1);
    farthest_.clear(stream);
    check(cudaStreamSynchronize(stream), "planning exchanges");
}

template<class Real>
const Real* DeviceGhosts<Real>::exchange(const Real* x,
                                         const Mat3& toCells,
                                         DeviceCommunicator* communicator,
                                         cudaStream_t stream)
{
    GatherTask<Real> task = {};
    task.own              = plan_->own();
    task.sent             = static_cast<long long>(plan_->sent().size());
    task.x                = x;
    task.planned          = plan_->where();
    task.sentOf           = plan_->sent().data();
    for (int i = 0; i < 9; i++)
    {
        task.toCells[i / 3][i % 3] = static_cast<Real>(toCells(i / 3, i % 3));
    }
    task.positions = positions_.data();
    task.packed    = packed_.data();
    task.farthest  = farthest_.data();
    if (const int blocks = blocksFor(task.own + task.sent, c_threads); blocks > 0)
    {
        gather<Real><<<blocks, c_threads, 0, stream>>>(task);
        checkLaunch("gathering positions");
    }
    passOn(communicator, stream);
    return positions_.data();
}

template<class Real>
void DeviceGhosts<Real>::passOn(DeviceCommunicator* communicator, cudaStream_t stream)
{
    communicator->exchange(packed_.data(),
                           sentStretches_.data(),
                           positions_.data(),
                           receivedStretches_.data(),
                           stream);
}

template class DeviceGhosts<float>;
template class DeviceGhosts<double>;

} // namespace farfield
