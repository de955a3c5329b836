/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Product of the operators of the periodic M2L with the spectrum of the multipoles on
 *         tensor cores, in single precision.
 *
 *  A representative with its four copies is a symmetric matrix times 8 columns: the shape of the
 *  matrix instruction; where there is one copy, single_copy.cuh is faster. Both factors are split
 *  into a leading and a trailing part of 11 bits each and the product of the trailing parts is left
 *  out, so that the result has single precision. Ootomo and Yokota, Int. J. High Perform. Comput.
 *  Appl. 36, 475 (2022), doi:10.1177/10943420221090256.
 *
 *  Operators are stored as blocks of 8 x 8 elements on and below the diagonal, one row of blocks
 *  after another. In shared memory a block can be read by rows and, for the other triangle, by
 *  columns without conflicts.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_TENSOR_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_TENSOR_CUH

#include <algorithm>
#include <type_traits>

#include <cuda_pipeline.h>

#include "m2l_periodic/index.h"
#include "runtime/device.h"
#include "runtime/tf32.cuh"

namespace farfield
{

//! Most threads of a block.
constexpr int c_tensorThreads = 768;

//! Where elements of an operator are stored.
struct BlockedOperator
{
    int n;
    int blocks;   //!< rows of blocks
    int lastRows; //!< of the last row of blocks; others have 8

    FARFIELD_HD explicit BlockedOperator(int size) :
        n(size), blocks((size + 7) / 8), lastRows(size - 8 * (blocks - 1))
    {
    }
    FARFIELD_HD int size() const { return lastBase() + 8 * lastRows * blocks; }
    //! First element of the last row of blocks.
    FARFIELD_HD int lastBase() const { return 64 * triangle(blocks - 1); }
    //! Where an element is in its block: its halves of four change places in the lower rows.
    FARFIELD_HD static int inBlock(int row, int column) { return 8 * row + (column ^ (row & 4)); }
    //! Row of an element.
    FARFIELD_HD int row(int at) const
    {
        if (at >= lastBase())
        {
            return 8 * (blocks - 1) + (at - lastBase()) / 8 % lastRows;
        }
        return 8 * blockRow(at) + at % 64 / 8;
    }
    //! Column of an element, beyond the last one if it is not used.
    FARFIELD_HD int column(int at) const
    {
        const bool last = at >= lastBase();
        const int block =
                last ? (at - lastBase()) / (8 * lastRows) : at / 64 - triangle(blockRow(at));
        const int within = last ? (at - lastBase()) / 8 % lastRows : at % 64 / 8;
        return 8 * block + ((at % 8) ^ (within & 4));
    }

private:
    FARFIELD_HD int blockRow(int at) const
    {
        int row = 0;
        while (64 * triangle(row + 1) <= at)
        {
            row++;
        }
        return row;
    }
};

//! How the product is spread over threads; the same for all blocks.
struct TensorShape
{
    int n;
    int tiles;      //!< of 16 rows, per warp; 0: does not fit
    int warps;      //!< per representative
    int width;      //!< neighbouring representatives of a block
    int columnSize; //!< elements of the staged spectrum, per representative
    int groupSize;  //!< elements of shared memory per representative

    int threads() const { return 32 * warps * width; }
};

//! Parameters as those of multiplyShape(); the second is the shared memory of a multiprocessor.
inline TensorShape
tensorShape(int n, int representatives, int neighbours, size_t shared, size_t total, int processors)
{
    TensorShape s           = {};
    const BlockedOperator o = BlockedOperator(n);
    s.n                     = n;
    s.columnSize            = 64 * o.blocks;
    s.groupSize             = s.columnSize + o.size();
    const size_t bytes      = s.groupSize * sizeof(float);
    if (bytes > shared)
    {
        return s;
    }
    // few representatives: a tile per warp, otherwise as many as share their columns well
    const int rowTiles = (o.blocks + 1) / 2;
    const int most     = (representatives >= 16 * processors) ? 3 : 1;
    for (int tiles = 1, least = 0; tiles <= 3; tiles++)
    {
        const int warps = (rowTiles + tiles - 1) / tiles;
        const int cost  = warps * (4 * tiles + 2);
        const bool fits = 32 * warps <= c_tensorThreads;
        if (fits && (least == 0 || (tiles <= most && cost <= least)))
        {
            least   = cost;
            s.tiles = tiles;
            s.warps = warps;
        }
    }
    if (s.tiles == 0)
    {
        return s;
    }
    // neighbours share sectors of the spectrum: as many as leave most representatives at work
    s.width     = 1;
    double best = 0;
    for (int width = 1; width <= 4 && width <= neighbours; width++)
    {
        const int perRow = (neighbours + width - 1) / width;
        if (width > 1
            && (width * bytes > shared || 32 * s.warps * width > c_tensorThreads
                || representatives / width < 4 * processors))
        {
            break;
        }
        const auto resident     = static_cast<double>(total / (width * bytes + 1024));
        const double atWork     = resident * neighbours / perRow;
        const double withoutTwo = (width == 1) ? 0.8 * atWork : atWork; // sectors are wasted
        if (withoutTwo >= best)
        {
            best    = withoutTwo;
            s.width = width;
        }
    }
    return s;
}

//! A number as the sum of two that the tensor cores take.
struct SplitNumber
{
    float high, low;

    __device__ explicit SplitNumber(float value)
    {
        high = __uint_as_float(__float_as_uint(value) & 0xffffe000U);
        low  = value - high;
    }
};

//! Where columns lie with respect to the diagonal.
enum class Side
{
    Lower,
    Mixed,
    Upper
};

/*! \brief The rows of a warp of operator times spectrum.
 *  \param[in]  x      [8 blocks][8], zero beyond the last coefficient
 *  \param[in]  first  tile
 *  \param[out] sum    as that of multiplyTile() */
template<int Tiles>
__device__ __forceinline__ void multiplyRows(const BlockedOperator& o,
                                             const float* kappa,
                                             const float* x,
                                             int first,
                                             float (&sum)[Tiles][4])
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g    = lane / 4;
    const int t    = lane % 4;
    const int last = o.blocks - 1;
    // rows that the last row of blocks does not have repeat its first: nothing uses them
    const int lastRow    = (g < o.lastRows) ? g : 0;
    const int lastColumn = (t < o.lastRows) ? t : 0;
    const int lastHigh   = (t + 4 < o.lastRows) ? t + 4 : 0;
    const int ofRow      = o.inBlock(g, t);
    const int ofColumn   = o.inBlock(t, g);
    const int columnNext = o.inBlock(t + 4, g) - ofColumn;

    int block[2 * Tiles], row[2 * Tiles], rowStep[2 * Tiles];
#pragma unroll
    for (int r = 0; r < 2 * Tiles; r++)
    {
        block[r]        = min(2 * first + r, last);
        const bool tail = block[r] == last;
        row[r]          = 64 * triangle(block[r]) + (tail ? o.inBlock(lastRow, t) : ofRow);
        rowStep[r]      = tail ? 8 * o.lastRows : 64;
    }
    // small terms apart: fewer roundings of the large ones, and more to do at a time
    float small[Tiles][4];
#pragma unroll
    for (int r = 0; r < Tiles; r++)
    {
#pragma unroll
        for (int c = 0; c < 4; c++)
        {
            sum[r][c]   = 0;
            small[r][c] = 0;
        }
    }
    // Lower: all of k is left of or on the diagonal in the rows of the warp; Upper: right of it.
    const auto step = [&](auto mode, int k, int column, int columnBlock, int nextOfColumn)
    {
        constexpr Side c_side = decltype(mode)::value;
        const float* xk       = x + 64 * k + 8 * t + g;
        const SplitNumber b0(xk[0]);
        const SplitNumber b1(xk[32]);
        const float bHigh[2] = { b0.high, b1.high };
        const float bLow[2]  = { b0.low, b1.low };
#pragma unroll
        for (int r = 0; r < Tiles; r++)
        {
            float aHigh[4], aLow[4];
#pragma unroll
            for (int h = 0; h < 2; h++)
            {
                const int q = 2 * r + h;
                const bool lower =
                        c_side == Side::Lower || (c_side == Side::Mixed && k <= block[q]);
                // rows of the warp follow each other, unless one repeats the last
                const int upper =
                        column
                        + (c_side == Side::Upper ? 128 * first + 64 * q : block[q] * columnBlock);
                // the element four columns on is in the other half of its row of the block
                const int at   = lower ? row[q] + k * rowStep[q] : upper;
                const int next = lower ? at ^ 4 : at + nextOfColumn;
                const SplitNumber a0(kappa[at]);
                const SplitNumber a1(kappa[next]);
                aHigh[h]     = a0.high;
                aLow[h]      = a0.low;
                aHigh[h + 2] = a1.high;
                aLow[h + 2]  = a1.low;
            }
            multiplyTile(small[r], aLow, bHigh);
            multiplyTile(sum[r], aHigh, bHigh);
            multiplyTile(small[r], aHigh, bLow);
        }
    };
    using Lower = std::integral_constant<Side, Side::Lower>;
    using Mixed = std::integral_constant<Side, Side::Mixed>;
    using Upper = std::integral_constant<Side, Side::Upper>;
    int k       = 0;
#pragma unroll 1
    for (; k < min(block[0] + 1, last); k++)
    {
        step(Lower(), k, 0, 0, 0);
    }
    int column = ofColumn + 64 * triangle(k);
#pragma unroll 1
    for (; k < min(block[2 * Tiles - 1] + 1, last); k++)
    {
        step(Mixed(), k, column, 64, columnNext);
        column += 64 * (k + 1);
    }
#pragma unroll 1
    for (; k < last; k++)
    {
        step(Upper(), k, column, 64, columnNext);
        column += 64 * (k + 1);
    }
    const int lastElement = o.inBlock(lastColumn, g);
    step(Mixed(),
         last,
         64 * triangle(last) + lastElement,
         8 * o.lastRows,
         o.inBlock(lastHigh, g) - lastElement);
#pragma unroll
    for (int r = 0; r < Tiles; r++)
    {
#pragma unroll
        for (int c = 0; c < 4; c++)
        {
            sum[r][c] += small[r][c];
        }
    }
}

/*! \brief Replaces M by L in the spectrum.
 *  \param[in]     kappa     [representatives][stride], see BlockedOperator
 *  \param[in]     phases    Phase::code() of the copies of a coefficient, 4 bits each
 *  \param[in,out] spectrum  [n][waves.stride] */
template<int Tiles>
__global__ void __launch_bounds__(c_tensorThreads)
        tensorMultiplyKernel(TensorShape shape,
                             WaveGrid waves,
                             size_t stride,
                             const float* __restrict__ kappa,
                             const unsigned int* __restrict__ phases,
                             Complex<float>* __restrict__ spectrum)
{
    extern __shared__ __align__(16) unsigned char s_multiply[];
    float* const shared     = reinterpret_cast<float*>(s_multiply);
    const BlockedOperator o = BlockedOperator(shape.n);
    constexpr int c_copies  = 4;

    const BlockOfWaves block(waves, shape.width, static_cast<int>(blockIdx.x));
    const int groupThreads = 32 * shape.warps;
    const int group        = threadIdx.x / groupThreads;
    const int thread       = threadIdx.x - group * groupThreads;
    const bool active      = block.has(group);
    float* const own       = shared + group * shape.groupSize;
    float* const staged    = own + shape.columnSize;
    if (active)
    {
        const float* from = kappa + static_cast<size_t>(block.representative(group)) * stride;
        const int count   = o.size();
        for (int i = 4 * thread; i < count; i += 4 * groupThreads)
        {
            __pipeline_memcpy_async(staged + i, from + i, 16);
        }
    }
    __pipeline_commit();

    // Neighbouring threads take neighbouring wave vectors; each keeps its wave vector.
    const int perCoefficient    = shape.width * c_copies;
    const int member            = threadIdx.x % shape.width;
    const int copy              = threadIdx.x / shape.width % c_copies;
    const int first             = threadIdx.x / perCoefficient;
    const int step              = blockDim.x / perCoefficient;
    const int wave              = copy < waves.copies ? block.wave(member, copy) : -1;
    Complex<float>* const field = spectrum + wave;
    float* const column         = shared + member * shape.groupSize + 2 * copy;
    constexpr int c_ahead       = 6;
    for (int begin = first; begin < 8 * o.blocks; begin += c_ahead * step)
    {
        Complex<float> v[c_ahead];
        unsigned int code[c_ahead];
#pragma unroll
        for (int k = 0; k < c_ahead; k++)
        {
            const int j = begin + k * step;
            v[k]        = (wave >= 0 && j < o.n) ? field[static_cast<size_t>(j) * waves.stride]
                                                 : Complex<float>{ 0, 0 };
            code[k]     = phases[min(j, o.n - 1)];
        }
#pragma unroll
        for (int k = 0; k < c_ahead; k++)
        {
            const int j = begin + k * step;
            if (j < 8 * o.blocks)
            {
                *reinterpret_cast<Complex<float>*>(column + 8 * j) =
                        Phase(code[k] >> (4 * copy)).forward(v[k]);
            }
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();

    const int tile = thread / 32 * Tiles;
    const int g    = thread % 32 / 4;
    const int t    = thread % 4;
    float sum[Tiles][4];
    if (active)
    {
        multiplyRows<Tiles>(o, staged, own, tile, sum);
    }
    if (shape.width == 1)
    {
        // nothing to gain from an exchange: the copy t of the results is that of the reading
        if (wave >= 0)
        {
#pragma unroll
            for (int r = 0; r < 2 * Tiles; r++)
            {
                const int j = 16 * tile + 8 * r + g;
                if (j < o.n)
                {
                    field[static_cast<size_t>(j) * waves.stride] =
                            Phase(phases[j] >> (4 * t))
                                    .backward(Complex<float>{ sum[r / 2][r % 2 * 2],
                                                              sum[r / 2][r % 2 * 2 + 1] });
                }
            }
        }
        return;
    }
    __syncthreads();
    if (active)
    {
#pragma unroll
        for (int r = 0; r < 2 * Tiles; r++)
        {
            const int j = 16 * tile + 8 * r + g;
            if (j < o.n)
            {
                *reinterpret_cast<Complex<float>*>(
                        own + 8 * j + 2 * t) = { sum[r / 2][r % 2 * 2], sum[r / 2][r % 2 * 2 + 1] };
            }
        }
    }
    __syncthreads();
    if (wave < 0)
    {
        return;
    }
#pragma unroll 2
    for (int j = first; j < o.n; j += step)
    {
        field[static_cast<size_t>(j) * waves.stride] =
                Phase(phases[j] >> (4 * copy))
                        .backward(*reinterpret_cast<const Complex<float>*>(column + 8 * j));
    }
}

//! Calls use with the kernel of a shape.
template<class Use>
void withTensorKernel(int tiles, const Use& use)
{
    switch (tiles)
    {
        case 1:
            use(tensorMultiplyKernel<1>);
            break;
        case 2:
            use(tensorMultiplyKernel<2>);
            break;
        default:
            use(tensorMultiplyKernel<3>);
            break;
    }
}

} // namespace farfield

#endif
