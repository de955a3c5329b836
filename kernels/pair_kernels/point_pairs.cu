/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/point_pairs.h"

#include <climits>

#include <algorithm>

#include "pair_kernels/cell_keys.cuh"
#include "pair_kernels/pair_laws.cuh"
#include "runtime/load.cuh"
#include "runtime/search.h"

namespace farfield
{
namespace
{

//! A block has some targets of a leaf, and as many teams of threads as fit, which share the sources.
constexpr int c_threads = 128;
//! Sources in shared memory at a time.
constexpr int c_staged = 512;
//! Sets of charges that share the work of a pair.
constexpr int c_together = 4;
//! Results of a set: potential and field, and the six of c_strains.
constexpr int c_results = 4, c_resultsWithStrain = 10;

//! The leaves near that of a block, and where their points are staged.
struct NearLeaves
{
    static constexpr int c_most = 128;

    int first[c_most]; //!< point
    int to[c_most + 1];

    //! The leaf that a staged point is of.
    __device__ int leafOf(int staged, int count) const
    {
        return partitionPoint(count, [&](int leaf) { return to[leaf] <= staged; }) - 1;
    }
};

//! Fills it; all threads take part.
template<class Real>
__device__ void findNear(const PairLaunch<Real>& launch, int leaf, NearLeaves* near)
{
    const int thread = threadIdx.x;
    const int3 cell  = cellOfKey(launch.targets.keys[leaf]);
    for (int k = thread; k < NearLeaves::c_most; k += c_threads)
    {
        int place = -1;
        if (k < launch.near.count)
        {
            const int* D = launch.near.displacement[k];
            place = findDisplaced(launch.sources.hash, launch.near.box, cell, D[0], D[1], D[2]);
        }
        near->first[k]  = place < 0 ? 0 : launch.sources.start[place];
        near->to[k + 1] = place < 0 ? 0 : launch.sources.start[place + 1] - near->first[k];
    }
    __syncthreads();
    if (thread < 32)
    {
        int before = 0;
        for (int base = 0; base < NearLeaves::c_most; base += 32)
        {
            int sum = near->to[base + thread + 1];
            for (int offset = 1; offset < 32; offset *= 2)
            {
                const int other = __shfl_up_sync(0xffffffffU, sum, offset);
                sum += thread >= offset ? other : 0;
            }
            near->to[base + thread + 1] = before + sum;
            before += __shfl_sync(0xffffffffU, sum, 31);
        }
        if (thread == 0)
        {
            near->to[0] = 0;
        }
    }
    __syncthreads();
}

//! The shortest image of a displacement.
__device__ inline void shorten(const LeftOutOnDevice& pairs, double* d)
{
    if (!pairs.isPeriodic || d[0] * d[0] + d[1] * d[1] + d[2] * d[2] <= pairs.image.safe2)
    {
        return;
    }
    double turned[3];
    for (int k = 0; k < 3; k++)
    {
        turned[k] = d[0] * pairs.turn[0][k] + d[1] * pairs.turn[1][k] + d[2] * pairs.turn[2][k];
    }
    pairs.image.search(turned);
    for (int k = 0; k < 3; k++)
    {
        d[k] = turned[0] * pairs.turn[k][0] + turned[1] * pairs.turn[k][1]
               + turned[2] * pairs.turn[k][2];
    }
}

//! What a far pair that is left out makes at a target is taken away.
template<class Real, class Law>
__device__ void subtract(const PairLaunch<Real>& launch,
                         const Law& exact,
                         int target,
                         int i,
                         int j,
                         const double* d)
{
    double g, f;
    exact(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], &g, &f);
    const size_t n = launch.targets.n;
    for (int s = 0; s < launch.sets; s++)
    {
        const double q = launch.q[static_cast<size_t>(j) * launch.sets + s] * launch.exactFactor;
        double* sums   = launch.sums + static_cast<size_t>(s) * 4 * n + target;
        sums[0] -= q * g;
        for (int k = 0; k < 3; k++)
        {
            sums[(1 + k) * n] -= q * f * d[k];
        }
        if (launch.strains != nullptr)
        {
            const double own = launch.q[static_cast<size_t>(i) * launch.sets + s];
            const double all = own * q * f;
            double* strains  = launch.strains + static_cast<size_t>(s) * 6 * n + target;
            strains[0] -= all * d[0] * d[0];
            strains[n] -= all * d[1] * d[1];
            strains[2 * n] -= all * d[2] * d[2];
            strains[3 * n] -= all * d[0] * d[1];
            strains[4 * n] -= all * d[0] * d[2];
            strains[5 * n] -= all * d[1] * d[2];
        }
    }
}

/*! \brief Lists the staged sources that do not act on a target, ascending, itself included; what far ones make is
 *         subtracted. \param[out] away  as many as there are partners and one more, at the end INT_MAX */
template<class Real, class Law>
__device__ void listAway(const PairLaunch<Real>& launch,
                         const Law& exact,
                         const NearLeaves& near,
                         int target,
                         int ownStaged,
                         int* away)
{
    // rounding of positions in cells; two images of a particle are farther apart
    constexpr double c_same      = 1e-2;
    const LeftOutOnDevice& pairs = launch.leftOut;
    const int i                  = launch.targets.order[target];
    const Real4<Real> here       = launch.targets.at[target];
    int count                    = 0;
    const auto insert            = [&](int staged)
    {
        int at = count++;
        for (; at > 0 && away[at - 1] > staged; at--)
        {
            away[at] = away[at - 1];
        }
        away[at] = staged;
    };
    insert(ownStaged);
    for (int k = pairs.offsets[i]; k < pairs.offsets[i + 1]; k++)
    {
        const int j      = pairs.partners[k];
        const int source = pairs.sortedOf[j];
        double d[3];
        for (int m = 0; m < 3; m++)
        {
            d[m] = pairs.x[3 * static_cast<size_t>(i) + m]
                   - pairs.x[3 * static_cast<size_t>(j) + m];
        }
        shorten(pairs, d);
        const Real4<Real> there = launch.sources.at[source];
        bool isNear             = false;
        for (int leaf = 0; leaf < launch.near.count && !isNear; leaf++)
        {
            const int staged = near.to[leaf] + source - near.first[leaf];
            if (source < near.first[leaf] || staged >= near.to[leaf + 1])
            {
                continue;
            }
            const Real* shift = launch.near.shift[leaf];
            isNear            = fabs((here.x - (there.x + shift[0])) - d[0] / launch.unit) < c_same
                     && fabs((here.y - (there.y + shift[1])) - d[1] / launch.unit) < c_same
                     && fabs((here.z - (there.z + shift[2])) - d[2] / launch.unit) < c_same;
            if (isNear)
            {
                insert(staged);
            }
        }
        if (!isNear)
        {
            subtract(launch, exact, target, i, j, d);
        }
    }
    for (; count <= pairs.offsets[i + 1] - pairs.offsets[i]; count++)
    {
        away[count] = INT_MAX;
    }
}

//! A law in both precisions.
template<PairLawKind kind, int power = 0>
struct LawType
{
    template<class Real>
    using Of = LawOnDevice<kind, power, Real>;
};

//! Sources that a block has in shared memory, with the charges of some sets.
template<int Sets, class Real>
struct Staged
{
    Real4<Real> at[c_staged]; //!< w is the charge of the first set
    Real q[Sets > 1 ? (Sets - 1) * c_staged : 1];
};

//! Sums of a thread.
template<int Sets, bool Strain, class Real>
struct PairSums
{
    static constexpr int c_count = Strain ? c_resultsWithStrain : c_results;
    Real of[Sets][c_count]       = {};

    //! What a staged source makes at a target.
    template<class Law>
    __device__ __forceinline__ void add(const Law& law,
                                        const Real4<Real>& target,
                                        const Real4<Real>& from,
                                        const Staged<Sets, Real>& staged,
                                        int source)
    {
        const Real dx = target.x - from.x, dy = target.y - from.y, dz = target.z - from.z;
        Real g, f;
        law(dx * dx + dy * dy + dz * dz, &g, &f);
        const Real fx = f * dx, fy = f * dy, fz = f * dz;
#pragma unroll
        for (int s = 0; s < Sets; s++)
        {
            const Real q = s == 0 ? from.w : staged.q[max(s - 1, 0) * c_staged + source];
            of[s][0] += q * g;
            of[s][1] += q * fx;
            of[s][2] += q * fy;
            of[s][3] += q * fz;
            if constexpr (Strain)
            {
                const Real qx = q * fx, qy = q * fy;
                of[s][4] += qx * dx;
                of[s][5] += qy * dy;
                of[s][6] += q * fz * dz;
                of[s][7] += qx * dy;
                of[s][8] += qx * dz;
                of[s][9] += qy * dz;
            }
        }
    }
};

//! A target of a thread.
template<class Sums, class Real>
struct NearTarget
{
    bool isBusy; //!< there is one
    int inLeaf, index;
    Real4<Real> at = { 0, 0, 0, 0 };
    //! \name Staged sources that do not act on it
    //!@{
    int* away    = nullptr;
    int awayEnd  = 0;
    int nextAway = 1;
    int next;
    //!@}
    Sums sums;

    //! Looks for the first such source from one on.
    __device__ __forceinline__ void advance(int staged)
    {
        while (next < staged)
        {
            next = nextAway < awayEnd ? away[nextAway++] : INT_MAX;
        }
    }
};

//! Adds a result of pairs of a target: potential, field, or what strains give.
template<class Real>
__device__ __forceinline__ void
addResult(const PairLaunch<Real>& launch, int set, int result, int target, Real sum)
{
    const size_t n = launch.targets.n;
    if (result < c_results)
    {
        launch.sums[(static_cast<size_t>(set) * c_results + result) * n + target] +=
                sum * (result == 0 ? launch.factor : launch.factor / launch.unit);
    }
    else
    {
        const size_t own = launch.targets.order[target];
        launch.strains[(static_cast<size_t>(set) * 6 + result - c_results) * n + target] +=
                sum * launch.factor * static_cast<double>(launch.q[own * launch.sets + set]);
    }
}

template<class Law, int Sets, bool Strain, class Real>
__global__ void __launch_bounds__(c_threads)
        nearKernel(const __grid_constant__ PairLaunch<Real> launch, int firstSet)
{
    using Sums = PairSums<Sets, Strain, Real>;
    __shared__ NearLeaves near;
    __shared__ Staged<Sets, Real> staged;
    const typename Law::template Of<Real> law(launch.law);
    const typename Law::template Of<double> exact(launch.exactLaw);
    const int thread = threadIdx.x;
    // the leaf whose groups of targets this one is among
    const int leaf = partitionPoint(
            launch.targets.leaves,
            [&](int k) { return launch.targets.groupsEnd[k] <= static_cast<int>(blockIdx.x); });
    if (leaf == launch.targets.leaves)
    {
        return;
    }
    findNear(launch, leaf, &near);
    const int all        = near.to[launch.near.count];
    const int begin      = launch.targets.start[leaf];
    const int inAll      = launch.targets.start[leaf + 1] - begin;
    const int groupsHere = (inAll + c_pointsTogether - 1) / c_pointsTogether;
    const int firstGroup = launch.targets.groupsEnd[leaf] - groupsHere;
    // as many targets in each group, and of these two for each thread of a team
    const int together = (inAll + groupsHere - 1) / groupsHere;
    const int first    = (static_cast<int>(blockIdx.x) - firstGroup) * together;
    const int here     = min(together, inAll - first);
    const int size     = (here + 1) / 2;
    const int teams    = c_threads / size;
    const int team     = thread / size;
    NearTarget<Sums, Real> targets[2];
#pragma unroll
    for (int t = 0; t < 2; t++)
    {
        const int inGroup  = thread % size + t * size;
        targets[t].isBusy  = team < teams && inGroup < here;
        targets[t].inLeaf  = first + inGroup;
        targets[t].index   = begin + first + inGroup;
        targets[t].awayEnd = 0;
        targets[t].next    = launch.areOwn && targets[t].isBusy ? first + inGroup : INT_MAX;
        if (targets[t].isBusy)
        {
            targets[t].at = launch.targets.at[targets[t].index];
        }
    }
    // where sources may be that do not act on a target: itself, and its excluded partners
    const bool hasLeftOut = launch.leftOut.offsets != nullptr;
    const int lookFrom    = hasLeftOut ? 0 : first;
    const int lookTo      = hasLeftOut ? all : launch.areOwn ? first + here : 0;
    if (hasLeftOut)
    {
#pragma unroll
        for (int t = 0; t < 2; t++)
        {
            NearTarget<Sums, Real>& target = targets[t];
            if (target.isBusy)
            {
                const int i    = launch.targets.order[target.index];
                target.away    = launch.leftOut.away + launch.leftOut.offsets[i] + i;
                target.awayEnd = launch.leftOut.offsets[i + 1] - launch.leftOut.offsets[i] + 1;
                if (team == 0 && firstSet == 0)
                {
                    listAway(launch, exact, near, target.index, target.inLeaf, target.away);
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < 2; t++)
        {
            targets[t].next = targets[t].isBusy ? targets[t].away[0] : INT_MAX;
        }
    }
    for (int base = 0; base < all; base += c_staged)
    {
        const int count = min(c_staged, all - base);
        __syncthreads();
        for (int k = thread; k < count; k += c_threads)
        {
            const int of      = near.leafOf(base + k, launch.near.count);
            const int source  = near.first[of] + base + k - near.to[of];
            const Real* shift = launch.near.shift[of];
            Real4<Real> at    = load(launch.sources.at + source);
            at.x += shift[0];
            at.y += shift[1];
            at.z += shift[2];
            if constexpr (Sets > 1)
            {
                const Real* q = launch.q
                                + static_cast<size_t>(launch.sources.order[source]) * launch.sets
                                + firstSet;
                at.w = q[0];
                for (int s = 1; s < Sets; s++)
                {
                    staged.q[(s - 1) * c_staged + k] = firstSet + s < launch.sets ? q[s] : Real(0);
                }
            }
            else if (launch.sets > 1)
            {
                at.w = launch.q[static_cast<size_t>(launch.sources.order[source]) * launch.sets
                                + firstSet];
            }
            staged.at[k] = at;
        }
        __syncthreads();
        if (!targets[0].isBusy)
        {
            continue;
        }
        const auto addUpTo = [&](int k, int end)
        {
#pragma unroll 4
            for (; k < end; k += teams)
            {
                const Real4<Real> from = staged.at[k];
                targets[0].sums.add(law, targets[0].at, from, staged, k);
                targets[1].sums.add(law, targets[1].at, from, staged, k);
            }
            return k;
        };
        int k = addUpTo(team, min(count, lookFrom - base));
        for (const int end = min(count, lookTo - base); k < end; k += teams)
        {
            const Real4<Real> from = staged.at[k];
            for (NearTarget<Sums, Real>& target : targets)
            {
                target.advance(base + k);
                if (target.next != base + k)
                {
                    target.sums.add(law, target.at, from, staged, k);
                }
            }
        }
        addUpTo(k, count);
    }
    // all threads add up what teams have, some results at a time
    constexpr int c_atATime = Strain ? Sums::c_count / 2 : Sums::c_count;
    auto* shared            = reinterpret_cast<Real*>(&staged);
    static_assert(2 * c_atATime * c_threads * sizeof(Real) <= sizeof(staged), "room");
#pragma unroll
    for (int s = 0; s < Sets; s++)
    {
#pragma unroll
        for (int c = 0; c < Sums::c_count; c += c_atATime)
        {
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 2 * c_atATime; k++)
            {
                shared[k * c_threads + thread] =
                        targets[k / c_atATime].sums.of[s][c + k % c_atATime];
            }
            __syncthreads();
            for (int k = thread; k < 2 * c_atATime * size; k += c_threads)
            {
                const int result = k / size, inGroup = k % size + result / c_atATime * size;
                if (inGroup < here && firstSet + s < launch.sets)
                {
                    Real sum = 0;
                    for (int m = 0; m < teams; m++)
                    {
                        sum += shared[result * c_threads + m * size + k % size];
                    }
                    addResult(launch,
                              firstSet + s,
                              c + result % c_atATime,
                              begin + first + inGroup,
                              sum);
                }
            }
        }
    }
}

template<class Law, class Real>
void sumNear(const PairLaunch<Real>& launch, cudaStream_t stream)
{
    const int blocks = launch.targets.mostGroups();
    for (int set = 0; set < launch.sets;)
    {
        const bool strain = launch.strains != nullptr;
        const int left    = strain ? 1 : std::min(launch.sets - set, c_together);
        if (strain)
        {
            nearKernel<Law, 1, true, Real><<<blocks, c_threads, 0, stream>>>(launch, set);
        }
        else if (left > 2)
        {
            nearKernel<Law, 4, false, Real><<<blocks, c_threads, 0, stream>>>(launch, set);
        }
        else if (left == 2)
        {
            nearKernel<Law, 2, false, Real><<<blocks, c_threads, 0, stream>>>(launch, set);
        }
        else
        {
            nearKernel<Law, 1, false, Real><<<blocks, c_threads, 0, stream>>>(launch, set);
        }
        checkLaunch("summing near pairs");
        set += left;
    }
}

template<class Law, class Real>
__global__ void __launch_bounds__(2 * c_threads)
        directKernel(const __grid_constant__ DirectLaunch<Real> launch)
{
    __shared__ double ofWarp[8][4];
    const typename Law::template Of<double> law(launch.law);
    const int result  = blockIdx.x;
    const int i       = launch.some[result];
    const double* own = (launch.areOwn ? launch.x : launch.at) + 3 * static_cast<size_t>(i);
    const auto scaled = [&](const double* x, int k)
    { return (x[k] - launch.origin[k]) / launch.unit; };
    const double here[3]  = { scaled(own, 0), scaled(own, 1), scaled(own, 2) };
    const bool hasLeftOut = launch.offsets != nullptr;
    const int firstLeft   = hasLeftOut ? launch.offsets[i] : 0;
    const int endLeft     = hasLeftOut ? launch.offsets[i + 1] : 0;
    for (int s = 0; s < launch.sets; s++)
    {
        double sums[4] = { 0, 0, 0, 0 };
        for (int j = blockIdx.y * blockDim.x + threadIdx.x; j < launch.n;
             j += gridDim.y * blockDim.x)
        {
            bool acts = !(launch.areOwn && i == j);
            for (int k = firstLeft; k < endLeft; k++)
            {
                acts = acts && launch.partners[k] != j;
            }
            if (!acts)
            {
                continue;
            }
            const double* x   = launch.x + 3 * static_cast<size_t>(j);
            const double d[3] = { here[0] - scaled(x, 0),
                                  here[1] - scaled(x, 1),
                                  here[2] - scaled(x, 2) };
            double g, f;
            law(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], &g, &f);
            const double q = launch.q[static_cast<size_t>(j) * launch.sets + s];
            sums[0] += q * g;
            sums[1] += q * f * d[0];
            sums[2] += q * f * d[1];
            sums[3] += q * f * d[2];
        }
#pragma unroll
        for (int c = 0; c < 4; c++)
        {
            for (int offset = 16; offset > 0; offset /= 2)
            {
                sums[c] += __shfl_xor_sync(0xffffffffU, sums[c], offset);
            }
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0)
        {
#pragma unroll
            for (int c = 0; c < 4; c++)
            {
                ofWarp[threadIdx.x / 32][c] = sums[c];
            }
        }
        __syncthreads();
        if (threadIdx.x < 4)
        {
            double sum = 0;
            for (int warp = 0; warp < 8; warp++)
            {
                sum += ofWarp[warp][threadIdx.x];
            }
            const size_t row =
                    (static_cast<size_t>(blockIdx.y) * launch.sets + s) * 4 + threadIdx.x;
            launch.partial[row * launch.count + result] = sum;
        }
    }
}

//! Calls work with a law as a type. Those that most users have are apart from other powers.
template<class Real, class Work>
void withLaw(const PairLawNumbers<Real>& law, const Work& work)
{
    switch (law.kind)
    {
        case PairLawKind::Yukawa:
            return work(LawType<PairLawKind::Yukawa>());
        case PairLawKind::InversePower:
            return law.exponent == 1   ? work(LawType<PairLawKind::InversePower, 1>())
                   : law.exponent == 6 ? work(LawType<PairLawKind::InversePower, 6>())
                                       : work(LawType<PairLawKind::InversePower>());
        case PairLawKind::Table:
            return work(LawType<PairLawKind::Table>());
    }
}

} // namespace

template<class Real>
void sumNearPairs(const PairLaunch<Real>& launch, cudaStream_t stream)
{
    if (launch.targets.leaves > 0)
    {
        withLaw(launch.law, [&](auto law) { sumNear<decltype(law), Real>(launch, stream); });
    }
}

template<class Real>
void sumAllPairs(const DirectLaunch<Real>& launch, cudaStream_t stream)
{
    if (launch.count > 0)
    {
        withLaw(launch.law,
                [&](auto law)
                {
                    directKernel<decltype(law), Real>
                            <<<dim3(launch.count, launch.stripes), 2 * c_threads, 0, stream>>>(
                                    launch);
                });
        checkLaunch("summing over all pairs");
    }
}

template void sumNearPairs(const PairLaunch<float>&, cudaStream_t);
template void sumNearPairs(const PairLaunch<double>&, cudaStream_t);
template void sumAllPairs(const DirectLaunch<float>&, cudaStream_t);
template void sumAllPairs(const DirectLaunch<double>&, cudaStream_t);

} // namespace farfield
