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

//! Copies the coefficients of our cells, one row after the other, and a number, which is cleared.
template<class Real>
__global__ void __launch_bounds__(c_threads) pack(const Real* __restrict__ M,
                                                  int stride,
                                                  const int* __restrict__ slots,
                                                  int cells,
                                                  float* __restrict__ number,
                                                  Real* __restrict__ packed)
{
    const int k      = blockIdx.x * c_threads + threadIdx.x;
    const size_t row = blockIdx.y;
    if (k < cells)
    {
        packed[row * cells + k] = M[row * stride + slots[k]];
    }
    if (k == 0 && row == 0)
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
    int others;
    const int* placeOf;
    const int* cellsOf;
    Real* total;
    const Real* ownNumber;
    float* largest; //!< host memory, or null
    int* count;
};

//! Adds what others have to what we have, in the order of ranks; finds the largest number.
template<class Real>
__global__ void __launch_bounds__(c_threads) combine(const __grid_constant__ CombineTask<Real> task)
{
    const int slot   = blockIdx.x * c_threads + threadIdx.x;
    const size_t row = blockIdx.y;
    if (slot >= task.stride)
    {
        return;
    }
    const bool findsLargest = slot == 0 && row == 0 && task.largest != nullptr;
    Real sum                = task.M[row * task.stride + slot];
    Real largest            = findsLargest ? *task.ownNumber : Real(0);
    const Real* from        = task.received;
    for (int r = 0; r < task.others; r++)
    {
        const int place = task.placeOf[static_cast<size_t>(r) * task.stride + slot];
        if (place >= 0)
        {
            sum += from[row * task.cellsOf[r] + place];
        }
        from += static_cast<size_t>(gridDim.y) * task.cellsOf[r];
        largest = findsLargest && *from > largest ? *from : largest;
        from++;
    }
    task.total[row * task.stride + slot] = sum;
    if (findsLargest)
    {
        task.largest[*task.count % SharedMultipoles<Real>::c_kept] = static_cast<float>(largest);
        *task.count += 1;
        __threadfence_system();
    }
}

} // namespace

template<class Real>
void SharedMultipoles<Real>::plan(const Regions& regions,
                                  const Ranks& ranks,
                                  int coefficients,
                                  int stride,
                                  cudaStream_t stream)
{
    coefficients_ = coefficients;
    stride_       = stride;
    others_       = ranks.size() - 1;
    sentStretches_.assign(ranks.size(), {});
    receivedStretches_.assign(ranks.size(), {});
    const Grid& grid       = regions.grid(0);
    const auto slotsOfRank = [&](int r)
    {
        std::vector<int> slots;
        for (const int cell : regions.cells(0, r))
        {
            slots.push_back(grid.slot(grid.cell(cell)));
        }
        return slots;
    };
    const auto elementsOf = [&](size_t cells) { return coefficients * cells + 1; };
    const auto bytesOf    = [&](size_t cells) { return elementsOf(cells) * sizeof(Real); };

    const std::vector<int> own = slotsOfRank(ranks.rank());
    slots_.upload(own.data(), own.size(), stream);
    packed_.resize(elementsOf(own.size()));
    total_.resize(static_cast<size_t>(coefficients) * stride);
    std::vector<int> placeOf, cellsOf;
    size_t bytes = 0;
    for (int r = 0; r < ranks.size(); r++)
    {
        if (r == ranks.rank())
        {
            continue;
        }
        const std::vector<int> slots = slotsOfRank(r);
        const size_t first           = placeOf.size();
        placeOf.resize(first + stride, -1);
        for (size_t k = 0; k < slots.size(); k++)
        {
            placeOf[first + slots[k]] = static_cast<int>(k);
        }
        cellsOf.push_back(static_cast<int>(slots.size()));
        sentStretches_[r]     = { 0, bytesOf(own.size()) };
        receivedStretches_[r] = { bytes, bytesOf(slots.size()) };
        bytes += receivedStretches_[r].size;
    }
    placeOf_.upload(placeOf.data(), placeOf.size(), stream);
    cellsOf_.upload(cellsOf.data(), cellsOf.size(), stream);
    received_.resize(bytes / sizeof(Real));
    largest_.resize(c_kept);
    count_.resize(1);
    count_.clear(stream);
    messages_ = others_;
    bytes_    = messages_ * static_cast<long long>(bytesOf(own.size()));
}

template<class Real>
Real* SharedMultipoles<Real>::complete(const Real* M,
                                       float* number,
                                       bool isCounted,
                                       DeviceCommunicator* communicator,
                                       cudaStream_t stream)
{
    const int cells = static_cast<int>(slots_.size());
    const auto rows = [&](int count)
    { return dim3(std::max(1, blocksFor(count, c_threads)), coefficients_); };
    pack<Real><<<rows(cells), c_threads, 0, stream>>>(
            M, stride_, slots_.data(), cells, number, packed_.data());
    checkLaunch("packing multipoles");
    communicator->exchange(packed_.data(),
                           sentStretches_.data(),
                           received_.data(),
                           receivedStretches_.data(),
                           stream);
    const CombineTask<Real> task = { M,
                                     stride_,
                                     received_.data(),
                                     others_,
                                     placeOf_.data(),
                                     cellsOf_.data(),
                                     total_.data(),
                                     packed_.data() + packed_.size() - 1,
                                     isCounted ? largest_.data() : nullptr,
                                     count_.data() };
    combine<Real><<<rows(stride_), c_threads, 0, stream>>>(task);
    checkLaunch("adding multipoles of other ranks");
    return total_.data();
}

template class SharedMultipoles<float>;
template class SharedMultipoles<double>;

} // namespace farfield
