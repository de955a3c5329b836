/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The kernels of symmetric.cu.
 */
#ifndef FARFIELD_KERNELS_M2L_SYMMETRIC_KERNELS_CUH
#define FARFIELD_KERNELS_M2L_SYMMETRIC_KERNELS_CUH

#include "m2l/symmetric_tables.h"
#include "runtime/layout.h"

namespace farfield
{
namespace symmetricDetail
{

//! Families are padded with some that have no multipoles.
constexpr int c_familyPadding = 8;
constexpr int c_packThreads   = 256;

//! Plan and operators in device memory.
template<class Real>
struct PlanView
{
    int coefficients, neighbours, frameBits, orbits;
    int tilesPerBlock, tileGroups, columnGroups, chunks;
    int maxValues, maxOrbits;
    const int* tileClass;
    const int* tileRows;
    const int* columnClass;
    const int* columnCount;
    const int* columns;
    const int* chunkStart;
    const int* records;
    const int4* sources; //!< [orbits][octant][2] the words of eight sources
    const Packet<Real>* operators;
};

//! Multipoles as groups of columns side by side: [column group][octant][families, padded].
template<class Real>
__global__ void __launch_bounds__(c_packThreads) packMultipoles(const int* columns,
                                                                LevelView<Real> level,
                                                                Families families,
                                                                Packet<Real>* packed)
{
    constexpr int c_columns = Packet<Real>::c_size;
    const int padded        = families.capacity + c_familyPadding;
    const int index         = blockIdx.x * c_packThreads + threadIdx.x;
    if (index >= 8 * padded)
    {
        return;
    }
    const int octant = index / padded;
    const int family = index - octant * padded;
    const int group  = blockIdx.y;
    const bool used  = family < min(*families.count, families.capacity);
    Packet<Real> result;
#pragma unroll
    for (int c = 0; c < c_columns; c++)
    {
        const int column = columns[group * c_columns + c];
        result.v[c] = (used && column >= 0) ? level.M[static_cast<size_t>(column) * level.stride
                                                      + octant * families.capacity + family]
                                            : Real(0);
    }
    packed[static_cast<size_t>(group) * 8 * padded + index] = result;
}

//! W of an orbit for one octant: 2^Bits values.
template<int Bits, class Real>
__device__ __forceinline__ void transformSources(const int4* __restrict__ sources,
                                                 const unsigned* familyOf,
                                                 const Packet<Real>* __restrict__ multipoles,
                                                 unsigned padded,
                                                 Packet<Real>* values)
{
    constexpr int c_sources = 1 << Bits;
    SourceWord words[(c_sources + 3) / 4 * 4];
#pragma unroll
    for (int k = 0; k < c_sources; k += 4)
    {
        const int4 four   = __ldg(sources + k / 4);
        words[k].word     = four.x;
        words[k + 1].word = four.y;
        words[k + 2].word = four.z;
        words[k + 3].word = four.w;
    }
    Packet<Real> m[c_sources];
#pragma unroll
    for (int k = 0; k < c_sources; k++)
    {
        m[k] = multipoles[words[k].octant() * padded + familyOf[words[k].place()]];
    }
    hadamard<Bits>(m);
#pragma unroll
    for (int k = 0; k < c_sources; k++)
    {
        values[k * c_octantsPerBlock * c_warp] = m[k];
    }
}

//! Adds T W for a group of columns; AllColumns: it is full.
template<int Rows, bool AllColumns, class Real>
__device__ __forceinline__ void multiply(const Packet<Real>* T,
                                         const Packet<Real>* W,
                                         int columns,
                                         Real (&sum)[c_octantsPerBlock][Rows])
{
    constexpr int c_size    = Packet<Real>::c_size;
    constexpr int c_packets = (Rows + c_size - 1) / c_size;
    Packet<Real> w[c_octantsPerBlock];
#pragma unroll
    for (int q = 0; q < c_octantsPerBlock; q++)
    {
        w[q] = W[q * c_warp];
    }
#pragma unroll
    for (int c = 0; c < c_size; c++)
    {
        if (AllColumns || c < columns)
        {
#pragma unroll
            for (int k = 0; k < c_packets; k++)
            {
                const Packet<Real> t = T[c * c_packets + k];
#pragma unroll
                for (int e = 0; e < c_size; e++)
                {
                    if (k * c_size + e < Rows)
                    {
#pragma unroll
                        for (int q = 0; q < c_octantsPerBlock; q++)
                        {
                            sum[q][k * c_size + e] += t.v[e] * w[q].v[c];
                        }
                    }
                }
            }
        }
    }
}

/*! \brief The products.
 *
 *  Blocks: [stretch of families][first bit of the octants][tile group][split].
 *  \param[out] out  splits > 1: sums of every split, [split][coefficient][stride]; else L, added to
 */
template<int Rows, class Real>
__global__ void __launch_bounds__(c_maxTilesPerBlock* c_warp, sizeof(Real) == 4 ? 2 : 1)
        multiplySymmetric(const PlanView<Real> plan,
                          const Families families,
                          const Packet<Real>* __restrict__ multipoles,
                          int splits,
                          int stride,
                          Real* out)
{
    constexpr int c_size           = Packet<Real>::c_size;
    constexpr int c_packetsPerTile = c_size * ((Rows + c_size - 1) / c_size);
    extern __shared__ int4 sharedMemory[];

    const int lane  = threadIdx.x % c_warp;
    const int warp  = threadIdx.x / c_warp;
    int block       = blockIdx.x;
    const int split = block % splits;
    block /= splits;
    const int tileGroup = block % plan.tileGroups;
    block /= plan.tileGroups;
    const int firstBit = block & 1;
    const int family   = (block >> 1) * c_warp + lane;
    const int count    = min(*families.count, families.capacity);
    if (family - lane >= count)
    {
        return;
    }

    const int valuesSize    = plan.maxValues * c_octantsPerBlock * c_warp;
    const int operatorsSize = plan.maxOrbits * plan.tilesPerBlock * c_packetsPerTile;
    Packet<Real>* W         = reinterpret_cast<Packet<Real>*>(sharedMemory);
    Packet<Real>* T         = W + 2 * valuesSize;
    unsigned* familyOf      = reinterpret_cast<unsigned*>(T + 2 * operatorsSize);
    int* records            = reinterpret_cast<int*>(familyOf + (plan.neighbours + 1) * c_warp);

    const int padded = families.capacity + c_familyPadding;
    for (int e = warp; e <= plan.neighbours; e += plan.tilesPerBlock)
    {
        const int neighbour = (e < plan.neighbours && family < count)
                                      ? families.neighbours[e * families.capacity + family]
                                      : -1;
        // the first family of the padding has no multipoles
        familyOf[e * c_warp + lane] = neighbour >= 0 ? neighbour : families.capacity;
    }
    for (int k = threadIdx.x; k < plan.orbits; k += plan.tilesPerBlock * c_warp)
    {
        records[k] = plan.records[k];
    }
    __syncthreads();

    const auto prepare = [&](int unit, int buffer)
    {
        const int group = unit / plan.chunks;
        const int chunk = unit - group * plan.chunks;
        const int first = plan.chunkStart[chunk];
        const int size  = plan.chunkStart[chunk + 1] - first;
        const Packet<Real>* from =
                plan.operators
                + (static_cast<size_t>(tileGroup * plan.columnGroups + group) * plan.orbits + first)
                          * (plan.tilesPerBlock * c_packetsPerTile);
        Packet<Real>* to = T + buffer * operatorsSize;
        for (int k = threadIdx.x; k < size * plan.tilesPerBlock * c_packetsPerTile;
             k += plan.tilesPerBlock * c_warp)
        {
            to[k] = from[k];
        }
        const Packet<Real>* ownMultipoles = multipoles + static_cast<size_t>(group) * 8 * padded;
        for (int item = warp; item < size * c_octantsPerBlock; item += plan.tilesPerBlock)
        {
            const int orbit  = first + item / c_octantsPerBlock;
            const int q      = item % c_octantsPerBlock;
            const int octant = firstBit | (q << 1);
            const OrbitRecord record(records[orbit]);
            const int4* sources  = plan.sources + (orbit * 8 + octant) * 2;
            Packet<Real>* values = W + buffer * valuesSize
                                   + (record.firstValue() * c_octantsPerBlock + q) * c_warp + lane;
            switch (record.bits())
            {
                case 0:
                    transformSources<0>(sources, familyOf + lane, ownMultipoles, padded, values);
                    break;
                case 1:
                    transformSources<1>(sources, familyOf + lane, ownMultipoles, padded, values);
                    break;
                case 2:
                    transformSources<2>(sources, familyOf + lane, ownMultipoles, padded, values);
                    break;
                default:
                    transformSources<3>(sources, familyOf + lane, ownMultipoles, padded, values);
                    break;
            }
        }
    };

    Real sum[c_octantsPerBlock][Rows];
#pragma unroll
    for (int q = 0; q < c_octantsPerBlock; q++)
    {
#pragma unroll
        for (int r = 0; r < Rows; r++)
        {
            sum[q][r] = Real(0);
        }
    }

    const int tile     = tileGroup * plan.tilesPerBlock + warp;
    const int rowClass = plan.tileClass[tile];
    const int units    = plan.columnGroups * plan.chunks;
    const int begin    = static_cast<int>(static_cast<long long>(units) * split / splits);
    const int end      = static_cast<int>(static_cast<long long>(units) * (split + 1) / splits);
    // the sums are in the frames of the octants but for the signs of the columns of this class
    int columnClass = 0;

    const auto accumulate = [&](int unit, int buffer)
    {
        const int group = unit / plan.chunks;
        const int chunk = unit - group * plan.chunks;
        const int first = plan.chunkStart[chunk];
        const int last  = plan.chunkStart[chunk + 1];
        if (plan.columnClass[group] != columnClass)
        {
            const int change = plan.columnClass[group] ^ columnClass;
            columnClass ^= change;
#pragma unroll
            for (int q = 0; q < c_octantsPerBlock; q++)
            {
                const Real sign = changesSign(change, firstBit | (q << 1), plan.frameBits)
                                          ? Real(-1)
                                          : Real(1);
#pragma unroll
                for (int r = 0; r < Rows; r++)
                {
                    sum[q][r] *= sign;
                }
            }
        }
        const int columns             = plan.columnCount[group];
        const int kappa               = rowClass ^ columnClass;
        const int word                = compressed(kappa);
        const Packet<Real>* values    = W + buffer * valuesSize + lane;
        const Packet<Real>* operators = T + buffer * operatorsSize + warp * c_packetsPerTile;
        for (int orbit = first; orbit < last; orbit++)
        {
            const OrbitRecord record(records[orbit]);
            if ((record.zeros() & kappa) == 0)
            {
                const Packet<Real>* w =
                        values + valueIndex(word, record) * (c_octantsPerBlock * c_warp);
                if (columns == c_size)
                {
                    multiply<Rows, true>(operators, w, columns, sum);
                }
                else
                {
                    multiply<Rows, false>(operators, w, columns, sum);
                }
            }
            operators += plan.tilesPerBlock * c_packetsPerTile;
        }
    };

    // Half of the warps, on every scheduler, prepare the next unit before they multiply, the others
    // after: loads of these overlap with products of those.
    const int preparesIn = (warp / 4) & 1;
#pragma unroll 1
    for (int unit = begin - 1; unit < end; unit++)
    {
        const int buffer = (unit - begin) & 1;
#pragma unroll 1
        for (int part = 0; part < 2; part++)
        {
            if (part == preparesIn)
            {
                if (unit + 1 < end)
                {
                    prepare(unit + 1, buffer ^ 1);
                }
            }
            else if (unit >= begin && rowClass >= 0)
            {
                accumulate(unit, buffer);
            }
        }
        __syncthreads();
    }

    if (rowClass < 0 || family >= count)
    {
        return;
    }
    Real* to = out + (splits > 1 ? static_cast<size_t>(split) * plan.coefficients * stride : 0);
#pragma unroll
    for (int r = 0; r < Rows; r++)
    {
        const int row = plan.tileRows[tile * Rows + r];
        if (row >= 0)
        {
#pragma unroll
            for (int q = 0; q < c_octantsPerBlock; q++)
            {
                const int octant = firstBit | (q << 1);
                const Real value = changesSign(rowClass ^ columnClass, octant, plan.frameBits)
                                           ? -sum[q][r]
                                           : sum[q][r];
                Real* place = to + static_cast<size_t>(row) * stride + octant * families.capacity
                              + family;
                *place = splits > 1 ? value : *place + value;
            }
        }
    }
}

//! L += the sums of all splits, in their order.
template<class Real>
__global__ void __launch_bounds__(c_packThreads) addSplits(const Real* __restrict__ sums,
                                                           int splits,
                                                           int coefficients,
                                                           LevelView<Real> level,
                                                           Families families)
{
    const int slot = blockIdx.x * c_packThreads + threadIdx.x;
    if (slot >= 8 * families.capacity || slot % families.capacity >= *families.count)
    {
        return;
    }
    const size_t place = static_cast<size_t>(blockIdx.y) * level.stride + slot;
    const size_t step  = static_cast<size_t>(coefficients) * level.stride;
    Real total         = Real(0);
#pragma unroll 8
    for (int split = 0; split < splits; split++)
    {
        total += sums[split * step + place];
    }
    level.L[place] += total;
}

} // namespace symmetricDetail
} // namespace farfield

#endif
