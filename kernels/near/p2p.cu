/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>

#include "near/p2p_kernel.h"

namespace farfield
{
namespace
{

//! Targets of a lane, at least so many of them, those held in registers, blocks per multiprocessor.
template<class Real,
         int Ws,
         bool ThirdLaw,
         NearSums Sums,
         bool Shares,
         int Targets,
         int Least,
         int Held,
         int Blocks>
using Shape = P2pShape<Real,
                       Ws,
                       ThirdLaw,
                       Sums,
                       Targets,
                       Least,
                       2,
                       1,
                       Held,
                       true,
                       false,
                       Shares,
                       4,
                       Blocks>;

/*! \brief Sizes of the kernel: as many targets per lane as registers hold without spilling.
 *
 *  Energies and virials are wanted rarely and take more registers; double precision takes twice as
 *  many. Several warps share a cell with the third law only, as others need a fixed order. */
template<class Real, int Ws, bool ThirdLaw, NearSums Sums>
struct ChosenShape
{
    using Shared = Shape<Real, Ws, ThirdLaw, Sums, ThirdLaw, 4, 2, 4, 3>;
    using Whole  = Shared;
};
template<int Ws, bool ThirdLaw>
struct ChosenShape<double, Ws, ThirdLaw, NearSums::None>
{
    using Shared = Shape<double, Ws, ThirdLaw, NearSums::None, ThirdLaw, 6, 2, 6, 3>;
    using Whole  = Shared;
};
template<int Ws, bool ThirdLaw, NearSums Sums>
struct ChosenShape<float, Ws, ThirdLaw, Sums>
{
    using Shared = Shape<float, Ws, ThirdLaw, Sums, ThirdLaw, 12, 6, 12, 3>;
    using Whole  = Shared;
};
template<int Ws, bool ThirdLaw>
struct ChosenShape<float, Ws, ThirdLaw, NearSums::None>
{
    using Shared = Shape<float, Ws, ThirdLaw, NearSums::None, ThirdLaw, 16, 8, 0, 5>;
    using Whole  = Shape<float, Ws, ThirdLaw, NearSums::None, false, 16, 8, 0, 5>;
    using Large  = Shape<float, Ws, ThirdLaw, NearSums::None, ThirdLaw, 28, 12, 0, 4>;
};

//! Cells that hold more particles than this are taken in large groups of targets, if there is a
//! kernel for that.
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
    int device = 0, processors = 0;
    check(cudaGetDevice(&device), "finding the device");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
          "reading properties of the device");
    const long long fewCells = static_cast<long long>(processors) * c_fewWarps;
    const long long pairs =
            static_cast<long long>(Kernel::c_pieces) * occupied.usual * occupied.usual;
    int logShares = 0;
    while ((logShares < c_mostToFill && (occupied.expected << logShares) < fewCells)
           || (logShares < c_mostToShorten && (pairs >> logShares) > c_longWork))
    {
        logShares++;
    }
    return logShares;
}

//! Whether a choice has a kernel for large cells.
template<class Chosen, class = void>
struct HasLarge : std::false_type
{
};
template<class Chosen>
struct HasLarge<Chosen, std::void_t<typename Chosen::Large>> : std::true_type
{
};

template<class Kernel>
void launchShape(P2pTask<typename Kernel::Real> task, int logShares, cudaStream_t stream)
{
    task.logShares = logShares;
    // a list may be longer than expected: warps then take more than one entry
    const auto& occupied  = task.occupied;
    const long long cells = occupied.cells != nullptr
                                    ? occupied.expected + occupied.expected / 8 + 1
                                    : occupied.all;
    int blocks            = blocksFor(cells << task.logShares, Kernel::c_warps);
    if (Kernel::c_energy)
    {
        blocks = std::min(blocks, OrderedSums::c_maxBlocks);
    }
    p2pKernel<Kernel><<<blocks, c_warp * Kernel::c_warps, 0, stream>>>(task);
    checkLaunch("near field");
}

template<class Real, int Ws, bool ThirdLaw, NearSums Sums>
void launch(const P2pTask<Real>& task, cudaStream_t stream)
{
    using Chosen = ChosenShape<Real, Ws, ThirdLaw, Sums>;
    if constexpr (HasLarge<Chosen>::value)
    {
        if (task.occupied.usual >= c_largeCell)
        {
            using Large = typename Chosen::Large;
            launchShape<Large>(task, logSharesFor<Large>(task.occupied), stream);
            return;
        }
    }
    using Shared        = typename Chosen::Shared;
    const int logShares = logSharesFor<Shared>(task.occupied);
    if (logShares > 0)
    {
        launchShape<Shared>(task, logShares, stream);
    }
    else
    {
        launchShape<typename Chosen::Whole>(task, 0, stream);
    }
}

template<class Real, int Ws, bool ThirdLaw>
void launch(const P2pTask<Real>& task, NearSums sums, cudaStream_t stream)
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
void p2p(const SortedParticles<Real>& particles,
         const CellGrid& grid,
         const double edges[3][3],
         int ws,
         const OccupiedCells& occupied,
         const typename DeviceExclusions<Real>::View& exclusions,
         double closeDistance,
         bool reproducible,
         NearSums sums,
         Real4<Real>* forces,
         NearTotals* totals,
         OrderedSums* scratch,
         cudaStream_t stream)
{
    if (particles.n == 0 || occupied.all == 0)
    {
        return;
    }
    P2pTask<Real> task;
    task.particles = particles;
    task.grid      = NeighbourFinder(grid);
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            task.edges[i][j] = static_cast<Real>(edges[i][j]);
        }
    }
    task.occupied   = occupied;
    task.exclusions = exclusions;
    // positions relative to cells are rounded differently from those that were compared before
    task.close2 = static_cast<Real>(1.02 * closeDistance * closeDistance);
    task.forces = forces;
    task.totals = totals;
    task.sums = (sums == NearSums::None) ? OrderedSums::View{ nullptr, nullptr } : scratch->view();
    task.logShares = 0; // launchShape() decides
    if (ws == 1)
    {
        reproducible ? launch<Real, 1, false>(task, sums, stream)
                     : launch<Real, 1, true>(task, sums, stream);
    }
    else
    {
        reproducible ? launch<Real, 2, false>(task, sums, stream)
                     : launch<Real, 2, true>(task, sums, stream);
    }
}

#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void p2p<Real>(const SortedParticles<Real>&,                                          \
                            const CellGrid&,                                                       \
                            const double[3][3],                                                    \
                            int,                                                                   \
                            const OccupiedCells&,                                                  \
                            const DeviceExclusions<Real>::View&,                                   \
                            double,                                                                \
                            bool,                                                                  \
                            NearSums,                                                              \
                            Real4<Real>*,                                                          \
                            NearTotals*,                                                           \
                            OrderedSums*,                                                          \
                            cudaStream_t)
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
