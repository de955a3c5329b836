/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Index tables of the symmetric M2L engine, built on the host.
 *
 *  Displacements that reflections map on each other form an orbit, with one operator:
 *  T(sigma D) = S_sigma T(D) S_sigma, where S_sigma holds the signs chi_c(sigma) of coefficients of
 *  parity class c. Summed over the signs sigma,
 *
 *      L_i = sum_j T_ij(D) W_j^(class(i) xor class(j)),
 *      W_j^kappa = sum_sigma chi_kappa(sigma) M_j(sigma),
 *
 *  with M(sigma) the source at sigma D: as many products as one displacement takes, and W is a
 *  Walsh-Hadamard transform over the signs. Operators shared within orbits: Kohnke et al., Int.
 *  J. High Perform. Comput. Appl. 35, 97 (2021), doi:10.1177/1094342020964857; sharing the products
 *  goes beyond that.
 *
 *  In a rectangular box classes are the parities under reflections of x, y and z (three sign bits),
 *  and a target in octant o is seen in its own frame, mirrored in the axes whose bit of o is 0:
 *  then displacements are -2ws ... 2ws+1 in every component, whatever the octant. In other boxes
 *  the inversion alone is left, and the class is the parity of the degree (one sign bit).
 */
#ifndef FARFIELD_KERNELS_M2L_SYMMETRIC_TABLES_H
#define FARFIELD_KERNELS_M2L_SYMMETRIC_TABLES_H

#include <vector>

#include "runtime/layout.h"

#include "operators/m2l_list_operators.h"

namespace farfield
{

//! Sixteen bytes of numbers: what a thread loads at once.
template<class Real>
struct alignas(16) Packet
{
    static constexpr int c_size = 16 / sizeof(Real);
    Real v[c_size];
};

//! Octants of targets that a block of the engine serves; they share the first bit.
constexpr int c_octantsPerBlock = 4;
//! Row tiles, one per warp, of a block at most.
constexpr int c_maxTilesPerBlock = 9;

//! Numbers of an orbit in one word.
struct OrbitRecord
{
    int word;
    OrbitRecord() = default;
    FARFIELD_HD explicit OrbitRecord(int w) : word(w) {}
    FARFIELD_HD OrbitRecord(int firstValue, int mask, int bits, int zeros) :
        word(firstValue | (mask << 8) | (bits << 11) | (zeros << 13))
    {
    }
    //! Position of its first W in its chunk.
    FARFIELD_HD int firstValue() const { return word & 0xff; }
    //! Sign bits in which it has two sources.
    FARFIELD_HD int mask() const { return (word >> 8) & 7; }
    //! Number of these.
    FARFIELD_HD int bits() const { return (word >> 11) & 3; }
    //! Sign bits that leave D as it is: T vanishes between classes that differ in them.
    FARFIELD_HD int zeros() const { return (word >> 13) & 7; }
};

//! A source in one word: what threads look up, without arithmetic.
struct SourceWord
{
    int word;
    //! Position of the family of the source, of this lane, in the table of the block.
    FARFIELD_HD int place() const { return word & 0xffff; }
    FARFIELD_HD int octant() const { return word >> 16; }
    static int make(int neighbour, int octant) { return neighbour * c_warp | octant << 16; }
};

//! The bits of kappa selected by each of the eight masks, pushed together; three bits per mask.
FARFIELD_HD int compressed(int kappa)
{
    int word = 0;
    for (int mask = 0; mask < 8; mask++)
    {
        int value = 0, place = 0;
        for (int bit = 0; bit < 3; bit++)
        {
            if ((mask >> bit) & 1)
            {
                value |= ((kappa >> bit) & 1) << place;
                place++;
            }
        }
        word |= value << (3 * mask);
    }
    return word;
}

//! Position of W^kappa among the values of an orbit; word = compressed(kappa).
FARFIELD_HD int valueIndex(int word, OrbitRecord orbit)
{
    return orbit.firstValue() + ((word >> (3 * orbit.mask())) & 7);
}

//! Whether coefficients of a class change sign on the way to the frame of an octant.
FARFIELD_HD bool changesSign(int parityClass, int octant, int frameBits)
{
    const int mirrored = parityClass & ~octant & frameBits;
    return ((mirrored ^ (mirrored >> 1) ^ (mirrored >> 2)) & 1) != 0;
}

//! Walsh-Hadamard transform of 2^Bits packets over their index.
template<int Bits, class Real>
FARFIELD_HD void hadamard(Packet<Real>* m)
{
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int bit = 0; bit < Bits; bit++)
    {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int k = 0; k < (1 << Bits); k++)
        {
            if ((k & (1 << bit)) == 0)
            {
                for (int c = 0; c < Packet<Real>::c_size; c++)
                {
                    const Real a           = m[k].v[c];
                    const Real b           = m[k | (1 << bit)].v[c];
                    m[k].v[c]              = a + b;
                    m[k | (1 << bit)].v[c] = a - b;
                }
            }
        }
    }
}

//! Displacements that share an operator.
struct Orbit
{
    Int3 D;    //!< the one whose operator is used
    int mask;  //!< as in OrbitRecord
    int bits;  //!< as in OrbitRecord
    int zeros; //!< as in OrbitRecord
    //! Per octant of the target and sign: neighbour * 8 + octant of the source, with the neighbour
    //! as in neighbourIndex(); one beyond the last neighbour if there is no source.
    short sources[8][8];
};

//! Classes of coefficients, and the orbits of the displacements of the interaction lists.
class SymmetryTables
{
public:
    //! \param[in] reflections  else inversion only
    SymmetryTables(int order, int ws, bool reflections);

    int ws() const { return ws_; }
    int coefficients() const { return static_cast<int>(classes_.size()); }
    int neighbours() const { return (2 * ws_ + 1) * (2 * ws_ + 1) * (2 * ws_ + 1); }
    //! 7 if octants have frames of their own, else 0.
    int frameBits() const { return frameBits_; }
    int classOf(int coefficient) const { return classes_[coefficient]; }
    //! Coefficients of a class, ascending.
    std::vector<int> members(int parityClass) const;
    const std::vector<Orbit>& orbits() const { return orbits_; }

private:
    void listReflectionOrbits();
    void listInversionOrbits();
    short source(int octant, const Int3& D) const;

    int ws_, frameBits_;
    std::vector<int> classes_;
    std::vector<Orbit> orbits_;
};

/*! \brief How the work is cut: row tiles, groups of columns, chunks of orbits.
 *
 *  A tile is up to rowsPerTile coefficients of one class, and a warp accumulates its local
 *  expansions. A group is up to c_size columns of one class; a chunk is a run of orbits whose W are
 *  held in shared memory together. */
template<class Real>
class SymmetricPlan
{
public:
    static constexpr int c_columns = Packet<Real>::c_size;
    //! Numbers of rows per tile for which there is a kernel.
    static constexpr int c_rows[] = { 3, 6, 7, 8, 10, 11 };

    //! \param[in] sharedBytes  dynamic shared memory of a block, exceeded only by a single orbit
    SymmetricPlan(const SymmetryTables& tables, size_t sharedBytes);

    //! Shared memory that a block needs.
    size_t sharedBytes() const { return sharedBytes(maxValues, maxOrbits); }
    //! Packets of operators of a tile, an orbit and a group of columns.
    int packetsPerTile() const { return c_columns * packetsPerColumn(); }
    /*! \brief Operators in the order in which blocks read them:
     *         [tile group][column group][orbit][tile][column][rows, padded]. */
    std::vector<Real> pack(const ListM2lOperators<Real>& operators) const;

    int coefficients, neighbours, frameBits, orbits;
    int rowsPerTile, tilesPerBlock, tileGroups;
    std::vector<int> tileClass;                //!< [tileGroups * tilesPerBlock] -1: an empty tile
    std::vector<int> tileRows;                 //!< [tiles][rowsPerTile] coefficients, -1 for none
    std::vector<int> columnClass, columnCount; //!< per group of columns
    std::vector<int> columns;                  //!< [groups][c_columns] coefficients, -1 for none
    std::vector<int> chunkStart;               //!< [chunks + 1] first orbit
    std::vector<int> records;                  //!< [orbits] OrbitRecord
    std::vector<int> sources;                  //!< [orbits][octant][sign] SourceWord
    int maxValues = 0, maxOrbits = 0;          //!< of a chunk

    int columnGroups() const { return static_cast<int>(columnClass.size()); }
    int chunks() const { return static_cast<int>(chunkStart.size()) - 1; }

private:
    int packetsPerColumn() const { return (rowsPerTile + c_columns - 1) / c_columns; }
    size_t sharedBytes(int values, int orbitsOfChunk) const;
    void cutRows(const SymmetryTables& tables);
    void cutColumns(const SymmetryTables& tables);
    void cutOrbits(const SymmetryTables& tables, size_t bytes);

    std::vector<Int3> displacements_;
};

} // namespace farfield

#endif
