/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <type_traits>

#include "cells/excluded_pairs.h"
#include "near/p2p_kernel.h"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

/*! \brief Sizes of the kernel: as many targets per lane as registers hold without spilling.
 *
 *  Energies and virials are wanted rarely and take more registers; double precision takes twice as
 *  many. */
template<class Real, NearSums Sums>
struct Sizes
{
    using Usual = P2pSizes<4, 2, 4, 3>;
};
template<>
struct Sizes<double, NearSums::None>
{
    using Usual = P2pSizes<6, 2, 6, 3>;
};
template<NearSums Sums>
struct Sizes<float, Sums>
{
    using Usual = P2pSizes<12, 6, 12, 3>;
};
//! What is computed in nearly every step.
template<>
struct Sizes<float, NearSums::None>
{
    using Usual = P2pSizes<16, 8, 0, 5>;
    using Large = P2pSizes<28, 12, 0, 4>; //!< for large cells
};

//! Cells that hold more particles than this are large.
constexpr int c_largeCell = 15;

//! With fewer warps per multiprocessor, several share a cell.
constexpr int c_fewWarps = 12;
//! As soon as a warp has more pairs than this: the device would wait for the last ones.
constexpr int c_longWork = 20000;
//! Binary logarithms: most warps to fill the device, which has a cost, and to shorten their work.
constexpr int c_mostToFill = 2, c_mostToShorten = 4;

//! Binary logarithm of the number of warps per cell.
template<class Kernel>
int logSharesFor(const OccupiedCells& occupied)
{
    if (!Kernel::c_shares)
    {
        return 0;
    }
    const long long fewCells =
            static_cast<long long>(deviceAttribute(cudaDevAttrMultiProcessorCount)) * c_fewWarps;
    const long long pairs =
            static_cast<long long>(Kernel::c_pieces) * occupied.usual * occupied.usual;
    int logShares      = 0;
    const int expected = occupied.expected / occupied.share.parts;
    while ((logShares < c_mostToFill && (expected << logShares) < fewCells)
           || (logShares < c_mostToShorten && (pairs >> logShares) > c_longWork))
    {
        logShares++;
    }
    return logShares;
}

template<class Kernel>
void launchShape(P2pArguments<typename Kernel::Real> task, int logShares, cudaStream_t stream)
{
    task.logShares = logShares;
    // a list may be longer than expected: warps then take more than one entry
    const auto& occupied = task.occupied;
    const long long all  = occupied.cells != nullptr ? occupied.expected + occupied.expected / 8 + 1
                                                     : occupied.all;
    const long long cells = (all + occupied.share.parts - 1) / occupied.share.parts;
    int blocks            = blocksFor(cells << task.logShares, Kernel::c_warps);
    if (Kernel::c_energy)
    {
        blocks = std::min(blocks, OrderedSums::c_maxBlocks);
    }
    p2pKernel<Kernel><<<blocks, c_warp * Kernel::c_warps, 0, stream>>>(task);
    checkLaunch("near field");
}

//! Several warps share a cell with the third law only, as others need a fixed order.
template<class Real, int Ws, bool ThirdLaw, NearSums Sums>
void launch(const P2pArguments<Real>& task, cudaStream_t stream)
{
    using Work  = P2pWork<Real, Ws, ThirdLaw, Sums>;
    using Usual = P2pShape<Work, typename Sizes<Real, Sums>::Usual, ThirdLaw>;
    if constexpr (std::is_same_v<Real, float> && Sums == NearSums::None)
    {
        if (task.occupied.usual >= c_largeCell)
        {
            using Large = P2pShape<Work, typename Sizes<Real, Sums>::Large, ThirdLaw>;
            launchShape<Large>(task, logSharesFor<Large>(task.occupied), stream);
            return;
        }
        if (logSharesFor<Usual>(task.occupied) == 0)
        {
            launchShape<P2pShape<Work, typename Sizes<Real, Sums>::Usual, false>>(task, 0, stream);
            return;
        }
    }
    launchShape<Usual>(task, logSharesFor<Usual>(task.occupied), stream);
}

template<class Real, int Ws, bool ThirdLaw>
void launch(const P2pArguments<Real>& task, NearSums sums, cudaStream_t stream)
{
    switch (sums)
    {
        case NearSums::None:
            launch<Real, Ws, ThirdLaw, NearSums::None>(task, stream);
            break;
        case NearSums::Energy:
            launch<Real, Ws, ThirdLaw, NearSums::Energy>(task, stream);
            break;
        case NearSums::EnergyAndVirial:
            launch<Real, Ws, ThirdLaw, NearSums::EnergyAndVirial>(task, stream);
            break;
    }
}

} // namespace

template<class Real>
void p2p(const DeviceNearTask<Real>& task, Real4<Real>* forces, cudaStream_t stream)
{
    if (task.particles.n == 0 || task.occupied.all == 0)
    {
        return;
    }
    const NearSums sums = task.results.wanted;
    P2pArguments<Real> arguments;
    arguments.particles = task.particles;
    arguments.grid      = NeighbourFinder(task.grid);
    copyTo(task.edges, arguments.edges);
    arguments.occupied   = task.occupied;
    arguments.exclusions = task.exclusions;
    arguments.close2     = static_cast<Real>(closeInCells(task.closeDistance));
    arguments.forces     = forces;
    arguments.totals     = task.results.totals;
    arguments.sums       = (sums == NearSums::None) ? OrderedSums::View{ nullptr, nullptr }
                                                    : task.results.scratch->view();
    arguments.logShares  = 0; // launchShape() decides
    // with ghosts, half of a pair's energy is that of another rank
    const bool oneSided =
            task.reproducible || (task.particles.logBins > 0 && sums != NearSums::None);
    if (task.ws == 1)
    {
        oneSided ? launch<Real, 1, false>(arguments, sums, stream)
                 : launch<Real, 1, true>(arguments, sums, stream);
    }
    else
    {
        oneSided ? launch<Real, 2, false>(arguments, sums, stream)
                 : launch<Real, 2, true>(arguments, sums, stream);
    }
}

template void p2p<float>(const DeviceNearTask<float>&, Real4<float>*, cudaStream_t);
template void p2p<double>(const DeviceNearTask<double>&, Real4<double>*, cudaStream_t);

} // namespace farfield
