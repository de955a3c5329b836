/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Around the products of gemm.cu: operators, operands and results.
 */
#ifndef FARFIELD_KERNELS_M2L_GEMM_KERNELS_CUH
#define FARFIELD_KERNELS_M2L_GEMM_KERNELS_CUH

#include "m2l/family_basis.h"
#include "runtime/layout.h"
#include "runtime/tf32.cuh"

namespace farfield
{
namespace gemmDetail
{

/*! \brief How operands are given to the product.
 *
 *  Tensor cores read 11 significant bits of a float (TF32). Rounding to them is off by 2e-4
 *  (2^-11 / sqrt(3), averaged over mantissas), in both operands and independently, so L by 3e-4 of
 *  the root of the sum of its squared contributions. Forces, to which near cells and finer levels
 *  contribute as well, are off by 1e-4; energies, in which multipoles of low degree weigh more, by
 *  up to 5e-3 of ions without order.
 *
 *  What rounding leaves is multiplied too, by twice the work for as many coefficients: for all of
 *  them, 2^-22 is left, or only for those of low degree, which are most of an expansion: every
 *  degree adds a factor of about a half. */
enum class Format
{
    Native, //!< the arithmetic of Real
    Tf32    //!< rounded, with the remainders of some coefficients
};

//! Without remainders where rounding may cause this relative error of forces: five times what it
//! does, for the sake of energies.
constexpr double c_tf32Rounding = 5e-4;
//! With those of the coefficients of low degree where it may cause this.
constexpr double c_lowDegreeRounding = 5e-5;
//! Coefficients of low degree: 0 to 3.
constexpr int c_lowDegree = 16;

/*! \brief Longest sum of products of rounded operands.
 *
 *  Tensor cores cut off what does not fit into the sum (Ootomo and Yokota, Int. J. High Perform.
 *  Comput. Appl. 36, 475 (2022), doi:10.1177/10943420221090256). Every eight terms that costs up to
 *  2^-24 of the sum, always towards zero: 1e-5 in all here, 4e-5 measured at four times the length,
 *  in the potential of ions with a net charge. Parts are added by rounding. */
constexpr int c_longestSum = 2560;

//! Operands that should stay in the cache, and that have to fit into memory.
constexpr size_t c_cachedBytes = size_t(48) << 20;
constexpr size_t c_mostBytes   = size_t(256) << 20;
constexpr int c_fewColumns     = 256; //!< too few columns cost more than the cache gains

//! The columns of one product and the parts into which its inner dimension is split.
struct Chunk
{
    int first;   //!< family of the first column
    int columns; //!< a multiple of c_warp
    int parts;
    int unitsPerPart;
};

//! The remainders of an operand, [...][units][2 rows]: behind each other those of a unit that are
//! kept and the rounded numbers that they are multiplied with, in either order.
template<class Real>
struct Remainders
{
    int coefficients; //!< of each character, those of the lowest degrees; 0: none
    int rows;         //!< of a unit, a multiple of 4
    Real* Y;
    Real* T;

    FARFIELD_HD int stretch() const { return 2 * rows; }
};

//! A number as tensor cores read it, and what that leaves.
template<Format format, class Real>
struct Rounded
{
    Real high, rest;

    __device__ explicit Rounded(Real value)
    {
        if constexpr (format == Format::Native)
        {
            high = value;
            rest = 0;
        }
        else
        {
            high = roundToTf32(value);
            rest = roundToTf32(value - high);
        }
    }
};

//! The operators of an orbit from those of its first displacement, T [27][n][n]: a thread makes
//! the 64 blocks of one pair of coefficients.
template<Format format, class Real>
__global__ void operatorKernel(FamilyBasis basis,
                               FamilyOrbit orbit,
                               const unsigned char* bits,
                               const Real* T,
                               Real* to,
                               Remainders<Real> remainders)
{
    const int size    = basis.n * basis.n;
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= size)
    {
        return;
    }
    const int i = element / basis.n;
    const int j = element % basis.n;
    // differences of neighbouring operators: in double, once per set-up
    double v[27];
    for (int d = 0; d < 27; d++)
    {
        v[d] = T[static_cast<size_t>(d) * size + element];
    }
    for (int a = 0; a < 8; a++)
    {
        // units of this row
        const size_t units = (static_cast<size_t>(basis.memberOf(a) * basis.n + i) * basis.classes
                              + basis.classOf(a))
                             * basis.paddedUnits;
        for (int source = 0; source < 8; source++)
        {
            const int shift = basis.classOf(a) ^ basis.classOf(source);
            for (int g = 0; g < (1 << orbit.bits); g++)
            {
                if (orbit.shift[g] == shift)
                {
                    const double value = basisElement(v, a ^ bits[i], source ^ bits[j]);
                    const size_t unit  = units + orbit.unit + g;
                    const Rounded<format, Real> rounded(static_cast<Real>(value));
                    to[unit * basis.padded + basis.memberOf(source) * basis.n + j] = rounded.high;
                    if (j < remainders.coefficients)
                    {
                        Real* own = remainders.T + unit * remainders.stretch()
                                    + basis.memberOf(source) * remainders.coefficients + j;
                        own[0]               = rounded.high;
                        own[remainders.rows] = rounded.rest;
                    }
                }
            }
        }
    }
}

//! Coefficients of a block of transformKernel().
constexpr int c_transformRows = 8;

//! X^ [families][basis.width()] from M; blocks of (c_warp, c_transformRows).
template<class Real>
__global__ void __launch_bounds__(c_warp* c_transformRows)
        transformKernel(FamilyBasis basis,
                        const Real* M,
                        int stride,
                        int capacity,
                        const int* count,
                        const unsigned char* bits,
                        Real* X)
{
    __shared__ Real tile[8][c_warp][c_transformRows + 1];
    const int family0 = blockIdx.x * c_warp;
    if (family0 >= *count)
    {
        return;
    }
    const int row0 = blockIdx.y * c_transformRows;
    {
        const int row    = row0 + threadIdx.y;
        const int family = family0 + threadIdx.x;
        Real v[8];
#pragma unroll
        for (int o = 0; o < 8; o++)
        {
            v[o] = (row < basis.n && family < *count)
                           ? M[static_cast<size_t>(row) * stride + o * capacity + family]
                           : Real(0);
        }
        walsh<3>(v);
        const int b = row < basis.n ? bits[row] : 0;
#pragma unroll
        for (int c = 0; c < 8; c++)
        {
            tile[c ^ b][threadIdx.x][threadIdx.y] = v[c];
        }
    }
    __syncthreads();
    // rows of X become the fast index
    const int thread = threadIdx.y * c_warp + threadIdx.x;
    const int row    = row0 + thread % c_transformRows;
    const int family = thread / c_transformRows;
    if (row < basis.paddedMember() && family0 + family < *count)
    {
        for (int a = 0; a < 8; a++)
        {
            X[static_cast<size_t>(family0 + family) * basis.width() + basis.position(a, row)] =
                    tile[a][family][thread % c_transformRows];
        }
    }
}

//! Stores what four rows of a unit leave to be multiplied.
template<class Real>
__device__ __forceinline__ void storeRemainders(const FamilyBasis& basis,
                                                const Remainders<Real>& remainders,
                                                int row,
                                                const Real4<Real>& high,
                                                const Real4<Real>& rest,
                                                size_t unit)
{
    Real* own = remainders.Y + unit * remainders.stretch();
    if (basis.classes == 8)
    {
        if (row < remainders.rows)
        {
            *reinterpret_cast<Real4<Real>*>(own + row)                   = rest;
            *reinterpret_cast<Real4<Real>*>(own + remainders.rows + row) = high;
        }
        return;
    }
    const Real ofHigh[4] = { high.x, high.y, high.z, high.w };
    const Real ofRest[4] = { rest.x, rest.y, rest.z, rest.w };
#pragma unroll
    for (int k = 0; k < 4; k++)
    {
        const int member = (row + k) / basis.n;
        const int i      = row + k - member * basis.n;
        if (row + k < basis.rows && i < remainders.coefficients)
        {
            const int to              = member * remainders.coefficients + i;
            own[to]                   = ofRest[k];
            own[remainders.rows + to] = ofHigh[k];
        }
    }
}

//! Y of one family and orbit: a thread takes four rows of X^.
template<Format format, int bits, class Real>
__device__ __forceinline__ void gatherOrbit(const FamilyBasis& basis,
                                            const FamilyOrbit& orbit,
                                            const Chunk& chunk,
                                            int column,
                                            const int* neighbours,
                                            int capacity,
                                            const Real* X,
                                            Real* Y,
                                            const Remainders<Real>& remainders)
{
    int from[1 << bits];
#pragma unroll
    for (int g = 0; g < (1 << bits); g++)
    {
        from[g] = neighbours[static_cast<size_t>(orbit.neighbour[g]) * capacity + chunk.first
                             + column];
    }
    for (int position = 4 * threadIdx.x; position < basis.width(); position += 4 * blockDim.x)
    {
        Real4<Real> v[1 << bits];
#pragma unroll
        for (int g = 0; g < (1 << bits); g++)
        {
            v[g] = { 0, 0, 0, 0 };
            if (from[g] >= 0)
            {
                v[g] = *reinterpret_cast<const Real4<Real>*>(
                        X + static_cast<size_t>(from[g]) * basis.width() + position);
            }
        }
        walsh<bits>(v);
        const int source = position / basis.padded;
        const int row    = position - source * basis.padded;
#pragma unroll
        for (int g = 0; g < (1 << bits); g++)
        {
            const int unit  = orbit.unit + g;
            const int part  = unit / chunk.unitsPerPart;
            const int batch = (source ^ orbit.shift[g]) * chunk.parts + part;
            const size_t at =
                    (static_cast<size_t>(batch) * chunk.columns + column) * chunk.unitsPerPart
                    + (unit - part * chunk.unitsPerPart);
            const Rounded<format, Real> x(v[g].x), y(v[g].y), z(v[g].z), w(v[g].w);
            const Real4<Real> high = { x.high, y.high, z.high, w.high };
            const Real4<Real> rest = { x.rest, y.rest, z.rest, w.rest };
            *reinterpret_cast<Real4<Real>*>(Y + at * basis.padded + row) = high;
            if (remainders.coefficients > 0)
            {
                storeRemainders(basis, remainders, row, high, rest, at);
            }
        }
    }
}

//! Y [classes][parts][columns][inner]; blocks (column, orbit), a last one for the padding.
template<Format format, class Real>
__global__ void gatherKernel(FamilyBasis basis,
                             const FamilyOrbit* orbits,
                             Chunk chunk,
                             const int* neighbours,
                             int capacity,
                             const int* count,
                             const Real* X,
                             Real* Y,
                             Remainders<Real> remainders)
{
    const int column = blockIdx.x;
    if (chunk.first + column >= *count)
    {
        return; // a column affects its own results only, and nobody reads these
    }
    if (static_cast<int>(blockIdx.y) < basis.orbits)
    {
        const FamilyOrbit& orbit = orbits[blockIdx.y];
        switch (orbit.bits)
        {
            case 1:
                gatherOrbit<format, 1>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
                break;
            case 2:
                gatherOrbit<format, 2>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
                break;
            default:
                gatherOrbit<format, 3>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
        }
        return;
    }
    // units of the last part that no displacement has: their operators are zero
    const int unit0  = basis.units - (chunk.parts - 1) * chunk.unitsPerPart;
    const auto empty = [&](Real* operand, int stretch)
    {
        for (int c = 0; c < basis.classes; c++)
        {
            Real* to = operand
                       + (static_cast<size_t>((c + 1) * chunk.parts - 1) * chunk.columns + column)
                                 * chunk.unitsPerPart * stretch;
            for (int k = unit0 * stretch + threadIdx.x; k < chunk.unitsPerPart * stretch;
                 k += blockDim.x)
            {
                to[k] = 0;
            }
        }
    };
    empty(Y, basis.padded);
    if (remainders.coefficients > 0)
    {
        empty(remainders.Y, remainders.stretch());
    }
}

//! Adds L^ [classes][parts][rows][columns], transformed back, to L; blocks of (c_warp, any).
template<class Real>
__global__ void scatterKernel(FamilyBasis basis,
                              Chunk chunk,
                              const Real* Lhat,
                              const int* count,
                              const unsigned char* bits,
                              Real* L,
                              int stride,
                              int capacity)
{
    const int column = blockIdx.x * c_warp + threadIdx.x;
    const int i      = blockIdx.y * blockDim.y + threadIdx.y;
    const int family = chunk.first + column;
    if (i >= basis.n || family >= *count)
    {
        return;
    }
    const int b = bits[i];
    Real v[8];
#pragma unroll
    for (int c = 0; c < 8; c++)
    {
        const int a      = c ^ b;
        const Real* from = Lhat
                           + (static_cast<size_t>(basis.classOf(a)) * chunk.parts * basis.rows
                              + basis.memberOf(a) * basis.n + i)
                                     * chunk.columns
                           + column;
        v[c] = 0;
        for (int part = 0; part < chunk.parts; part++)
        {
            v[c] += from[static_cast<size_t>(part) * basis.rows * chunk.columns];
        }
    }
    walsh<3>(v);
#pragma unroll
    for (int o = 0; o < 8; o++)
    {
        L[static_cast<size_t>(i) * stride + o * capacity + family] += v[o];
    }
}

} // namespace gemmDetail
} // namespace farfield

#endif
