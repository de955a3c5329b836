/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Launches of the near-field kernel.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_LAUNCH_H
#define FARFIELD_KERNELS_NEAR_P2P_LAUNCH_H

#include <algorithm>
#include <type_traits>

#include "cells/excluded_pairs.h"
#include "near/p2p_kernel.h"
#include "runtime/matrix3.h"

namespace farfield
{

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
void launchShape(typename Kernel::Law::Arguments task, int logShares, cudaStream_t stream)
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

//! What the kernel takes of a task, whatever the law of pairs is.
template<class Real>
void setArguments(const DeviceNearTask<Real>& task,
                  Real4<Real>* forces,
                  P2pArguments<Real>* arguments)
{
    arguments->particles = task.particles;
    arguments->grid      = NeighbourFinder(task.grid);
    copyTo(task.edges, arguments->edges);
    arguments->occupied   = task.occupied;
    arguments->exclusions = task.exclusions;
    arguments->close2     = static_cast<Real>(closeInCells(task.closeDistance));
    arguments->forces     = forces;
    arguments->totals     = task.results.totals;
    arguments->sums       = (task.results.wanted == NearSums::None)
                                    ? OrderedSums::View{ nullptr, nullptr }
                                    : task.results.scratch->view();
    arguments->logShares  = 0; // launchShape() decides
}

/*! \brief Calls launch(ws, thirdLaw, sums) with constants that say what a task needs.
 *
 *  They are types with a member value. */
template<class Real, class Launch>
void withConstants(const DeviceNearTask<Real>& task, const Launch& launch)
{
    const auto withSums = [&](auto ws, auto thirdLaw)
    {
        switch (task.results.wanted)
        {
            case NearSums::None:
                launch(ws, thirdLaw, std::integral_constant<NearSums, NearSums::None>());
                break;
            case NearSums::Energy:
                launch(ws, thirdLaw, std::integral_constant<NearSums, NearSums::Energy>());
                break;
            case NearSums::EnergyAndVirial:
                launch(ws, thirdLaw, std::integral_constant<NearSums, NearSums::EnergyAndVirial>());
                break;
        }
    };
    // with ghosts, half of a pair's energy is that of another rank
    const bool oneSided = task.reproducible
                          || (task.particles.logBins > 0 && task.results.wanted != NearSums::None);
    const auto withWs = [&](auto ws)
    { oneSided ? withSums(ws, std::false_type()) : withSums(ws, std::true_type()); };
    task.ws == 1 ? withWs(std::integral_constant<int, 1>())
                 : withWs(std::integral_constant<int, 2>());
}

/*! \brief As p2p(), where a task has near functions.
 *
 *  The others do not wait for kernels that are larger. */
template<class Real>
void p2pWithFunctions(const DeviceNearTask<Real>& task, Real4<Real>* forces, cudaStream_t stream);

} // namespace farfield

#endif
