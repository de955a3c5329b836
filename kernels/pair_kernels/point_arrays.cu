/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/point_arrays.h"

#include <climits>
#include <cstring>

#include <algorithm>
#include <limits>

#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;
constexpr int c_blocks  = 1024; //!< of a look, at most

//! Integers with the order of numbers; the same function leads back.
__host__ __device__ inline long long ordered(long long bits)
{
    return bits ^ ((bits >> 63) & LLONG_MAX);
}
long long bitsOf(double value)
{
    long long bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}
double valueOf(long long bits)
{
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

template<bool AreParticles>
__global__ void __launch_bounds__(c_threads)
        positionKernel(const double* __restrict__ x, int n, LookAtPoints::Found* found)
{
    double low[3], high[3];
    for (int k = 0; k < 3; k++)
    {
        low[k]  = INFINITY;
        high[k] = -INFINITY;
    }
    for (long long place = blockIdx.x * c_threads + threadIdx.x; place < n;
         place += gridDim.x * c_threads)
    {
        const int i         = static_cast<int>(place);
        const double* own   = x + 3 * static_cast<size_t>(i);
        const double at[3]  = { own[0], own[1], own[2] };
        const bool isFinite = isfinite(at[0]) && isfinite(at[1]) && isfinite(at[2]);
        if (!isFinite)
        {
            atomicMin(AreParticles ? &found->particle : &found->point, i);
        }
        for (int k = 0; isFinite && k < 3; k++)
        {
            low[k]  = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    for (int k = 0; k < 3; k++)
    {
        for (int offset = 16; offset > 0; offset /= 2)
        {
            low[k]  = fmin(low[k], __shfl_xor_sync(0xffffffffU, low[k], offset));
            high[k] = fmax(high[k], __shfl_xor_sync(0xffffffffU, high[k], offset));
        }
        if (threadIdx.x % 32 == 0)
        {
            atomicMin(found->low + k, ordered(__double_as_longlong(low[k])));
            atomicMax(found->high + k, ordered(__double_as_longlong(high[k])));
        }
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        chargeKernel(const Real* __restrict__ q, size_t count, int sets, LookAtPoints::Found* found)
{
    for (size_t i = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x; i < count;
         i += static_cast<size_t>(gridDim.x) * c_threads)
    {
        if (!isfinite(q[i]))
        {
            atomicMin(&found->charge, static_cast<int>(i / sets));
        }
    }
}

__global__ void __launch_bounds__(c_threads) resultKernel(const double* __restrict__ sums,
                                                          const int* __restrict__ order,
                                                          size_t count,
                                                          int n,
                                                          ResultsSeen* seen)
{
    unsigned long long largest = 0;
    for (size_t i = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x; i < count;
         i += static_cast<size_t>(gridDim.x) * c_threads)
    {
        const double value = fabs(sums[i]);
        if (!isfinite(value))
        {
            atomicMin(&seen->invalid, order[i % n]);
            continue;
        }
        largest = max(largest, static_cast<unsigned long long>(__double_as_longlong(value)));
    }
    for (int offset = 16; offset > 0; offset /= 2)
    {
        largest = max(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
    }
    if (threadIdx.x % 32 == 0)
    {
        atomicMax(&seen->largest, largest);
    }
}

__global__ void __launch_bounds__(c_threads)
        invertKernel(const int* __restrict__ order, int n, int* __restrict__ sortedOf)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < n)
    {
        sortedOf[order[i]] = i;
    }
}

__global__ void __launch_bounds__(c_threads) takeKernel(const double* __restrict__ sums,
                                                        const int* __restrict__ sortedOf,
                                                        int n,
                                                        int rows,
                                                        const int* __restrict__ some,
                                                        int count,
                                                        double* __restrict__ taken)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < rows * count)
    {
        taken[i] = sums[static_cast<size_t>(i / count) * n + sortedOf[some[i % count]]];
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads) writeKernel(const double* __restrict__ sums,
                                                         const int* __restrict__ order,
                                                         int n,
                                                         int sets,
                                                         Real* __restrict__ potentials,
                                                         Real* __restrict__ fields)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i >= n)
    {
        return;
    }
    for (int s = 0; s < sets; s++)
    {
        const double* of = sums + static_cast<size_t>(s) * 4 * n + i;
        const size_t to  = static_cast<size_t>(order[i]) * sets + s;
        if (potentials != nullptr)
        {
            potentials[to] = static_cast<Real>(of[0]);
        }
        for (int k = 0; fields != nullptr && k < 3; k++)
        {
            fields[3 * to + k] = static_cast<Real>(of[static_cast<size_t>(1 + k) * n]);
        }
    }
}

__global__ void __launch_bounds__(c_threads)
        rowKernel(const double* __restrict__ values, int n, double* sums)
{
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += c_threads)
    {
        sum += values[static_cast<size_t>(blockIdx.x) * n + i];
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0)
    {
        sums[blockIdx.x] = sum;
    }
}

//! Blocks of a loop in strides of the launch.
int blocksOfLook(long long count)
{
    return std::min(blocksFor(count, c_threads), c_blocks);
}

} // namespace

void LookAtPoints::begin(cudaStream_t stream)
{
    constexpr double c_all = std::numeric_limits<double>::infinity();
    const long long low = ordered(bitsOf(c_all)), high = ordered(bitsOf(-c_all));
    const Found none{ { low, low, low }, { high, high, high }, INT_MAX, INT_MAX, INT_MAX };
    found_.upload(&none, 1, stream);
}

void LookAtPoints::atPositions(const double* x, int n, bool areParticles, cudaStream_t stream)
{
    if (n > 0)
    {
        const auto kernel = areParticles ? positionKernel<true> : positionKernel<false>;
        kernel<<<blocksOfLook(n), c_threads, 0, stream>>>(x, n, found_.data());
        checkLaunch("looking at positions");
    }
}

template<class Real>
void LookAtPoints::atCharges(const Real* q, int n, int sets, cudaStream_t stream)
{
    const size_t count = static_cast<size_t>(n) * sets;
    if (count > 0)
    {
        chargeKernel<<<blocksOfLook(static_cast<long long>(count)), c_threads, 0, stream>>>(
                q, count, sets, found_.data());
        checkLaunch("looking at charges");
    }
}

PointsSeen LookAtPoints::end(cudaStream_t stream)
{
    Found found;
    found_.download(&found, 1, stream);
    PointsSeen seen{ {}, {}, found.charge, found.particle, found.point };
    for (int k = 0; k < 3; k++)
    {
        seen.low[k]  = valueOf(ordered(found.low[k]));
        seen.high[k] = valueOf(ordered(found.high[k]));
    }
    return seen;
}

void lookAtResults(const double* sums,
                   const int* order,
                   int n,
                   int sets,
                   ResultsSeen* seen,
                   cudaStream_t stream)
{
    static const ResultsSeen none{ 0, INT_MAX };
    copyAsync(seen, &none, 1, stream, "copying to the GPU");
    const size_t count = static_cast<size_t>(sets) * 4 * n;
    if (count > 0)
    {
        resultKernel<<<blocksOfLook(static_cast<long long>(count)), c_threads, 0, stream>>>(
                sums, order, count, n, seen);
        checkLaunch("looking at results");
    }
}

void invertOrder(const int* order, int n, int* sortedOf, cudaStream_t stream)
{
    if (n > 0)
    {
        invertKernel<<<blocksFor(n, c_threads), c_threads, 0, stream>>>(order, n, sortedOf);
        checkLaunch("inverting an order");
    }
}

void takeResults(const double* sums,
                 const int* sortedOf,
                 int n,
                 int sets,
                 const int* some,
                 int count,
                 double* taken,
                 cudaStream_t stream)
{
    if (count > 0)
    {
        takeKernel<<<blocksFor(4LL * sets * count, c_threads), c_threads, 0, stream>>>(
                sums, sortedOf, n, 4 * sets, some, count, taken);
        checkLaunch("taking results");
    }
}

template<class Real>
void writeResults(const double* sums,
                  const int* order,
                  int n,
                  int sets,
                  Real* potentials,
                  Real* fields,
                  cudaStream_t stream)
{
    if (n > 0)
    {
        writeKernel<<<blocksFor(n, c_threads), c_threads, 0, stream>>>(
                sums, order, n, sets, potentials, fields);
        checkLaunch("writing results");
    }
}

void sumRows(const double* values, int rows, int n, double* sums, cudaStream_t stream)
{
    if (rows > 0)
    {
        rowKernel<<<rows, c_threads, 0, stream>>>(values, n, sums);
        checkLaunch("summing rows");
    }
}

template void LookAtPoints::atCharges(const float*, int, int, cudaStream_t);
template void LookAtPoints::atCharges(const double*, int, int, cudaStream_t);
template void writeResults(const double*, const int*, int, int, float*, float*, cudaStream_t);
template void writeResults(const double*, const int*, int, int, double*, double*, cudaStream_t);

} // namespace farfield
