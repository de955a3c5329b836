/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/links.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/devices.h"
#include "runtime/load.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = 128, c_sendThreads = 256;
//! Blocks that send: enough to fill a link, and they leave room for the sorting.
constexpr int c_sendBlocks = 64;
//! Loads of a thread under way at a time.
constexpr int c_underway = 4;

__device__ __forceinline__ unsigned long long globalTime()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__global__ void stampKernel(unsigned long long* time)
{
    *time = globalTime();
}

__global__ void adjustKernel(ShareState* state, int helpers)
{
    followTimes(state, helpers);
}

template<class Word>
__device__ void
sendWords(const void* from, size_t count, void* const* to, int receivers, size_t first)
{
    const auto* words   = static_cast<const Word*>(from);
    const size_t stride = static_cast<size_t>(gridDim.x) * c_sendThreads;
    for (size_t i = first + static_cast<size_t>(blockIdx.x) * c_sendThreads + threadIdx.x;
         i < count;
         i += c_underway * stride)
    {
        Word read[c_underway];
#pragma unroll
        for (int k = 0; k < c_underway; k++)
        {
            if (i + k * stride < count)
            {
                read[k] = words[i + k * stride];
            }
        }
        for (int r = 0; r < receivers; r++)
        {
#pragma unroll
            for (int k = 0; k < c_underway; k++)
            {
                if (i + k * stride < count)
                {
                    static_cast<Word*>(to[r])[i + k * stride] = read[k];
                }
            }
        }
    }
}

template<class Real>
__global__ void __launch_bounds__(c_sendThreads)
        sendKernel(const Real* x,
                   size_t values,
                   const int* bounds,
                   const __grid_constant__ HelperInputs<Real> to)
{
    void* receivers[c_maxHelperDevices];
    for (int r = 0; r < to.count; r++)
    {
        receivers[r] = to.of[r].x;
    }
    constexpr size_t c_perVector = sizeof(uint4) / sizeof(Real);
    size_t sent                  = 0;
    if (reinterpret_cast<std::uintptr_t>(x) % sizeof(uint4) == 0)
    {
        sendWords<uint4>(x, values / c_perVector, receivers, to.count, 0);
        sent = values / c_perVector * c_perVector;
    }
    sendWords<Real>(x, values, receivers, to.count, sent);
    const int helper = static_cast<int>(threadIdx.x);
    if (blockIdx.x == 0 && helper < to.count)
    {
        to.of[helper].bounds[0] = bounds[helper + 1];
        to.of[helper].bounds[1] = bounds[helper + 2];
        *to.of[helper].totals   = NearTotals{};
    }
}

/*! \brief The layers of cells that pairs of a share can have met: cells of a layer follow one another
 *         in storage order, and neighbours are at most ws layers away. */
class MetLayers
{
public:
    __device__ MetLayers(const CellGrid& grid, int ws, const OccupiedCells& share) :
        layers_(grid.H[2][2])
    {
        int first, last;
        share.findShare(&first, &last);
        if (first >= last)
        {
            return;
        }
        const int ofLayer = grid.H[0][0] * grid.H[1][1];
        const auto layer  = [&](int entry)
        { return (share.cells != nullptr ? share.cells[entry] : entry) / ofLayer; };
        first_ = layer(first) - ws;
        count_ = layer(last - 1) + ws - first_ + 1;
        first_ += first_ < 0 ? layers_ : 0;
        first_ = count_ >= layers_ ? 0 : first_;
    }
    __device__ bool has(int layer) const
    {
        const int after = layer - first_ + (layer < first_ ? layers_ : 0);
        return after < count_;
    }

private:
    int layers_, first_ = 0, count_ = 0;
};

template<class Real>
__global__ void __launch_bounds__(c_threads)
        deliverKernel(const __grid_constant__ SortedParticles<Real> particles,
                      const int* __restrict__ order,
                      const Real4<Real>* __restrict__ forces,
                      const NearTotals* totals,
                      const __grid_constant__ CellGrid grid,
                      int ws,
                      const __grid_constant__ OccupiedCells share,
                      const __grid_constant__ HelperOutput<Real> to)
{
    const int k = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (k == 0)
    {
        *to.totals = *totals;
    }
    if (k >= particles.n)
    {
        return;
    }
    const MetLayers met(grid, ws, share);
    const int atom = order[k];
    const int at   = particles.position[atom];
    if (met.has(particles.cell[at] / (grid.H[0][0] * grid.H[1][1])))
    {
        to.forces[atom] = load(forces + at);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        addKernel(const __grid_constant__ SortedParticles<Real> particles,
                  const __grid_constant__ CellGrid grid,
                  int ws,
                  const __grid_constant__ HelperOutputs<Real> from,
                  Real4<Real>* forces,
                  NearTotals* totals)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i == 0 && totals != nullptr)
    {
        for (int h = 0; h < from.count; h++)
        {
            const NearTotals& own = *from.of[h].totals;
            totals->energy += own.energy;
            for (int k = 0; k < 6; k++)
            {
                totals->virial[k] += own.virial[k];
            }
        }
    }
    if (i >= particles.n)
    {
        return;
    }
    const int layer = particles.cell[i] / (grid.H[0][0] * grid.H[1][1]);
    const int atom  = particles.atom[i];
    Real4<Real> sum = forces[i];
    for (int h = 0; h < from.count; h++)
    {
        if (MetLayers(grid, ws, from.shares[h]).has(layer))
        {
            const Real4<Real> own = load(from.of[h].forces + atom);
            sum.x += own.x;
            sum.y += own.y;
            sum.z += own.z;
        }
    }
    forces[i] = sum;
}

//! A number for every place and direction.
FARFIELD_HD unsigned patternAt(unsigned i, unsigned which)
{
    return (i + 1) * 2654435761U ^ which * 40503U;
}

__global__ void writePattern(unsigned* to, unsigned count, unsigned which)
{
    const unsigned i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        to[i] = patternAt(i, which);
    }
}

__global__ void copyPattern(unsigned* to, const unsigned* from, unsigned count)
{
    const unsigned i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        to[i] = from[i];
    }
}

/*! \brief Whether kernels of one device write to and read from the memory of another.
 *  \param[in,out] near, far  [count] in the memory of either */
bool reaches(int device, DeviceBuffer<unsigned>* near, DeviceBuffer<unsigned>* far, unsigned which)
{
    const OnDevice scope(device);
    const Stream stream;
    const auto count = static_cast<unsigned>(near->size());
    const int blocks = blocksFor(count, c_threads);
    near->clear(stream);
    writePattern<<<blocks, c_threads, 0, stream>>>(far->data(), count, which);
    copyPattern<<<blocks, c_threads, 0, stream>>>(near->data(), far->data(), count);
    bool right = cudaGetLastError() == cudaSuccess;
    std::vector<unsigned> found(count);
    near->download(found.data(), count, stream);
    for (unsigned i = 0; i < count; i++)
    {
        right = right && found[i] == patternAt(i, which);
    }
    return right;
}

//! Lets kernels of a device use the memory of another. \returns whether they can
bool enableAccess(int device, int other)
{
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, device, other) != cudaSuccess || can == 0)
    {
        (void)cudaGetLastError();
        return false;
    }
    const OnDevice scope(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    (void)cudaGetLastError();
    return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
}

} // namespace

void connectDevices(int home, int helper)
{
    constexpr unsigned c_tried = 1U << 16;
    const auto try_            = [&]
    {
        DeviceBuffer<unsigned> atHome, atHelper;
        {
            const OnDevice scope(home);
            atHome.resize(c_tried);
        }
        const OnDevice scope(helper);
        atHelper.resize(c_tried);
        return reaches(home, &atHome, &atHelper, 1) && reaches(helper, &atHelper, &atHome, 2);
    };
    const bool connected =
            home == helper || (enableAccess(home, helper) && enableAccess(helper, home));
    if (!connected || !try_())
    {
        throw Error(ErrorCode::Unsupported,
                    "The GPU " + std::to_string(helper) + " cannot help the GPU "
                            + std::to_string(home)
                            + ": their memory is out of each other's reach (peer access).",
                    "helperDevices");
    }
}

void stamp(unsigned long long* time, cudaStream_t stream)
{
    stampKernel<<<1, 1, 0, stream>>>(time);
    checkLaunch("taking a time");
}

void adjustShares(ShareState* state, int helpers, cudaStream_t stream)
{
    adjustKernel<<<1, 1, 0, stream>>>(state, helpers);
    checkLaunch("sharing the near field");
}

template<class Real>
void sendToHelpers(const Real* x,
                   size_t values,
                   const int* bounds,
                   const HelperInputs<Real>& to,
                   cudaStream_t stream)
{
    constexpr size_t c_ofBlock = c_sendThreads * c_underway * sizeof(uint4) / sizeof(Real);
    const int blocks           = blocksFor(static_cast<long long>(values), c_ofBlock);
    sendKernel<Real><<<std::clamp(blocks, 1, c_sendBlocks), c_sendThreads, 0, stream>>>(
            x, values, bounds, to);
    checkLaunch("sending positions to other GPUs");
}

template<class Real>
void deliver(const SortedParticles<Real>& particles,
             const int* order,
             const Real4<Real>* forces,
             const NearTotals* totals,
             const CellGrid& grid,
             int ws,
             const OccupiedCells& share,
             const HelperOutput<Real>& to,
             cudaStream_t stream)
{
    deliverKernel<Real><<<std::max(1, blocksFor(particles.n, c_threads)), c_threads, 0, stream>>>(
            particles, order, forces, totals, grid, ws, share, to);
    checkLaunch("sending forces to another GPU");
}

template<class Real>
void addDelivered(const SortedParticles<Real>& particles,
                  const CellGrid& grid,
                  int ws,
                  const HelperOutputs<Real>& from,
                  Real4<Real>* forces,
                  NearTotals* totals,
                  cudaStream_t stream)
{
    addKernel<Real><<<std::max(1, blocksFor(particles.n, c_threads)), c_threads, 0, stream>>>(
            particles, grid, ws, from, forces, totals);
    checkLaunch("adding forces of other GPUs");
}

template decltype(sendToHelpers<float>) sendToHelpers<float>;
template decltype(sendToHelpers<double>) sendToHelpers<double>;
template decltype(deliver<float>) deliver<float>;
template decltype(deliver<double>) deliver<double>;
template decltype(addDelivered<float>) addDelivered<float>;
template decltype(addDelivered<double>) addDelivered<double>;

} // namespace farfield
