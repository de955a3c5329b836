/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "microkernels.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace farfield
{
namespace bench
{
namespace
{

constexpr int c_threads     = 256;
constexpr int c_accumulator = 32; //!< independent sums per thread
constexpr int c_unroll      = 8;

void checkLaunch(const char* kernel)
{
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
    {
        throw std::runtime_error(std::string(kernel) + " failed: " + cudaGetErrorString(status));
    }
}

int coefficients(const M2lWork& work)
{
    return (work.order + 1) * (work.order + 1);
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        multiplyAddOnly(long long rounds, Real factor, Real* sink)
{
    Real sum[c_accumulator];
#pragma unroll
    for (int k = 0; k < c_accumulator; k++)
    {
        sum[k] = static_cast<Real>(threadIdx.x + k);
    }
    const Real shift = factor * Real(0.5);
    for (long long round = 0; round < rounds / c_unroll; round++)
    {
#pragma unroll
        for (int k = 0; k < c_accumulator * c_unroll; k++)
        {
            sum[k % c_accumulator] = sum[k % c_accumulator] * factor + shift;
        }
    }
#pragma unroll 1
    for (int round = 0; round < static_cast<int>(rounds % c_unroll); round++)
    {
#pragma unroll
        for (int k = 0; k < c_accumulator; k++)
        {
            sum[k] = sum[k] * factor + shift;
        }
    }
    Real total = Real(0);
#pragma unroll
    for (int k = 0; k < c_accumulator; k++)
    {
        total += sum[k];
    }
    if (total == Real(-1)) // positive, but the compiler does not know
    {
        *sink = total;
    }
}

//! Sixteen bytes.
template<class Real>
struct alignas(16) Packet
{
    Real v[16 / sizeof(Real)];
};

//! A block per target.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        streamOperators(int n,
                        int sources,
                        int padded,
                        const Packet<Real>* __restrict__ operators,
                        const Real* __restrict__ expansions,
                        Real* sink)
{
    constexpr int c_size = 16 / sizeof(Real);
    Real sum             = Real(0);
    for (int s = 0; s < sources; s++)
    {
        // neighbouring blocks read neighbouring expansions, as targets do
        const long long cell = (static_cast<long long>(blockIdx.x) + s) % gridDim.x;
        Real m               = Real(0);
        for (int j = threadIdx.x; j < n; j += c_threads)
        {
            m += expansions[cell * n + j];
        }
        sum += m;
        const Packet<Real>* T = operators + static_cast<size_t>(s) * padded;
#pragma unroll 4
        for (int k = threadIdx.x; k < padded; k += c_threads)
        {
            const Packet<Real> t = T[k];
#pragma unroll
            for (int e = 0; e < c_size; e++)
            {
                sum += t.v[e] * m;
            }
        }
    }
    if (sum == Real(-1e30))
    {
        *sink = sum;
    }
}

//! Packets of an operator.
template<class Real>
int packets(const M2lWork& work)
{
    constexpr int c_size = 16 / sizeof(Real);
    return coefficients(work) * coefficients(work) / c_size;
}

} // namespace

int sourcesPerCell(int ws)
{
    const int w = 2 * ws + 1;
    return 7 * w * w * w;
}

double classicalMultiplyAdds(const M2lWork& work)
{
    const double n = coefficients(work);
    return static_cast<double>(work.cells) * sourcesPerCell(work.ws) * n * n;
}

double symmetricMultiplyAdds(const M2lWork& work, bool skipZeros)
{
    // coefficients per class of parities under x -> -x, y -> -y, z -> -z
    double members[8] = {};
    for (int l = 0; l <= work.order; l++)
    {
        for (int m = -l; m <= l; m++)
        {
            const int x = ((m % 2 != 0) != (m < 0)) ? 1 : 0;
            const int y = m < 0 ? 2 : 0;
            const int z = (l + m) % 2 != 0 ? 4 : 0;
            members[x | y | z] += 1;
        }
    }
    // displacements are 0 ... 2 ws + 1 in every component, up to reflections
    const int reach = 2 * work.ws + 1;
    double sum      = 0;
    for (int x = 0; x <= reach; x++)
    {
        for (int y = 0; y <= reach; y++)
        {
            for (int z = 0; z <= reach; z++)
            {
                if (std::max({ x, y, z }) <= work.ws)
                {
                    continue;
                }
                const int zeros = (x == 0 ? 1 : 0) | (y == 0 ? 2 : 0) | (z == 0 ? 4 : 0);
                for (int a = 0; a < 8; a++)
                {
                    for (int b = 0; b < 8; b++)
                    {
                        if (!skipZeros || ((a ^ b) & zeros) == 0)
                        {
                            sum += members[a] * members[b];
                        }
                    }
                }
            }
        }
    }
    return static_cast<double>(work.cells) * sum;
}

template<class Real>
double computeBound(double multiplyAdds, Real* sink, cudaStream_t stream)
{
    int device = 0, processors = 1;
    if (cudaGetDevice(&device) != cudaSuccess
        || cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device)
                   != cudaSuccess)
    {
        throw std::runtime_error("computeBound: no GPU");
    }
    const int blocks       = 4 * processors;
    const double perRound  = static_cast<double>(c_threads) * c_accumulator * blocks;
    const long long rounds = std::max(static_cast<long long>(multiplyAdds / perRound + 0.5), 1LL);
    multiplyAddOnly<<<blocks, c_threads, 0, stream>>>(rounds, static_cast<Real>(0.75), sink);
    checkLaunch("multiplyAddOnly");
    return perRound * static_cast<double>(rounds);
}

size_t memoryBoundOperators(const M2lWork& work)
{
    const size_t n = coefficients(work);
    return sourcesPerCell(work.ws) * n * n;
}

size_t memoryBoundExpansions(const M2lWork& work)
{
    return static_cast<size_t>(work.cells) * coefficients(work);
}

template<class Real>
double memoryBoundBytes(const M2lWork& work)
{
    return static_cast<double>(work.cells) * sourcesPerCell(work.ws)
           * (16.0 * packets<Real>(work) + sizeof(Real) * static_cast<double>(coefficients(work)));
}

template<class Real>
void memoryBound(const M2lWork& work,
                 const Real* operators,
                 const Real* expansions,
                 Real* sink,
                 cudaStream_t stream)
{
    if (work.cells == 0)
    {
        return;
    }
    streamOperators<<<static_cast<int>(work.cells), c_threads, 0, stream>>>(
            coefficients(work),
            sourcesPerCell(work.ws),
            packets<Real>(work),
            reinterpret_cast<const Packet<Real>*>(operators),
            expansions,
            sink);
    checkLaunch("streamOperators");
}

template double computeBound<float>(double, float*, cudaStream_t);
template double computeBound<double>(double, double*, cudaStream_t);
template double memoryBoundBytes<float>(const M2lWork&);
template double memoryBoundBytes<double>(const M2lWork&);
template void memoryBound<float>(const M2lWork&, const float*, const float*, float*, cudaStream_t);
template void
memoryBound<double>(const M2lWork&, const double*, const double*, double*, cudaStream_t);

} // namespace bench
} // namespace farfield
