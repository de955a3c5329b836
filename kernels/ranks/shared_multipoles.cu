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

template<class Real>
struct CombineTask
{
    const Real* M; //!< of the first coefficient of the share
    int fields, stride;
    const Real* received;
    const FieldBlock* blocks;
    int others;
    const int* placeOf;
    Real* total;
    const Real* ownNumber;
    float limit;
    Real* poison;
    int* beyond;    //!< host memory
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
    if (static_cast<int>(row) < task.fields) // there is a row of blocks without any, too
    {
        Real sum = task.M[row * task.stride + slot];
        for (int r = 0; r < task.others; r++)
        {
            const int place = task.placeOf[static_cast<size_t>(r) * task.stride + slot];
            if (place >= 0)
            {
                sum += task.received[task.blocks[r].at(static_cast<int>(row), place)];
            }
        }
        task.total[row * task.stride + slot] = sum;
    }
    if (slot == 0 && row == 0)
    {
        Real largest = *task.ownNumber;
        for (int r = 0; r < task.others; r++)
        {
            const Real number = task.received[task.blocks[r].end()];
            largest           = number > largest ? number : largest;
        }
        const int before = *task.count;
        if (static_cast<float>(largest) > task.limit)
        {
            // as bits: the compiler may take numbers for finite
            *task.poison               = static_cast<Real>(__int_as_float(0x7fffffff));
            volatile int* const beyond = task.beyond;
            *beyond                    = *beyond == 0 ? before + 1 : *beyond;
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
                                  const Share& share,
                                  int coefficients,
                                  int stride,
                                  float limit,
                                  cudaStream_t stream)
{
    limit_  = limit;
    stride_ = stride;
    first_  = share.begin(coefficients);
    fields_ = share.end(coefficients) - first_;
    std::vector<std::vector<int>> slots;
    std::vector<int> placeOf;
    for (int r = 0; r < ranks.size(); r++)
    {
        slots.push_back(regions.slots(r));
        if (r == ranks.rank())
        {
            continue;
        }
        const size_t first = placeOf.size();
        placeOf.resize(first + stride, -1);
        for (size_t k = 0; k < slots[r].size(); k++)
        {
            placeOf[first + slots[r][k]] = static_cast<int>(k);
        }
    }
    const FieldBlocks ours =
            fieldsOfOthers(share, ranks.rank(), coefficients, slots, sizeof(Real), 1);
    ours_.plan(ours, stream);
    received_.plan(placesOfOthers(share, ranks.rank(), coefficients, slots, sizeof(Real), 1),
                   stream);
    ownNumber_ = ours.blocks().front().end();
    placeOf_.upload(placeOf.data(), placeOf.size(), stream);
    total_.resize(static_cast<size_t>(fields_) * stride);
    largest_.resize(c_kept);
    count_.resize(1);
    count_.clear(stream);
    poison_.resize(1);
    poison_.clear(stream);
    beyond_.resize(1);
    check(cudaStreamSynchronize(stream), "planning exchanges");
    *beyond_.data() = 0;
}

template<class Real>
Real* SharedMultipoles<Real>::complete(const Real* M,
                                       float* number,
                                       bool isCounted,
                                       DeviceCommunicator* communicator,
                                       cudaStream_t stream)
{
    ours_.pack(M, stride_, number, stream);
    ours_.exchange(&received_, communicator, stream);
    const CombineTask<Real> task = { M + static_cast<size_t>(first_) * stride_,
                                     fields_,
                                     stride_,
                                     received_.data(),
                                     received_.blocks(),
                                     received_.count(),
                                     placeOf_.data(),
                                     total_.data(),
                                     ours_.data() + ownNumber_,
                                     limit_,
                                     poison_.data(),
                                     beyond_.data(),
                                     isCounted ? largest_.data() : nullptr,
                                     count_.data() };
    combine<Real><<<dim3(std::max(1, blocksFor(stride_, c_threads)), std::max(1, fields_)),
                    c_threads,
                    0,
                    stream>>>(task);
    checkLaunch("adding multipoles of other ranks");
    return total_.data();
}

template class SharedMultipoles<float>;
template class SharedMultipoles<double>;

} // namespace farfield
