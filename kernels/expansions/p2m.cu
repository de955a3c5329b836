/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Four lanes share the particles of a slot, each with sums of its own in registers; at the end each
// of the lanes adds up a quarter of the sums. Orders m are spread over blocks, so that the sums fit
// into registers and small systems reach all multiprocessors.
#include "expansions/expansions.h"
#include "expansions/harmonics.h"
#include "runtime/order_dispatch.h"

namespace farfield
{
namespace
{

constexpr unsigned c_allLanes = 0xffffffffu;
//! Lanes per slot.
constexpr int c_lanes = 4;
//! Small blocks: a small system should reach all multiprocessors.
constexpr int c_threads = 64;
constexpr int c_slots   = c_threads / c_lanes;
//! Registers are to suffice for so many blocks on a multiprocessor.
constexpr int c_blocksPerSm = 6;
//! Sums per thread, about.
constexpr int c_sums = 44;

//! Parts of the orders m = 0 .. P.
template<int P>
constexpr int c_parts = ((P + 1) * (P + 1) + c_sums - 1) / c_sums;

//! First m of a part: parts have about the same number of sums.
template<int P>
constexpr int firstOfPart(int part)
{
    int m = 0;
    while (m <= P
           && (2 * multipolesBelow<P>(m) + multipolesOf<P>(m)) * c_parts<P> < 2 * part * (P + 1)
                                                                                      * (P + 1))
    {
        m++;
    }
    return m;
}

//! What becomes of a sum.
template<class Real>
struct Target
{
    int row;
    Real scale;
};

//! The target of a sum, in the order of addMultipoles() from m = first.
template<int P, class Real>
__device__ Target<Real> target(int sum, int first, const Real* __restrict__ scale)
{
    int m = first;
    while (sum >= multipolesOf<P>(m))
    {
        sum -= multipolesOf<P>(m);
        m++;
    }
    const int terms = P - m + 1;
    const bool sine = sum >= terms;
    const int j     = sine ? sum - terms : sum;
    const int l     = m + j;
    return { l * l + l + (sine ? -m : m), scale[m * (P + 1) + j] };
}

//! Adds up over neighbouring lanes; each of them is left with its share of the sums.
template<int Count, int Distance, class Real>
__device__ void shareSums(Real* sums, int lane)
{
    constexpr int c_half = Count / 2;
    const bool upper     = (lane & Distance) != 0;
#pragma unroll
    for (int i = 0; i < c_half; i++)
    {
        const Real given = upper ? sums[i] : sums[i + c_half];
        const Real kept  = upper ? sums[i + c_half] : sums[i];
        sums[i]          = kept + __shfl_xor_sync(c_allLanes, given, Distance);
    }
    if constexpr (Distance > 1)
    {
        shareSums<c_half, Distance / 2>(sums, lane);
    }
}

template<class Real>
struct MultipoleTask
{
    SortedParticles<Real> particles;
    const int* __restrict__ cellOf;
    int stride;
    Real inverseUnit;
    const Real* __restrict__ scale;
    Real* __restrict__ M;
};

//! The work of a block for one part of the orders, which it finds by going through all of them.
template<int P, int Part, class Real>
__device__ void sumPart(const MultipoleTask<Real>& task, Target<Real>* targets)
{
    if constexpr (Part + 1 < c_parts<P>)
    {
        if (blockIdx.y != Part)
        {
            sumPart<P, Part + 1>(task, targets);
            return;
        }
    }
    constexpr int c_first = firstOfPart<P>(Part);
    constexpr int c_end   = (Part + 1 < c_parts<P>) ? firstOfPart<P>(Part + 1) : P + 1;
    constexpr int c_count = multipolesBelow<P>(c_end) - multipolesBelow<P>(c_first);
    constexpr int c_share = (c_count + c_lanes - 1) / c_lanes;
    static_assert(c_count > 0 && c_count <= 2 * c_threads, "parts are of similar size");

    const int lane = threadIdx.x % c_lanes;
    const int slot = blockIdx.x * c_slots + threadIdx.x / c_lanes;
    const int cell = task.cellOf[slot];
    int k          = 0;
    int end        = 0;
    if (cell >= 0)
    {
        const int* bins = task.particles.bins(cell);
        k               = bins[0] + lane;
        end             = bins[1];
    }
    for (int i = threadIdx.x; i < c_count; i += c_threads)
    {
        targets[i] = target<P>(i, c_first, task.scale);
    }
    Real sums[c_share * c_lanes];
#pragma unroll
    for (int i = 0; i < c_share * c_lanes; i++)
    {
        sums[i] = 0;
    }
    Real4<Real> next = { 0, 0, 0, 0 };
    if (k < end)
    {
        next = task.particles.xq[k];
    }
    while (k < end)
    {
        const Real4<Real> a = next;
        k += c_lanes;
        if (k < end)
        {
            next = task.particles.xq[k];
        }
        addMultipoles<P, c_first, c_end>(
                a.x * task.inverseUnit, a.y * task.inverseUnit, a.z * task.inverseUnit, a.w, sums);
    }
    __syncthreads(); // the targets are there, and warps are whole again
    shareSums<c_share * c_lanes, c_lanes / 2>(sums, lane);
#pragma unroll
    for (int i = 0; i < c_share; i++)
    {
        const int sum = lane * c_share + i;
        if (sum < c_count)
        {
            const Target<Real> to                                    = targets[sum];
            task.M[static_cast<size_t>(to.row) * task.stride + slot] = to.scale * sums[i];
        }
    }
}

template<int P, class Real>
__global__ void __launch_bounds__(c_threads, c_blocksPerSm)
        sumMultipoles(const MultipoleTask<Real> task)
{
    __shared__ Target<Real> targets[2 * c_threads];
    sumPart<P, 0>(task, targets);
}

} // namespace

template<class Real>
void p2m(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         cudaStream_t stream)
{
    static_assert(c_warp % c_slots == 0, "blocks are full");
    const int blocks = leaves.stride / c_slots;
    if (blocks == 0)
    {
        return;
    }
    const MultipoleTask<Real> task = { particles,      leaves.cellOf,
                                       leaves.stride,  tables.inverseUnit(),
                                       tables.scale(), leaves.M };
    dispatchOrder(tables.order(),
                  [&](auto order)
                  {
                      constexpr int P = decltype(order)::value;
                      sumMultipoles<P, Real>
                              <<<dim3(blocks, c_parts<P>), c_threads, 0, stream>>>(task);
                  });
    checkLaunch("multipoles of the leaves");
}

template decltype(p2m<float>) p2m<float>;
template decltype(p2m<double>) p2m<double>;

} // namespace farfield
