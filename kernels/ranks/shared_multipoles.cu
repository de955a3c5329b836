/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/shared_multipoles.h"

#include <algorithm>

namespace farfield
{
namespace
{

constexpr int c_threads = 128;
//! Messages begin where so many bytes can be loaded at once.
constexpr size_t c_alignment = 16;
//! All bytes of the number that says that a rank has failed: it is finite and negative, as no other is.
constexpr int c_failed = 0xbf;

//! Packs the multipoles of our cells, and behind them the number, which is cleared.
template<class Real>
__global__ void __launch_bounds__(c_threads) pack(const Real* __restrict__ M,
                                                  int stride,
                                                  const int* __restrict__ slots,
                                                  int cells,
                                                  float* number,
                                                  Real* __restrict__ packed)
{
    const int cell   = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const size_t row = blockIdx.y;
    if (cell < cells)
    {
        packed[row * cells + cell] = M[row * stride + slots[cell]];
    }
    if (cell == 0 && row == 0)
    {
        packed[static_cast<size_t>(gridDim.y) * cells] = static_cast<Real>(*number);
        *number                                        = 0;
    }
}

template<class Real>
struct CombineTask
{
    const Real* M;
    int stride;
    const Real* received;
    const MultipoleBlock* blocks;
    int others;
    const int* placeOf;
    Real* total;
    const Real* ownNumber;
    float limit;
    Real* poison;
    int* beyond;    //!< [2] host memory
    float* largest; //!< host memory, or null
    int* count;
};

//! Adds what others have to what we have, in the order of ranks; finds the largest number, and whether
//! it is beyond the limit.
template<class Real>
__global__ void __launch_bounds__(c_threads) combine(const __grid_constant__ CombineTask<Real> task)
{
    const int slot   = blockIdx.x * c_threads + threadIdx.x;
    const size_t row = blockIdx.y;
    if (slot >= task.stride)
    {
        return;
    }
    Real sum = task.M[row * task.stride + slot];
    for (int r = 0; r < task.others; r++)
    {
        const int place = task.placeOf[static_cast<size_t>(r) * task.stride + slot];
        if (place >= 0)
        {
            const MultipoleBlock& block = task.blocks[r];
            sum += task.received[block.begin + row * block.cells + place];
        }
    }
    task.total[row * task.stride + slot] = sum;
    if (slot == 0 && row == 0)
    {
        Real largest   = *task.ownNumber;
        bool hasFailed = false;
        for (int r = 0; r < task.others; r++)
        {
            const Real number = task.received[task.blocks[r].number];
            largest           = number > largest ? number : largest;
            hasFailed         = hasFailed || number < 0;
        }
        const int before           = *task.count;
        volatile int* const beyond = task.beyond;
        if (hasFailed)
        {
            beyond[1] = 1;
        }
        if (hasFailed || static_cast<float>(largest) > task.limit)
        {
            // as bits: the compiler may take numbers for finite
            *task.poison = static_cast<Real>(__int_as_float(0x7fffffff));
            *beyond      = *beyond == 0 ? before + 1 : *beyond;
        }
        if (task.largest != nullptr)
        {
            task.largest[before % SharedMultipoles<Real>::c_kept] = static_cast<float>(largest);
            *task.count                                           = before + 1;
        }
        __threadfence_system();
    }
}

} // namespace

template<class Real>
void SharedMultipoles<Real>::plan(const Regions& regions,
                                  const Ranks& ranks,
                                  int coefficients,
                                  int stride,
                                  float limit,
                                  cudaStream_t stream)
{
    limit_              = limit;
    coefficients_       = coefficients;
    stride_             = stride;
    const auto elements = [=](size_t cells)
    { return static_cast<size_t>(coefficients) * cells + 1; };
    const std::vector<int> own = regions.slots(ranks.rank());
    slots_.upload(own.data(), own.size(), stream);
    packed_.resize(elements(own.size()));
    sentStretches_.assign(ranks.size(), {});
    receivedStretches_.assign(ranks.size(), {});
    std::vector<MultipoleBlock> blocks;
    std::vector<int> placeOf;
    size_t end = 0;
    for (int r = 0; r < ranks.size(); r++)
    {
        if (r == ranks.rank())
        {
            continue;
        }
        const std::vector<int> slots = regions.slots(r);
        const size_t first           = placeOf.size();
        placeOf.resize(first + stride, -1);
        for (size_t k = 0; k < slots.size(); k++)
        {
            placeOf[first + slots[k]] = static_cast<int>(k);
        }
        constexpr size_t c_unit = c_alignment / sizeof(Real);
        const size_t begin      = (end + c_unit - 1) / c_unit * c_unit;
        end                     = begin + elements(slots.size());
        blocks.push_back({ begin, end - 1, static_cast<int>(slots.size()) });
        sentStretches_[r]     = { 0, packed_.size() * sizeof(Real) };
        receivedStretches_[r] = { begin * sizeof(Real), (end - begin) * sizeof(Real) };
    }
    received_.resize(end);
    blocks_.upload(blocks.data(), blocks.size(), stream);
    placeOf_.upload(placeOf.data(), placeOf.size(), stream);
    total_.resize(static_cast<size_t>(coefficients) * stride);
    largest_.resize(c_kept);
    count_.resize(1);
    count_.clear(stream);
    poison_.resize(1);
    poison_.clear(stream);
    beyond_.resize(2);
    check(cudaStreamSynchronize(stream), "planning exchanges");
    std::fill_n(beyond_.data(), 2, 0);
}

template<class Real>
void SharedMultipoles<Real>::passOn(DeviceCommunicator* communicator, cudaStream_t stream)
{
    communicator->exchange(packed_.data(),
                           sentStretches_.data(),
                           received_.data(),
                           receivedStretches_.data(),
                           stream);
}

template<class Real>
void SharedMultipoles<Real>::sendFailure(DeviceCommunicator* communicator, cudaStream_t stream)
{
    Real* const number = packed_.data() + packed_.size() - 1;
    check(cudaMemsetAsync(number, c_failed, sizeof(Real), stream), "telling of a failure");
    passOn(communicator, stream);
}

template<class Real>
Real* SharedMultipoles<Real>::complete(const Real* M,
                                       float* number,
                                       bool isCounted,
                                       DeviceCommunicator* communicator,
                                       cudaStream_t stream)
{
    const auto grid = [this](int slots)
    { return dim3(std::max(1, blocksFor(slots, c_threads)), coefficients_); };
    const int cells = static_cast<int>(slots_.size());
    pack<Real><<<grid(cells), c_threads, 0, stream>>>(
            M, stride_, slots_.data(), cells, number, packed_.data());
    checkLaunch("packing multipoles");
    passOn(communicator, stream);
    const CombineTask<Real> task = { M,
                                     stride_,
                                     received_.data(),
                                     blocks_.data(),
                                     static_cast<int>(blocks_.size()),
                                     placeOf_.data(),
                                     total_.data(),
                                     packed_.data() + packed_.size() - 1,
                                     limit_,
                                     poison_.data(),
                                     beyond_.data(),
                                     isCounted ? largest_.data() : nullptr,
                                     count_.data() };
    combine<Real><<<grid(stride_), c_threads, 0, stream>>>(task);
    checkLaunch("adding multipoles of other ranks");
    return total_.data();
}

template class SharedMultipoles<float>;
template class SharedMultipoles<double>;

} // namespace farfield
