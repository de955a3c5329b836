/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L in kernels that a kernel starts: a thread per few target cells, which launches a grid
 *         with a block for each of their sources.
 *
 *  Approach 2 of Kohnke et al., Int. J. High Perform. Comput. Appl. 35, 97 (2021),
 *  doi:10.1177/1094342020964857, as dynamic parallelism is since CUDA 12: children are fired and
 *  forgotten, and the kernel that follows in the stream waits for all of them. Sums of sources are
 *  added atomically, so that results are not reproducible bit by bit.
 */
#include <algorithm>

#include "m2l/dense.h"
#include "m2l/engines.h"

namespace farfield
{
namespace
{

//! Children that one call may launch; room for this many is kept on the device.
constexpr int c_maxLaunches   = 16384;
constexpr int c_launchThreads = 64;

//! Blocks: source, target.
template<class Real>
__global__ void multiplySources(DenseView<Real> dense,
                                LevelView<Real> level,
                                Families families,
                                int firstTarget,
                                int targets)
{
    __shared__ alignas(16) Real shared[c_sharedCoefficients];
    const int target = firstTarget + blockIdx.y;
    const int octant = target / families.capacity;
    const int family = target - octant * families.capacity;
    if (target >= targets || family >= *families.count)
    {
        return;
    }
    const DenseSource source = dense.lists[octant * dense.sources + blockIdx.x];
    const int slot           = sourceSlot(source, families, family);
    if (slot < 0)
    {
        return;
    }
    const Real sum = denseProduct(dense, source.operation, level, slot, shared);
    if (threadIdx.x < dense.n)
    {
        atomicAdd(level.L + static_cast<size_t>(threadIdx.x) * level.stride + target, sum);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_launchThreads) launchTargets(DenseView<Real> dense,
                                                                 LevelView<Real> level,
                                                                 Families families,
                                                                 int perLaunch,
                                                                 int threads)
{
    const int targets = 8 * families.capacity;
    const int first   = (blockIdx.x * c_launchThreads + threadIdx.x) * perLaunch;
    if (first >= targets)
    {
        return;
    }
    // nothing to do if all of them are beyond the families in use
    const int family = first % families.capacity;
    if (family >= *families.count && family + perLaunch <= families.capacity)
    {
        return;
    }
    multiplySources<<<dim3(dense.sources, perLaunch), threads, 0, cudaStreamFireAndForget>>>(
            dense, level, families, first, targets);
    if (cudaGetLastError() != cudaSuccess)
    {
        __trap(); // the host sees it at its next call: no result without this child is ever used
    }
}

template<class Real>
class DynamicM2l final : public DeviceM2l<Real>
{
public:
    void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream) override
    {
        size_t room = 0;
        check(cudaDeviceGetLimit(&room, cudaLimitDevRuntimePendingLaunchCount),
              "reading the limit of pending kernels");
        if (room < c_maxLaunches)
        {
            check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, c_maxLaunches),
                  "making room for pending kernels");
        }
        dense_.set(operators, stream);
    }
    void apply(const LevelView<Real>& level, const Families& families, cudaStream_t stream) override
    {
        if (families.capacity == 0)
        {
            return;
        }
        const DenseView<Real> dense = dense_.view();
        const int targets           = 8 * families.capacity;
        const int perLaunch         = blocksFor(targets, c_maxLaunches);
        const int launches          = blocksFor(targets, perLaunch);
        launchTargets<<<blocksFor(launches, c_launchThreads), c_launchThreads, 0, stream>>>(
                dense, level, families, perLaunch, coefficientThreads(dense.n));
        checkLaunch("launchTargets");
    }

private:
    DenseOperators<Real> dense_;
};

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeDynamicM2l(const EngineDemands& demands)
{
    if (demands.reproducible)
    {
        throw Error(ErrorCode::Unsupported,
                    "The M2L engine 'dynamic' adds up expansions in an order that differs from run "
                    "to run, which Options::reproducible forbids: use 'auto' or another engine.");
    }
    return std::make_unique<DynamicM2l<Real>>();
}

template std::unique_ptr<DeviceM2l<float>> makeDynamicM2l<float>(const EngineDemands&);
template std::unique_ptr<DeviceM2l<double>> makeDynamicM2l<double>(const EngineDemands&);

} // namespace farfield
