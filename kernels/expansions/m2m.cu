/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Multipoles of parents from those of their children.
#include "expansions/translations.cuh"

namespace farfield
{
namespace
{

constexpr int c_tile         = DeviceTranslations<float>::c_tile;
constexpr int c_clearThreads = 256;

//! What the kernel of M2M needs besides operators and multipoles; device memory.
template<class Real>
struct UpTask
{
    int n;                 //!< coefficients
    int tiles, evenTiles;  //!< of rows; those of even degree come first
    const int* rowOf;      //!< [tiles][c_tile] coefficient of each row, -1 for none
    const int* terms;      //!< [tiles] columns up to here are not all zero
    const int* count;      //!< as Families
    const int* parentSlot; //!< as Families
    Real* parentM;
    int parentStride;
};

/*! \brief Clears multipoles: those of cells without particles stay zero.
 *
 *  A kernel, as cudaMemsetAsync() has no priority in a graph: it would wait for the near field. */
template<class Real>
__global__ void __launch_bounds__(c_clearThreads) clearMultipoles(Real4<Real>* values, size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * c_clearThreads + threadIdx.x;
    if (at < count)
    {
        values[at] = { 0, 0, 0, 0 };
    }
}

/*! \brief M2M: four warps, one for each pair of octants, share Rows coefficients.
 *
 *  What the loop reads is not in the task: loads through parameters that are known to be constant
 *  take fewer instructions.
 *  \param[in] stride     of the children
 *  \param[in] capacity   as Families
 *  \param[in] operators  [tiles][4 octants][n][c_tile]
 *  \param[in] M          of the children */
template<class Shape, class Real>
__global__ void __launch_bounds__(4 * Shape::c_upGroups * c_warp)
        sumChildren(int stride,
                    int capacity,
                    const UpTask<Real> task,
                    const Real* __restrict__ operators,
                    const Real* __restrict__ M)
{
    constexpr int c_rows    = Shape::c_rows;
    constexpr int c_columns = Shape::c_columns;
    constexpr int c_values  = c_rows * c_columns;
    __shared__ Real part[Shape::c_upGroups][4][c_values][c_warp];
    const int n        = task.n;
    const int tiles    = task.tiles;
    const int families = min(*task.count, capacity);
    const int first    = blockIdx.x * c_warp * c_columns;
    if (first >= families)
    {
        return;
    }
    const int lane  = threadIdx.x % c_warp;
    const int pair  = threadIdx.x / c_warp % 4;
    const int local = threadIdx.x / c_warp / 4;
    const int row   = (blockIdx.y * Shape::c_upGroups + local) * c_rows;
    const int tile  = row / c_tile;
    int family[c_columns];
    int column[c_columns]; // one to read from even where there is no family
#pragma unroll
    for (int k = 0; k < c_columns; k++)
    {
        family[k] = first + k * c_warp + lane;
        column[k] = min(family[k], families - 1);
    }
    if (tile < tiles)
    {
        Real sum[c_rows][c_columns] = {};
        const Real* T =
                operators + (static_cast<size_t>(tile) * 4 + pair) * n * c_tile + row % c_tile;
        const Real* a    = M + static_cast<size_t>(pair) * capacity;
        const Real* b    = M + static_cast<size_t>(7 - pair) * capacity;
        const int length = task.terms[tile];
        Real sign        = (tile < task.evenTiles) ? Real(1) : Real(-1);
        int degree       = 0;
#pragma unroll Shape::c_unroll
        for (int j = 0; j < length; j++)
        {
            if (j == (degree + 1) * (degree + 1))
            {
                degree++;
                sign = -sign;
            }
            Real t[c_rows];
            loadRows(T + static_cast<size_t>(j) * c_tile, t);
            const size_t at = static_cast<size_t>(j) * stride;
#pragma unroll
            for (int k = 0; k < c_columns; k++)
            {
                const Real x = a[at + column[k]] + sign * b[at + column[k]];
#pragma unroll
                for (int r = 0; r < c_rows; r++)
                {
                    sum[r][k] += t[r] * x;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < c_rows; r++)
        {
#pragma unroll
            for (int k = 0; k < c_columns; k++)
            {
                part[local][pair][r * c_columns + k][lane] = sum[r][k];
            }
        }
    }
    __syncthreads();
    if (tile >= tiles)
    {
        return;
    }
#pragma unroll
    for (int v = 0; v < c_values / 4; v++)
    {
        // the columns of a row go to the same warp where they can
        const int value = pair * (c_values / 4) + v;
        const int i     = task.rowOf[row + value / c_columns];
        const int f     = first + (value % c_columns) * c_warp + lane;
        const int slot  = (f < families) ? task.parentSlot[f] : -1;
        if (i >= 0 && slot >= 0)
        {
            task.parentM[static_cast<size_t>(i) * task.parentStride + slot] =
                    (part[local][0][value][lane] + part[local][1][value][lane])
                    + (part[local][2][value][lane] + part[local][3][value][lane]);
        }
    }
}

} // namespace

template<class Real>
void DeviceTranslations<Real>::m2m(const LevelView<Real>& child,
                                   const Families& families,
                                   const LevelView<Real>& parent,
                                   cudaStream_t stream) const
{
    const int n = (order_ + 1) * (order_ + 1);
    // the stride is a multiple of four
    const size_t values = static_cast<size_t>(n) * parent.stride / 4;
    clearMultipoles<<<blocksFor(values, c_clearThreads), c_clearThreads, 0, stream>>>(
            reinterpret_cast<Real4<Real>*>(parent.M), values);
    checkLaunch("clearing multipoles");
    if (families.capacity == 0)
    {
        return;
    }
    const UpTask<Real> task = { n,
                                upTiles_,
                                upEvenTiles_,
                                upRows_.data(),
                                upTerms_.data(),
                                families.count,
                                families.parentSlot,
                                parent.M,
                                parent.stride };
    launchFor<Real>(families.capacity,
                    [&](auto shape)
                    {
                        using Shape = decltype(shape);
                        const dim3 blocks(
                                blocksFor(families.capacity, Shape::c_columns * c_warp),
                                blocksFor(upTiles_ * (c_tile / Shape::c_rows), Shape::c_upGroups));
                        sumChildren<Shape, Real>
                                <<<blocks, 4 * Shape::c_upGroups * c_warp, 0, stream>>>(
                                        child.stride, families.capacity, task, up_.data(), child.M);
                    });
    checkLaunch("M2M");
}

template void DeviceTranslations<float>::m2m(const LevelView<float>&,
                                             const Families&,
                                             const LevelView<float>&,
                                             cudaStream_t) const;
template void DeviceTranslations<double>::m2m(const LevelView<double>&,
                                              const Families&,
                                              const LevelView<double>&,
                                              cudaStream_t) const;

} // namespace farfield
