/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Product of the operator of every wave vector with the spectrum of the multipoles.
 *
 *  For rectangular boxes where tensor.cuh does not serve: in double precision, and on old devices.
 *  Reading the operators decides the time, so that only one triangle of each is stored and read,
 *  once for the four copies of a representative (8 columns with real and imaginary parts). A block
 *  takes neighbouring wave vectors: their spectra share sectors of memory.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_MULTIPLY_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_MULTIPLY_CUH

#include <algorithm>

#include <cuda_pipeline.h>

#include "m2l_periodic/index.h"
#include "runtime/device.h"

namespace farfield
{

//! Rows of operators are cut at multiples of this into chunks that fit into shared memory.
constexpr int c_chunkRows = 8;
//! Real and imaginary parts of four copies.
constexpr int c_columns = 8;
//! Most threads of a block.
constexpr int c_multiplyThreads = 512;
//! Most chunks of an operator.
constexpr int c_maxChunks = 64;

//! How the product is spread over threads; the same for all blocks.
struct MultiplyShape
{
    int n;      //!< coefficients
    int rows;   //!< rows per lane
    int tiles;  //!< warps that share the rows
    int splits; //!< warps that share the columns of a row
    int width;  //!< neighbouring representatives of a block, a power of 2
    int chunks;
    int chunkEnd[c_maxChunks];
    int columnSize; //!< elements of the staged spectrum, per representative
    int groupSize;  //!< elements of shared memory per representative

    int groupThreads() const { return 32 * tiles * splits; }
    int threads() const { return groupThreads() * width; }
};

/*! \brief Chooses a shape.
 *  \param[in] real        size of a number
 *  \param[in] waves       representatives, and how many of them are neighbours
 *  \param[in] shared      shared memory a block may have, bytes
 *  \param[in] processors  multiprocessors of the device */
inline MultiplyShape multiplyShape(int n,
                                   size_t real,
                                   int representatives,
                                   int neighbours,
                                   size_t shared,
                                   int processors)
{
    MultiplyShape s = {};
    s.n             = n;
    // as few idle lanes as possible, then as many rows per lane
    int least = 0;
    for (int rows = 4; rows >= 1; rows--)
    {
        const int tiles  = (n + 32 * rows - 1) / (32 * rows);
        const int padded = 32 * rows * tiles + 8 * tiles;
        if (tiles <= 8 && (least == 0 || padded < least))
        {
            least   = padded;
            s.rows  = rows;
            s.tiles = tiles;
        }
    }
    s.splits          = (s.tiles == 1) ? 4 : 2;
    s.columnSize      = (n * c_columns + 3) / 4 * 4;
    const size_t some = std::min<size_t>(shared, 100 * 1024);
    // partial sums take the place of the operator
    if (s.splits > 1
        && (s.columnSize + static_cast<size_t>(s.splits) * n * c_columns) * real > some)
    {
        s.splits = 1;
    }
    const int sums      = (s.splits > 1) ? s.splits * n * c_columns : 0;
    const size_t whole  = (static_cast<size_t>(s.columnSize) + std::max(triangle(n), sums)) * real;
    const size_t budget = (whole <= some) ? some : std::min<size_t>(shared, 112 * 1024);
    const int capacity  = static_cast<int>(budget / real) - s.columnSize - 4;
    int largest         = sums;
    for (int begin = 0; begin < n;)
    {
        int end = n;
        while (end > begin + c_chunkRows && triangle(end) - triangle(begin) > capacity)
        {
            end = (end - 1) / c_chunkRows * c_chunkRows;
        }
        largest                = std::max(largest, triangle(end) - triangle(begin));
        s.chunkEnd[s.chunks++] = end;
        begin                  = end;
    }
    s.groupSize = s.columnSize + (largest + 3) / 4 * 4;
    // wider blocks waste no sectors, as long as there are enough of them for all processors
    s.width = 1;
    while (s.width < 4 && s.width < neighbours && 2 * s.width * s.groupSize * real <= 72 * 1024
           && 2 * s.width * s.groupThreads() <= c_multiplyThreads
           && representatives / (2 * s.width) >= 2 * processors)
    {
        s.width *= 2;
    }
    return s;
}

/*! \brief Adds to the sums of a lane what a chunk of the operator contributes.
 *  \tparam Whole     the chunk is the whole operator
 *  \param[in] k      rows [begin, end) of the lower triangle
 *  \param[in] first  the rows of the lane are first, first + 32, ... */
template<bool Whole, class Real, int Rows>
__device__ __forceinline__ void multiplyChunk(const Real* k,
                                              const Row<Real, c_columns>* x,
                                              int n,
                                              int begin,
                                              int end,
                                              int from,
                                              int step,
                                              int first,
                                              Real (&sum)[Rows][c_columns])
{
    int own[Rows], start[Rows];
    const int origin = triangle(begin);
#pragma unroll
    for (int r = 0; r < Rows; r++)
    {
        // rows beyond the last repeat it; their sums are not used
        own[r]   = (first + 32 * r < n) ? first + 32 * r : n - 1;
        start[r] = triangle(own[r]) - origin;
    }
    constexpr int c_unroll = (Rows * c_columns * sizeof(Real) > 64) ? 2 : 4;
#pragma unroll c_unroll
    for (int j = from; j < end; j += step)
    {
        const Row<Real, c_columns> xj = x[j];
        const int column              = triangle(j) - origin;
#pragma unroll
        for (int r = 0; r < Rows; r++)
        {
            const bool lower = j <= own[r];
            const int at     = lower ? start[r] + j : column + own[r];
            Real value       = 0;
            if (Whole)
            {
                value = k[at];
            }
            else
            {
                const int row = lower ? own[r] : j;
                if (row >= begin && row < end)
                {
                    value = k[at];
                }
            }
#pragma unroll
            for (int c = 0; c < c_columns; c++)
            {
                sum[r][c] += value * xj.value[c];
            }
        }
    }
}

//! Such blocks that a multiprocessor takes at a time, unless the sums need more registers.
template<class Real, int Rows>
constexpr int c_multiplyBlocks = (sizeof(Real) == 4 && Rows * c_columns <= 24) ? 2 : 1;

/*! \brief Replaces M by L in the spectrum.
 *  \param[in]     kappa     [representatives][stride], rows of the lower triangle
 *  \param[in,out] spectrum  [n][waves.stride] */
template<class Real, int Rows>
__global__ void __launch_bounds__(c_multiplyThreads, c_multiplyBlocks<Real, Rows>)
        multiplyKernel(MultiplyShape shape,
                       WaveGrid waves,
                       size_t stride,
                       const Real* __restrict__ kappa,
                       Complex<Real>* __restrict__ spectrum)
{
    extern __shared__ __align__(16) unsigned char s_multiply[];
    Real* const shared     = reinterpret_cast<Real*>(s_multiply);
    const int n            = shape.n;
    constexpr int c_copies = c_columns / 2;

    const BlockOfWaves block(waves, shape.width, static_cast<int>(blockIdx.x));
    const int groupThreads = 32 * shape.tiles * shape.splits;
    const int group        = threadIdx.x / groupThreads;
    const int thread       = threadIdx.x - group * groupThreads;
    const bool active      = block.has(group);
    Real* const own        = shared + group * shape.groupSize;
    Real* const staged     = own + shape.columnSize;
    const Real* operators  = kappa + static_cast<size_t>(block.representative(group)) * stride;
    const auto stage       = [&](int begin, int end)
    {
        constexpr int c_step = 16 / sizeof(Real);
        const int origin     = triangle(begin);
        const int count      = active ? triangle(end) - origin : 0;
        for (int i = c_step * thread; i < count; i += c_step * groupThreads)
        {
            // rows are padded to whole lines in memory, chunks to 16 bytes in shared memory
            __pipeline_memcpy_async(staged + i, operators + origin + i, 16);
        }
        __pipeline_commit();
    };
    stage(0, shape.chunkEnd[0]);

    // Neighbouring threads take neighbouring wave vectors; each keeps its wave vector.
    const int perCoefficient   = shape.width * c_copies;
    const int member           = threadIdx.x % shape.width;
    const int copy             = (threadIdx.x / shape.width) % c_copies;
    const int firstCoefficient = threadIdx.x / perCoefficient;
    const int coefficientStep  = blockDim.x / perCoefficient;
    const int wave             = block.wave(member, copy);
    Complex<Real>* const field = spectrum + wave;
    Real* const column         = shared + member * shape.groupSize + 2 * copy;
#pragma unroll 4
    for (int j = firstCoefficient; j < n; j += coefficientStep)
    {
        const Complex<Real> v =
                (wave >= 0) ? field[static_cast<size_t>(j) * waves.stride] : Complex<Real>{ 0, 0 };
        *reinterpret_cast<Complex<Real>*>(column + j * c_columns) = Phase(j, copy).forward(v);
    }

    const int warp  = thread / 32;
    const int split = warp % shape.splits;
    const int tile  = (warp / shape.splits) * 32 * Rows;
    const int first = tile + thread % 32;
    const auto* x   = reinterpret_cast<const Row<Real, c_columns>*>(own);
    Real sum[Rows][c_columns];
#pragma unroll
    for (int r = 0; r < Rows; r++)
    {
#pragma unroll
        for (int c = 0; c < c_columns; c++)
        {
            sum[r][c] = 0;
        }
    }
    int begin = 0;
    for (int chunk = 0; chunk < shape.chunks; chunk++)
    {
        const int end = shape.chunkEnd[chunk];
        if (chunk > 0)
        {
            __syncthreads();
            stage(begin, end);
        }
        __pipeline_wait_prior(0);
        __syncthreads();
        if (active)
        {
            if (shape.chunks == 1)
            {
                multiplyChunk<true>(staged, x, n, 0, n, split, shape.splits, first, sum);
            }
            else if (tile < end)
            {
                // rows above the chunk have only columns in it
                const int from = (tile + 32 * Rows <= begin) ? begin : 0;
                multiplyChunk<false>(
                        staged, x, n, begin, end, from + split, shape.splits, first, sum);
            }
        }
        begin = end;
    }

    __syncthreads();
    Real* const partial = (shape.splits > 1) ? staged + split * n * c_columns : own;
#pragma unroll
    for (int r = 0; r < Rows; r++)
    {
        if (first + 32 * r < n)
        {
            auto* to = reinterpret_cast<Row<Real, c_columns>*>(partial) + first + 32 * r;
#pragma unroll
            for (int c = 0; c < c_columns; c++)
            {
                to->value[c] = sum[r][c];
            }
        }
    }
    __syncthreads();
    if (wave < 0)
    {
        return;
    }
    const Real* sums = column + (shape.splits > 1 ? shape.columnSize : 0);
#pragma unroll 2
    for (int j = firstCoefficient; j < n; j += coefficientStep)
    {
        Complex<Real> v = *reinterpret_cast<const Complex<Real>*>(sums + j * c_columns);
        for (int s = 1; s < shape.splits; s++)
        {
            const auto other =
                    *reinterpret_cast<const Complex<Real>*>(sums + (s * n + j) * c_columns);
            v.re += other.re;
            v.im += other.im;
        }
        field[static_cast<size_t>(j) * waves.stride] = Phase(j, copy).backward(v);
    }
}

//! Calls use with the kernel of a shape.
template<class Real, class Use>
void withMultiplyKernel(int rows, const Use& use)
{
    switch (rows)
    {
        case 1:
            use(multiplyKernel<Real, 1>);
            break;
        case 2:
            use(multiplyKernel<Real, 2>);
            break;
        case 3:
            use(multiplyKernel<Real, 3>);
            break;
        default:
            use(multiplyKernel<Real, 4>);
            break;
    }
}

} // namespace farfield

#endif
