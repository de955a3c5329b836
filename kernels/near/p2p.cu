/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near/p2p_launch.h"

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

//! Several warps share a cell with the third law only, as others need a fixed order.
template<class Real, int Ws, bool ThirdLaw, NearSums Sums>
void launch(const P2pArguments<Real>& task, cudaStream_t stream)
{
    using Work  = P2pWork<CoulombLaw<Real>, Ws, ThirdLaw, Sums>;
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

} // namespace

template<class Real>
void p2p(const DeviceNearTask<Real>& task, Real4<Real>* forces, cudaStream_t stream)
{
    if (task.particles.n == 0 || task.occupied.all == 0)
    {
        return;
    }
    if (task.functions.any())
    {
        p2pWithFunctions(task, forces, stream);
        return;
    }
    P2pArguments<Real> arguments;
    setArguments(task, forces, &arguments);
    withConstants(task,
                  [&](auto ws, auto thirdLaw, auto sums)
                  { launch<Real, ws.value, thirdLaw.value, sums.value>(arguments, stream); });
}

template void p2p<float>(const DeviceNearTask<float>&, Real4<float>*, cudaStream_t);
template void p2p<double>(const DeviceNearTask<double>&, Real4<double>*, cudaStream_t);

} // namespace farfield
