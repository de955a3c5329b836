/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a block of threads computes of a product: some rows of an operator times the expansions of some cells.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_PRODUCT_TILES_CUH
#define FARFIELD_KERNELS_PAIR_KERNELS_PRODUCT_TILES_CUH

#include "runtime/tf32.cuh"

namespace farfield
{

//! Threads of a block, and cells that it has.
constexpr int c_productThreads = 128, c_productCells = 64;

//! Numbers that are read at once.
template<class Real>
struct alignas(16) Vector16
{
    static constexpr int c_size = 16 / sizeof(Real);
    Real value[c_size];
};

/*! \brief By multiply-adds: a thread has PerThread rows of four cells. */
template<int PerThread, class RealType>
class PlainTile
{
public:
    using Real = RealType;
    //! Threads along cells and along rows.
    static constexpr int c_columnThreads = 16, c_rowThreads = 8;
    static constexpr int c_perColumn = c_productCells / c_columnThreads;
    static constexpr int c_rows      = c_rowThreads * PerThread;
    //! Coefficients of the sources in shared memory at a time are a multiple of this, and at most so many.
    static constexpr int c_step = Vector16<Real>::c_size, c_mostDepth = 18;
    //! Distance of columns of operators.
    static constexpr int c_columnStride = c_rows;

    //! Distance of cells: an odd number of 16 bytes puts neighbours into different banks.
    FARFIELD_HD static constexpr int cellStride(int depth) { return (depth / c_step | 1) * c_step; }
    //! \param[in] x  of cells, cellStride apart
    __device__ __forceinline__ void
    multiply(const Real* T, const Real* x, int cellStride, int depth)
    {
        constexpr int c_vector = c_step;
        const int column       = threadIdx.x % c_columnThreads,
                  row          = threadIdx.x / c_columnThreads * PerThread;
#pragma unroll 2
        for (int k = 0; k < depth; k += c_vector)
        {
            Vector16<Real> b[c_perColumn];
#pragma unroll
            for (int j = 0; j < c_perColumn; j++)
            {
                b[j] = *reinterpret_cast<const Vector16<Real>*>(
                        x + (column + j * c_columnThreads) * cellStride + k);
            }
#pragma unroll
            for (int v = 0; v < c_vector; v++)
            {
                Real a[PerThread];
#pragma unroll
                for (int i = 0; i < PerThread; i += c_vector)
                {
                    const auto values = *reinterpret_cast<const Vector16<Real>*>(
                            T + (k + v) * c_columnStride + row + i);
#pragma unroll
                    for (int m = 0; m < c_vector; m++)
                    {
                        a[i + m] = values.value[m];
                    }
                }
#pragma unroll
                for (int i = 0; i < PerThread; i++)
                {
#pragma unroll
                    for (int j = 0; j < c_perColumn; j++)
                    {
                        sums_[i][j] += a[i] * b[j].value[v];
                    }
                }
            }
        }
    }
    //! After each operator.
    __device__ __forceinline__ void finishOperator() {}
    //! Calls write(row, cell, sum) for all that this thread has.
    template<class Write>
    __device__ __forceinline__ void forEach(const Write& write) const
    {
        const int column = threadIdx.x % c_columnThreads,
                  row    = threadIdx.x / c_columnThreads * PerThread;
#pragma unroll
        for (int j = 0; j < c_perColumn; j++)
        {
#pragma unroll
            for (int i = 0; i < PerThread; i++)
            {
                write(row + i, column + j * c_columnThreads, sums_[i][j]);
            }
        }
    }

private:
    Real sums_[PerThread][c_perColumn] = {};
};

/*! \brief By tensor cores: a number is rounded to 11 significant bits, or it is the sum of two such numbers and all
 *         products but those of the two small ones are added.
 *
 *  H. Ootomo and R. Yokota, Int. J. High Perform. Comput. Appl. 36, 475 (2022), doi:10.1177/10943420221090256. Tensor
 *  cores cut off what does not fit into a sum: after each operator their sums are added to others by rounding. Four warps
 *  have 16 Pieces rows and 32 cells each.
 *  \tparam IsRounded  without the small numbers */
template<int Pieces, bool IsRounded>
class TensorTile
{
public:
    using Real                  = float;
    static constexpr int c_rows = 32 * Pieces;
    static constexpr int c_step = 8, c_mostDepth = 32;
    //! Threads of a warp read from different banks.
    static constexpr int c_columnStride = c_rows + 8;

    FARFIELD_HD static constexpr int cellStride(int depth) { return depth + 4; }
    __device__ __forceinline__ void
    multiply(const float* T, const float* x, int cellStride, int depth)
    {
        for (int k = 0; k < depth; k += c_step)
        {
            multiplyStep(T + k * c_columnStride, x + k, cellStride);
        }
    }
    __device__ __forceinline__ void finishOperator()
    {
#pragma unroll
        for (int i = 0; i < Pieces; i++)
        {
#pragma unroll
            for (int j = 0; j < c_columns; j++)
            {
#pragma unroll
                for (int m = 0; m < 4; m++)
                {
                    sums_[i][j][m] += part_[i][j][m];
                    part_[i][j][m] = 0;
                }
            }
        }
    }
    template<class Write>
    __device__ __forceinline__ void forEach(const Write& write) const
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int group = lane / 4, inGroup = lane % 4;
        const int row = warp / 2 * 16 * Pieces, cell = warp % 2 * 32;
#pragma unroll
        for (int j = 0; j < c_columns; j++)
        {
#pragma unroll
            for (int i = 0; i < Pieces; i++)
            {
#pragma unroll
                for (int m = 0; m < 4; m++)
                {
                    write(row + 16 * i + group + m / 2 * 8,
                          cell + 8 * j + 2 * inGroup + m % 2,
                          sums_[i][j][m]);
                }
            }
        }
    }

private:
    //! Pieces of eight cells of a warp.
    static constexpr int c_columns = 4;

    //! Eight coefficients of the sources.
    __device__ __forceinline__ void multiplyStep(const float* T, const float* x, int cellStride)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int group = lane / 4, inGroup = lane % 4;
        const int row = warp / 2 * 16 * Pieces, cell = warp % 2 * 32;
        float b[c_columns][2], smallB[c_columns][2];
#pragma unroll
        for (int j = 0; j < c_columns; j++)
        {
#pragma unroll
            for (int m = 0; m < 2; m++)
            {
                split(x[(cell + 8 * j + group) * cellStride + inGroup + 4 * m],
                      &b[j][m],
                      &smallB[j][m]);
            }
        }
#pragma unroll
        for (int i = 0; i < Pieces; i++)
        {
            float a[4], smallA[4];
#pragma unroll
            for (int m = 0; m < 4; m++)
            {
                split(T[(inGroup + m / 2 * 4) * c_columnStride + row + 16 * i + group + m % 2 * 8],
                      &a[m],
                      &smallA[m]);
            }
#pragma unroll
            for (int j = 0; j < c_columns; j++)
            {
                if constexpr (!IsRounded)
                {
                    multiplyTile(part_[i][j], smallA, b[j]);
                    multiplyTile(part_[i][j], a, smallB[j]);
                }
                multiplyTile(part_[i][j], a, b[j]);
            }
        }
    }

    __device__ static __forceinline__ void split(float value, float* large, float* small)
    {
        *large = roundToTf32(value);
        *small = value - *large;
    }

    float part_[Pieces][c_columns][4] = {}, sums_[Pieces][c_columns][4] = {};
};

} // namespace farfield

#endif
