/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/far_field_kernels.h"

#include <cub/device/device_radix_sort.cuh>

#include "pair_kernels/cell_keys.cuh"
#include "runtime/ordered_sums.h"
#include "runtime/search.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! Keys of cells of a level from those of a finer one.
__global__ void __launch_bounds__(c_threads) selectKernel(const std::uint64_t* __restrict__ keys,
                                                          const int* __restrict__ starts,
                                                          int count,
                                                          int shift,
                                                          std::uint64_t* __restrict__ selected)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        selected[i] = keys[starts[i]] >> shift;
    }
}

//! Where keys are among others, which include them.
__global__ void __launch_bounds__(c_threads) slotKernel(const std::uint64_t* __restrict__ keys,
                                                        int count,
                                                        const std::uint64_t* __restrict__ all,
                                                        int allCount,
                                                        int* __restrict__ slots)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        slots[i] = partitionPoint(allCount, [&](int k) { return all[k] < keys[i]; });
    }
}

template<bool ToFields, class Real>
__global__ void __launch_bounds__(c_threads)
        fieldKernel(const __grid_constant__ Level0Fields<Real> level)
{
    const long long i = static_cast<long long>(blockIdx.x) * c_threads + threadIdx.x;
    const int cell    = static_cast<int>(i / level.coefficients);
    const int a       = static_cast<int>(i % level.coefficients);
    if (cell >= level.cells.count)
    {
        return;
    }
    const int* counts = level.box.counts;
    const int3 c      = cellOfKey(level.cells.keys[cell]);
    const int slot    = level.slotOfCell[c.x + counts[0] * (c.y + counts[1] * c.z)];
    Real& ofCell      = level.expansions[static_cast<size_t>(cell) * level.stride + a];
    Real& ofField     = level.fields[static_cast<size_t>(a) * level.fieldStride + slot];
    if (ToFields)
    {
        ofField = ofCell;
    }
    else
    {
        ofCell = ofField;
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads) dotKernel(const Real* __restrict__ a,
                                                       const Real* __restrict__ b,
                                                       size_t count,
                                                       double* sums)
{
    double sum = 0;
    for (size_t i = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x; i < count;
         i += static_cast<size_t>(c_dotParts) * c_threads)
    {
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0)
    {
        sums[blockIdx.x] = sum;
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        mixKernel(const __grid_constant__ Mixture<Real> mixture,
                  size_t count,
                  Real* __restrict__ to)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x;
    if (i >= count)
    {
        return;
    }
    Real sum = 0;
#pragma unroll
    for (int k = 0; k < c_derivatives; k++)
    {
        sum += mixture.weights[k] * mixture.from[k][i];
    }
    to[i] = sum;
}

} // namespace

void sortKeys(const std::uint64_t* keys,
              int count,
              std::uint64_t* sorted,
              CubRoom* room,
              cudaStream_t stream)
{
    room->run("sorting cells",
              [&](void* space, size_t& bytes) {
                  return cub::DeviceRadixSort::SortKeys(
                          space, bytes, keys, sorted, count, 0, 64, stream);
              });
}

void selectKeys(const std::uint64_t* keys,
                const int* places,
                int count,
                int shift,
                std::uint64_t* selected,
                cudaStream_t stream)
{
    if (count > 0)
    {
        selectKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(
                keys, places, count, shift, selected);
        checkLaunch("listing cells");
    }
}

void findSlots(const std::uint64_t* keys,
               int count,
               const std::uint64_t* all,
               int allCount,
               int* slots,
               cudaStream_t stream)
{
    if (count > 0)
    {
        slotKernel<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(
                keys, count, all, allCount, slots);
        checkLaunch("finding cells");
    }
}

template<class Real>
void expansionsToFields(const Level0Fields<Real>& level, cudaStream_t stream)
{
    const long long all = static_cast<long long>(level.cells.count) * level.coefficients;
    if (all > 0)
    {
        fieldKernel<true><<<blocksFor(all, c_threads), c_threads, 0, stream>>>(level);
        checkLaunch("spreading multipoles");
    }
}

template<class Real>
void fieldsToExpansions(const Level0Fields<Real>& level, cudaStream_t stream)
{
    const long long all = static_cast<long long>(level.cells.count) * level.coefficients;
    if (all > 0)
    {
        fieldKernel<false><<<blocksFor(all, c_threads), c_threads, 0, stream>>>(level);
        checkLaunch("collecting local expansions");
    }
}

template<class Real>
void dotParts(const Real* a, const Real* b, size_t count, double* sums, cudaStream_t stream)
{
    dotKernel<<<c_dotParts, c_threads, 0, stream>>>(a, b, count, sums);
    checkLaunch("summing a virial");
}

template<class Real>
void mix(const Mixture<Real>& mixture, size_t count, Real* to, cudaStream_t stream)
{
    if (count > 0)
    {
        mixKernel<<<blocksFor(static_cast<long long>(count), c_threads), c_threads, 0, stream>>>(
                mixture, count, to);
        checkLaunch("straining operators");
    }
}

template void expansionsToFields(const Level0Fields<float>&, cudaStream_t);
template void expansionsToFields(const Level0Fields<double>&, cudaStream_t);
template void fieldsToExpansions(const Level0Fields<float>&, cudaStream_t);
template void fieldsToExpansions(const Level0Fields<double>&, cudaStream_t);
template void dotParts(const float*, const float*, size_t, double*, cudaStream_t);
template void dotParts(const double*, const double*, size_t, double*, cudaStream_t);
template void mix(const Mixture<float>&, size_t, float*, cudaStream_t);
template void mix(const Mixture<double>&, size_t, double*, cudaStream_t);

} // namespace farfield
