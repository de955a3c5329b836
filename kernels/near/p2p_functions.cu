/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near/p2p_launch.h"

namespace farfield
{
namespace
{

//! Sizes of the kernel: fewer targets than those of 1/r, as a function takes registers.
template<class Real, NearSums Sums>
struct Sizes
{
    using Usual = P2pSizes<4, 2, 0, 3>;
};
template<NearSums Sums>
struct Sizes<float, Sums>
{
    using Usual = P2pSizes<8, 4, 0, 3>;
};
template<>
struct Sizes<float, NearSums::None>
{
    using Usual = P2pSizes<12, 6, 0, 4>;
};

} // namespace

template<class Real>
void p2pWithFunctions(const DeviceNearTask<Real>& task, Real4<Real>* forces, cudaStream_t stream)
{
    FunctionArguments<Real> arguments;
    setArguments<Real>(task, forces, &arguments);
    arguments.functions = task.functions;
    withConstants(
            task,
            [&](auto ws, auto thirdLaw, auto sums)
            {
                using Work = P2pWork<FunctionLaw<Real>, ws.value, thirdLaw.value, sums.value>;
                using Shape =
                        P2pShape<Work, typename Sizes<Real, sums.value>::Usual, thirdLaw.value>;
                launchShape<Shape>(arguments, logSharesFor<Shape>(task.occupied), stream);
            });
}

template void p2pWithFunctions<float>(const DeviceNearTask<float>&, Real4<float>*, cudaStream_t);
template void p2pWithFunctions<double>(const DeviceNearTask<double>&, Real4<double>*, cudaStream_t);

} // namespace farfield
