/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the near-field kernel computes, and its sizes.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_SHAPE_H
#define FARFIELD_KERNELS_NEAR_P2P_SHAPE_H

#include "near/near.h"
#include "near/near_pieces.h"

namespace farfield
{

/*! \brief What is computed.
 *  \tparam Law_  of pairs: CoulombLaw, FunctionLaw */
template<class Law_, int Ws, bool ThirdLaw, NearSums Sums>
struct P2pWork
{
    using Law                         = Law_;
    using Real                        = typename Law::Real;
    using Pieces                      = NearPieces<Ws, ThirdLaw>;
    static constexpr bool c_thirdLaw  = ThirdLaw;
    static constexpr bool c_energy    = Sums != NearSums::None;
    static constexpr bool c_virial    = Sums == NearSums::EnergyAndVirial;
    static constexpr bool c_reactions = ThirdLaw || c_virial; //!< forces on sources are needed
    static constexpr bool c_excess    = c_virial && Law::c_takesPairs;
};

/*! \brief Sizes of the kernel at compile time.
 *
 *  There is one loop for all numbers of targets, so that it stays in the instruction cache: parts
 *  of it are skipped.
 *
 *  \tparam Targets  targets of a lane: their forces lie in registers
 *  \tparam Least    at least so many targets are computed, zeros if there are fewer
 *  \tparam Held     positions of so many targets lie in registers, the others in shared memory
 *  \tparam Blocks   blocks per multiprocessor for which registers are allotted */
template<int Targets, int Least, int Held, int Blocks>
struct P2pSizes
{
    static constexpr int c_targets = Targets;
    static constexpr int c_least   = Least;
    static constexpr int c_step    = 2; //!< targets beyond those are computed in portions of this
    static constexpr int c_held    = Held;
    static constexpr int c_blocks  = Blocks;
    static constexpr int c_warps   = 4; //!< of a block
    static_assert((Targets - Least) % c_step == 0 && Least > 0, "sizes end at the largest");
    static_assert(Targets <= 31, "targets are bits of a word, and each lane stores one");
    static_assert(Held >= 0 && Held <= Targets, "targets are held or not");
};

//! \tparam Shares  several warps may share a cell
template<class Work, class Sizes, bool Shares>
struct P2pShape : Work, Sizes
{
    static constexpr bool c_shares = Shares;
    static constexpr int c_pieces  = Work::Pieces::c_count;
    static constexpr int c_perLane = (c_pieces + c_warp - 1) / c_warp; //!< pieces of a lane
};

//! Arguments of the kernel.
template<class Real>
struct P2pArguments
{
    SortedParticles<Real> particles;
    NeighbourFinder grid;
    Real edges[3][3];
    OccupiedCells occupied;
    int logShares; //!< binary logarithm of the number of warps that share a cell
    typename DeviceExclusions<Real>::View exclusions;
    Real close2; //!< squared distance below which pairs may be left out, nm^2
    Real4<Real>* forces;
    NearTotals* totals;
    OrderedSums::View sums;
};

} // namespace farfield

#endif
