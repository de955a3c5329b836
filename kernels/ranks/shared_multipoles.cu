/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/shared_multipoles.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

//! Copies the coefficients of our cells, one row after the other.
template<class Real>
__global__ void __launch_bounds__(c_threads) pack(const Real* __restrict__ M,
                                                  int stride,
                                                  const int* __restrict__ slots,
                                                  int cells,
                                                  Real* __restrict__ packed)
{
    const int k = blockIdx.x * c_threads + threadIdx.x;
    if (k < cells)
    {
        const size_t row        = blockIdx.y;
        packed[row * cells + k] = M[row * stride + slots[k]];
    }
}

//! Adds what others have to what we have, in the order of ranks.
template<class Real>
__global__ void __launch_bounds__(c_threads) combine(const Real* __restrict__ M,
                                                     int stride,
                                                     const Real* __restrict__ received,
                                                     int others,
                                                     const int* __restrict__ placeOf,
                                                     const int* __restrict__ cellsOf,
                                                     Real* __restrict__ total)
{
    const int slot = blockIdx.x * c_threads + threadIdx.x;
    if (slot >= stride)
    {
        return;
    }
    const size_t row = blockIdx.y;
    Real sum         = M[row * stride + slot];
    const Real* from = received;
    for (int r = 0; r < others; r++)
    {
        const int place = placeOf[static_cast<size_t>(r) * stride + slot];
        if (place >= 0)
        {
            sum += from[row * cellsOf[r] + place];
        }
        from += static_cast<size_t>(gridDim.y) * cellsOf[r];
    }
    total[row * stride + slot] = sum;
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
    const auto bytesOf = [&](size_t cells) { return coefficients * cells * sizeof(Real); };

    const std::vector<int> own = slotsOfRank(ranks.rank());
    slots_.upload(own.data(), own.size(), stream);
    packed_.resize(coefficients * own.size());
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
    messages_ = own.empty() ? 0 : others_;
    bytes_    = messages_ * static_cast<long long>(bytesOf(own.size()));
}

template<class Real>
Real* SharedMultipoles<Real>::complete(const Real* M,
                                       DeviceCommunicator* communicator,
                                       cudaStream_t stream)
{
    const int cells = static_cast<int>(slots_.size());
    if (cells > 0)
    {
        pack<Real><<<dim3(blocksFor(cells, c_threads), coefficients_), c_threads, 0, stream>>>(
                M, stride_, slots_.data(), cells, packed_.data());
        checkLaunch("packing multipoles");
    }
    communicator->exchange(packed_.data(),
                           sentStretches_.data(),
                           received_.data(),
                           receivedStretches_.data(),
                           stream);
    combine<Real><<<dim3(blocksFor(stride_, c_threads), coefficients_), c_threads, 0, stream>>>(
            M, stride_, received_.data(), others_, placeOf_.data(), cellsOf_.data(), total_.data());
    checkLaunch("adding multipoles of other ranks");
    return total_.data();
}

template class SharedMultipoles<float>;
template class SharedMultipoles<double>;

} // namespace farfield
