/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which cells the particles of a cell interact with directly, and in which portions.
 *
 *  The near field of a cell is a list of pieces: the cell itself and its neighbours, each a range
 *  of sorted particles. Their non-empty ranges, put one after another, are the sources of the cell;
 *  the own particles come first. Plain arithmetic, for host and device.
 */
#ifndef FARFIELD_KERNELS_NEAR_NEAR_PIECES_H
#define FARFIELD_KERNELS_NEAR_NEAR_PIECES_H

#include <cstdint>
#include <type_traits>

#include "runtime/layout.h"

namespace farfield
{

/*! \brief Division by a constant of the launch, exact for 0 <= n < 2^31.
 *
 *  Granlund and Montgomery, PLDI '94, 61 (1994), doi:10.1145/178243.178249. */
class Divisor
{
public:
    Divisor() = default;
    explicit Divisor(int d) : shift_(31)
    {
        while ((std::int64_t(1) << (shift_ - 31)) < d)
        {
            shift_++;
        }
        multiplier_ = static_cast<std::uint32_t>(
                (std::uint64_t(1) << shift_) / static_cast<std::uint32_t>(d) + 1);
    }
    FARFIELD_HD int quotient(int n) const
    {
        return static_cast<int>(
                (static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * multiplier_)
                >> shift_);
    }

private:
    std::uint32_t multiplier_ = 0;
    int shift_                = 0;
};

/*! \brief Finds the neighbours of the cells of a grid. */
class NeighbourFinder
{
public:
    NeighbourFinder() = default;
    explicit NeighbourFinder(const CellGrid& grid) :
        grid_(grid), rowLength_(grid.H[0][0]), layerRows_(grid.H[1][1]),
        oneStep_(grid.H[1][0] == 0 && grid.H[2][0] == 0 && grid.H[2][1] == 0)
    {
        for (int k = 0; k < 3; k++)
        {
            oneStep_ = oneStep_ && grid.H[k][k] >= c_farthest;
        }
    }
    FARFIELD_HD void cell(int index, int* c) const
    {
        const int row = rowLength_.quotient(index);
        c[0]          = index - row * grid_.H[0][0];
        c[2]          = layerRows_.quotient(row);
        c[1]          = row - c[2] * grid_.H[1][1];
    }
    //! \param[in] D  at most c_farthest cells in every direction
    FARFIELD_HD int neighbour(const int* c, const int* D) const
    {
        int to[3] = { c[0] + D[0], c[1] + D[1], c[2] + D[2] };
        if (oneStep_)
        {
            for (int k = 0; k < 3; k++)
            {
                // negative numbers are the largest
                to[k] = least(to[k], to[k] + grid_.H[k][k]);
                to[k] = least(to[k], to[k] - grid_.H[k][k]);
            }
        }
        else
        {
            grid_.reduce(to);
        }
        return grid_.index(to);
    }

private:
    static constexpr int c_farthest = 2; //!< cells to a neighbour

    static FARFIELD_HD int least(int a, int b)
    {
        const auto x = static_cast<unsigned int>(a);
        const auto y = static_cast<unsigned int>(b);
        return static_cast<int>(x < y ? x : y);
    }

    CellGrid grid_ = {};
    Divisor rowLength_, layerRows_;
    bool oneStep_ = false; //!< whether neighbours are at most one period outside of the box
};

/*! \brief Displacements of the pieces of a cell.
 *
 *  With the third law every pair of cells is visited once: the cell itself and the half of its
 *  neighbours that follows it lexicographically. Cells that meet themselves through a periodic
 *  image are neighbours like others, so each pair of a particle and an image is visited once, too.
 */
template<int Ws, bool ThirdLaw>
struct NearPieces
{
    static constexpr int c_width  = 2 * Ws + 1;
    static constexpr int c_middle = (c_width * c_width * c_width - 1) / 2;
    static constexpr int c_count  = ThirdLaw ? c_middle + 1 : 2 * c_middle + 1;

    //! Displacement of a piece from the cell, in cells; that of piece 0 is 0.
    FARFIELD_HD static void displacement(int piece, int* D)
    {
        if constexpr (Ws == 1)
        {
            // two bits for each piece: less to compute
            constexpr Word x = packed(1), y = packed(c_width), z = packed(c_width * c_width);
            D[0] = static_cast<int>(x >> 2 * piece & 3U) - Ws;
            D[1] = static_cast<int>(y >> 2 * piece & 3U) - Ws;
            D[2] = static_cast<int>(z >> 2 * piece & 3U) - Ws;
        }
        else
        {
            const int at = code(piece);
            D[0]         = at % c_width - Ws;
            D[1]         = at / c_width % c_width - Ws;
            D[2]         = at / (c_width * c_width) - Ws;
        }
    }

private:
    using Word = std::conditional_t<(c_count > 16), std::uint64_t, std::uint32_t>;

    //! Number of a piece among all displacements in lexicographic order.
    static constexpr FARFIELD_HD int code(int piece)
    {
        if (ThirdLaw)
        {
            return c_middle + piece;
        }
        return (piece > c_middle) ? piece : (piece == 0 ? c_middle : piece - 1);
    }
    static constexpr FARFIELD_HD Word packed(int divisor)
    {
        Word bits = 0;
        for (int piece = 0; piece < c_count; piece++)
        {
            bits |= static_cast<Word>(code(piece) / divisor % c_width) << 2 * piece;
        }
        return bits;
    }
};

//! How the particles of a cell are grouped as targets: as evenly as possible.
template<int Capacity>
struct TargetGroups
{
    int groups, size;

    FARFIELD_HD explicit TargetGroups(int particles)
    {
        groups = (particles + Capacity - 1) / Capacity;
        size   = (groups == 1)   ? particles
                 : (groups == 2) ? (particles + 1) / 2
                                 : (particles + groups - 1) / groups; // a slow division, and rare
    }
};

/*! \brief What one of several warps that share a cell does: groups of targets first, batches of
 *         sources if there are fewer groups than warps. */
struct WarpShare
{
    int firstGroup, groupStep, firstBatch, batchStep;

    //! \param[in] logShares  binary logarithm of the number of warps
    FARFIELD_HD WarpShare(int share, int logShares, int groups)
    {
        // four warps are 4, 2, 1 per group for 1, 2 and more groups; with three groups one is idle
        int logPerGroup = logShares;
        while (logPerGroup > 0 && (groups << logPerGroup) > (1 << logShares))
        {
            logPerGroup--;
        }
        batchStep  = 1 << logPerGroup;
        firstBatch = share & (batchStep - 1);
        firstGroup = share >> logPerGroup;
        groupStep  = (groups < (1 << logShares)) ? groups : (1 << logShares);
    }
};

/*! \brief With the third law and every pair met once, source number 'position' of those from the
 *         first target on meets the targets before it: it is one of them, or meets all.
 *  \returns a bit for each target */
FARFIELD_HD unsigned int targetsBefore(int position)
{
    return position >= 32 ? ~0U : (1U << position) - 1U;
}

} // namespace farfield

#endif
