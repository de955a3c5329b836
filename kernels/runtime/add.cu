/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "runtime/add.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

template<class Real>
__global__ void addValues(const Real* values, size_t n, Real* to)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < n)
    {
        to[k] += values[k];
    }
}

} // namespace

template<class Real>
void addOnDevice(const Real* values, size_t n, Real* to, cudaStream_t stream)
{
    if (n > 0)
    {
        addValues<Real><<<blocksFor(n, c_threads), c_threads, 0, stream>>>(values, n, to);
        checkLaunch("adding arrays");
    }
}

template void addOnDevice(const float*, size_t, float*, cudaStream_t);
template void addOnDevice(const double*, size_t, double*, cudaStream_t);

} // namespace farfield
