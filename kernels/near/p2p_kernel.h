/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The near-field kernel.
 *
 *  A warp takes the particles of a cell as targets, in groups that fit into registers; its lanes
 *  are sources. All sources of the cell, from several cells, are one sequence that is cut into
 *  batches of a warp, so that lanes are idle in the last batch only. With the third law the force
 *  on a source is added to memory by one vector reduction per batch, that on targets by one per
 *  group.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_KERNEL_H
#define FARFIELD_KERNELS_NEAR_P2P_KERNEL_H

#include <climits>

#include "near/p2p_law.h"
#include "near/p2p_sources.h"

namespace farfield
{
namespace p2pDetail
{

//! Targets of a warp: their forces from the sources of this lane.
template<class Shape>
class TargetGroup
{
public:
    using Real = typename Shape::Real;

    //! \param[in] first, count  sorted particles
    __device__ __forceinline__
    TargetGroup(const Worker<Shape>& self, const Real4<Real>* xq, int first, int count) :
        targets_(self.targets),
        count_(count), law_(self.law)
    {
        __syncwarp();
        if (self.lane < c_targets)
        {
            targets_[self.lane] =
                    (self.lane < count) ? load(xq + first + self.lane) : Real4<Real>{ 0, 0, 0, 0 };
        }
        law_.load(self.lane, first, count);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < c_targets; k++)
        {
            if (k < Shape::c_held)
            {
                held_[k] = targets_[k];
            }
            fx_[k] = fy_[k] = fz_[k] = Real(0);
        }
    }

    /*! \brief Pairs of a batch.
     *  \tparam    Masked  some are left out: 'keep' has a bit for every target the source meets
     *  \param[in] of      what the law has of the source
     *  \param[in] reacts  the force on the source is added to its memory */
    template<bool Masked>
    __device__ __forceinline__ void meet(const PlacedSource<Real>& s,
                                         const typename Shape::Law::OfSource& of,
                                         unsigned int keep,
                                         bool reacts,
                                         Real4<Real>* forces,
                                         OwnSums* sums)
    {
        // keeps coinciding sites finite, with zero force
        const Real c_tiny = Real(1e-20);
        Real gx = 0, gy = 0, gz = 0, phi = 0, excess = 0;
        law_.begin(of, s.q);
        if (Shape::c_held < c_targets)
        {
            asm volatile("" ::: "memory"); // loaded anew, not kept in registers
        }
        const auto pair = [&](int k)
        {
            const Real4<Real> target = this->target(k);
            const Real dx = target.x - s.x, dy = target.y - s.y, dz = target.z - s.z;
            const Real r2 = fma(dx, dx, fma(dy, dy, fma(dz, dz, c_tiny)));
            const Real y  = inverseRoot(r2);
            // q q / r^3
            Real f = (target.w * s.q * y) * (y * y);
            // what the law takes comes below
            const bool isTaken = law_.takes(k, r2);
            if (Masked)
            {
                f = (keep >> k & 1U) != 0 ? f : Real(0);
            }
            if (c_takesPairs)
            {
                f = isTaken ? Real(0) : f;
            }
            fx_[k] = fma(f, dx, fx_[k]);
            fy_[k] = fma(f, dy, fy_[k]);
            fz_[k] = fma(f, dz, fz_[k]);
            if (Shape::c_reactions)
            {
                gx = fma(-f, dx, gx);
                gy = fma(-f, dy, gy);
                gz = fma(-f, dz, gz);
            }
            if (Shape::c_energy)
            {
                Real potential = refined(y, r2);
                if (Masked)
                {
                    potential = (keep >> k & 1U) != 0 ? potential : Real(0);
                }
                if (c_takesPairs)
                {
                    potential = isTaken ? Real(0) : potential;
                }
                phi = fma(target.w, potential, phi);
            }
        };
        forFirst<Shape::c_least, Shape::c_step, c_targets>(count_, pair);
        if constexpr (c_takesPairs)
        {
            // of a lane one after the other: few lanes have many, and the law is long
            for (unsigned int left = law_.taken() & (Masked ? keep : c_all); left != 0;
                 left &= left - 1)
            {
                const int k              = __ffs(static_cast<int>(left)) - 1;
                const Real4<Real> target = targets_[k];
                const Real dx = target.x - s.x, dy = target.y - s.y, dz = target.z - s.z;
                const Real r2    = fma(dx, dx, fma(dy, dy, fma(dz, dz, c_tiny)));
                const auto terms = law_.terms(k, r2);
                const Real f     = target.w * s.q * terms.slope;
                addTo(k, f, dx, dy, dz);
                gx     = fma(-f, dx, gx);
                gy     = fma(-f, dy, gy);
                gz     = fma(-f, dz, gz);
                phi    = fma(target.w, fma(r2, terms.slope, terms.excess), phi);
                excess = fma(target.w, terms.excess, excess);
            }
        }
        if (Shape::c_energy)
        {
            sums->energy += static_cast<double>(s.q) * static_cast<double>(phi);
        }
        if (Shape::c_virial)
        {
            addProduct(s.x, s.y, s.z, gx, gy, gz);
        }
        if (Shape::c_excess)
        {
            sums->excess += static_cast<double>(s.q) * static_cast<double>(excess);
        }
        if (Shape::c_thirdLaw)
        {
            add(reacts, forces + s.index, gx, gy, gz);
        }
    }

    //! Adds the virial of what was met; lanes hold parts of the sums over sources, and of this.
    __device__ __forceinline__ void addVirial(OwnSums* sums)
    {
#pragma unroll
        for (int k = 0; k < c_targets; k++)
        {
            const Real4<Real> target = this->target(k);
            addProduct(target.x, target.y, target.z, fx_[k], fy_[k], fz_[k]);
        }
        for (int k = 0; k < 6; k++)
        {
            sums->virial[k] += static_cast<double>(v_[k]);
        }
    }

    //! Sums over the lanes and adds to memory. \param[in] forces  that of the first target
    __device__ __forceinline__ void addForces(int lane, Real4<Real>* forces)
    {
        const int k = transposedSum<c_targets, c_warp / 2>(fx_, fy_, fz_, count_, lane);
        if (k < c_targets && k < count_)
        {
            Real4<Real>* to = forces + k;
            if (Shape::c_thirdLaw)
            {
                add(true, to, fx_[0], fy_[0], fz_[0]);
            }
            else
            {
                to->x += fx_[0];
                to->y += fy_[0];
                to->z += fz_[0];
            }
        }
    }

private:
    static constexpr int c_targets     = Shape::c_targets;
    static constexpr bool c_takesPairs = Shape::Law::c_takesPairs;

    //! Adds f (x, y, z) to the force of a target; its number need not be known to the compiler.
    __device__ __forceinline__ void addTo(int target, Real f, Real x, Real y, Real z)
    {
#pragma unroll
        for (int k = 0; k < c_targets; k++)
        {
            const Real part = k == target ? f : Real(0);
            fx_[k]          = fma(part, x, fx_[k]);
            fy_[k]          = fma(part, y, fy_[k]);
            fz_[k]          = fma(part, z, fz_[k]);
        }
    }
    __device__ __forceinline__ Real4<Real> target(int k) const
    {
        return (k < Shape::c_held) ? held_[k] : targets_[k];
    }
    __device__ __forceinline__ void addProduct(Real x, Real y, Real z, Real fx, Real fy, Real fz)
    {
        v_[0] = fma(x, fx, v_[0]);
        v_[1] = fma(y, fy, v_[1]);
        v_[2] = fma(z, fz, v_[2]);
        v_[3] = fma(x, fy, v_[3]);
        v_[4] = fma(x, fz, v_[4]);
        v_[5] = fma(y, fz, v_[5]);
    }

    Real4<Real>* targets_;
    int count_;
    typename Shape::Law::template Targets<Shape> law_;
    Real4<Real> held_[Shape::c_held > 0 ? Shape::c_held : 1];
    Real fx_[c_targets], fy_[c_targets], fz_[c_targets];
    Real v_[6] = { 0, 0, 0, 0, 0, 0 };
};

//! A bit if a sorted particle, the close partner of a source, is among the targets of a group: the
//! pair itself, not another image of it. \param[in] first  the first target, sorted
template<class Real>
__device__ __forceinline__ unsigned int closeTarget(const P2pArguments<Real>& task,
                                                    const PlacedSource<Real>& s,
                                                    int partner,
                                                    int first,
                                                    int count)
{
    if (partner < first || partner >= first + count)
    {
        return 0;
    }
    const Real4<Real> p = load(task.particles.xq + partner);
    const Real dx = p.x - s.x, dy = p.y - s.y, dz = p.z - s.z;
    return (dx * dx + dy * dy + dz * dz < task.close2) ? bit(partner - first) : 0U;
}

//! The targets of a group that a source is a close excluded partner of: a bit for each.
template<class Real>
__device__ __forceinline__ unsigned int
closeTargets(const P2pArguments<Real>& task, const PlacedSource<Real>& s, int first, int count)
{
    using Exclusions = DeviceExclusions<Real>;
    const int4 of    = task.exclusions.closeOf[s.index];
    if (of.w != Exclusions::c_more)
    {
        return closeTarget(task, s, of.x, first, count) | closeTarget(task, s, of.y, first, count)
               | closeTarget(task, s, of.z, first, count)
               | closeTarget(task, s, of.w, first, count);
    }
    unsigned int close = 0;
    if (of.y < first || of.x >= first + count)
    {
        return close;
    }
    const int own = task.particles.atom[s.index];
    for (int k = task.exclusions.offsets[own]; k < task.exclusions.offsets[own + 1]; k++)
    {
        if (task.exclusions.close[k])
        {
            const int partner = task.particles.position[task.exclusions.partners[k]];
            close |= closeTarget(task, s, partner, first, count);
        }
    }
    return close;
}

/*! \brief Which targets of a group a source meets: a bit for each.
 *
 *  With the third law, pairs among the targets are met once; a particle has no energy with itself;
 *  close excluded pairs are left out.
 *  \param[in] source  its position in the sequence
 *  \param[in] group   position of the first target */
template<class Shape, class Real>
__device__ __forceinline__ unsigned int targetsMet(const P2pArguments<Real>& task,
                                                   const Worker<Shape>& self,
                                                   const SourceSequence<Shape>& sources,
                                                   const PlacedSource<Real>& s,
                                                   int source,
                                                   int group,
                                                   int count)
{
    unsigned int keep = c_all;
    if (Shape::c_thirdLaw)
    {
        keep = targetsBefore(source - group);
    }
    else if (Shape::c_energy)
    {
        const int index = source - group;
        if (index >= 0 && index < count)
        {
            keep = ~bit(index);
        }
    }
    if (self.careful && source < sources.total())
    {
        keep &= ~closeTargets(task, s, sources.first() + group, count);
    }
    __syncwarp();
    return keep;
}

/*! \brief A group of targets and all sources that it meets.
 *  \param[in] group       position of the first target in the sequence of sources
 *  \param[in] firstBatch, stride  of sources, the share of this warp */
template<class Shape, class Real>
__device__ __forceinline__ void meetSources(const P2pArguments<Real>& task,
                                            const Worker<Shape>& self,
                                            const SourceSequence<Shape>& sources,
                                            int group,
                                            int count,
                                            int firstBatch,
                                            int stride,
                                            OwnSums* sums)
{
    const Real4<Real>* xq = task.particles.xq;
    const int total       = sources.total();
    // with the third law, own particles before these have met them as targets
    const int base0 = Shape::c_thirdLaw ? group : 0;
    const int base1 = base0 + firstBatch;
    if (base1 >= total)
    {
        return;
    }
    // sources are loaded one batch ahead
    Source<Shape> s = {};
    sources.fetch(self, xq, base1, &s);
    TargetGroup<Shape> targets(self, xq, sources.first() + group, count);

    // With the third law, the targets are also the first sources. Forces are the same whether such
    // pairs are met twice, without a reaction, or are left out once; the former needs no masks, but
    // counts energies twice. A particle and itself have no force.
    const int oneSided   = (Shape::c_energy || self.careful) ? base0 : base0 + count;
    const int sinceSided = kept(self.lane - oneSided);
    const int afterSided = uniform(total - oneSided, 0);
    // Batches up to here have pairs that are left out.
    int maskedEnd = base0;
    if (Shape::c_energy)
    {
        maskedEnd = Shape::c_thirdLaw ? base0 + count : sources.own();
    }
    if (self.careful)
    {
        maskedEnd = total;
    }

    const auto next = [&](int base, auto masked)
    {
        constexpr bool c_masked    = decltype(masked)::value;
        const PlacedSource<Real> p = { s.xq.x + s.x, s.xq.y + s.y, s.xq.z + s.z, s.xq.w, s.index };
        const auto ofSource        = s.law;
        // after the one-sided ones and before the end
        const bool reacts = static_cast<unsigned int>(base + sinceSided)
                            < static_cast<unsigned int>(afterSided);
        sources.fetch(self, xq, base + stride, &s);
        unsigned int keep = c_all;
        if (c_masked)
        {
            keep = targetsMet<Shape>(task, self, sources, p, base + self.lane, group, count);
        }
        targets.template meet<c_masked>(p, ofSource, keep, reacts, task.forces, sums);
    };
    int base = base1;
#pragma unroll 1
    for (; base < maskedEnd; base += stride)
    {
        next(base, std::true_type());
    }
#pragma unroll 1
    for (; base < total; base += stride)
    {
        next(base, std::false_type());
    }
    if (Shape::c_virial)
    {
        targets.addVirial(sums);
    }
    targets.addForces(self.lane, task.forces + sources.first() + group);
}

/*! \brief All targets of a cell, or those of the share of this warp.
 *  \param[in] share  number of the warp among those that share the cell */
template<class Shape, class Real>
__device__ __forceinline__ void meetGroups(const P2pArguments<Real>& task,
                                           const Worker<Shape>& self,
                                           const SourceSequence<Shape>& sources,
                                           int share,
                                           int logShares,
                                           OwnSums* sums)
{
    const TargetGroups<Shape::c_targets> groups(sources.own());
    const int groupSize = uniform(groups.size, 0);
    int firstGroup = 0, groupStride = groupSize, firstBatch = 0, stride = c_warp;
    if (Shape::c_shares)
    {
        const WarpShare own(share, logShares, groups.groups);
        firstGroup  = uniform(own.firstGroup * groups.size, 0);
        groupStride = uniform(own.groupStep * groups.size, 0);
        firstBatch  = uniform(own.firstBatch * c_warp, 0);
        stride      = uniform(own.batchStep * c_warp, 0);
    }
    for (int group = firstGroup; group < sources.own(); group += groupStride)
    {
        const int count = min(groupSize, sources.own() - group);
        meetSources<Shape>(task, self, sources, group, count, firstBatch, stride, sums);
    }
}

//! Adds up the sums of all lanes.
template<class Shape, class Real>
__device__ __forceinline__ void addTotals(const P2pArguments<Real>& task, const OwnSums& sums)
{
    // without the third law both directions of a pair were counted
    const double pair    = Shape::c_thirdLaw ? 1 : 0.5;
    constexpr int c_most = Shape::c_excess ? 8 : 7;
    double own[c_most]   = { pair * sums.energy };
    double* to[c_most]   = { &task.totals->energy };
    for (int k = 0; k < 6; k++)
    {
        own[1 + k] = -0.5 * pair * sums.virial[k];
        to[1 + k]  = &task.totals->virial[k];
    }
    if constexpr (Shape::c_excess)
    {
        own[7] = 0.5 * pair * sums.excess;
        to[7]  = &task.totals->excess;
    }
    addInOrder<Shape::c_virial ? c_most : 1>(own, task.sums, to);
}

} // namespace p2pDetail

//! Forces between particles of near cells, added to task.forces.
template<class Shape>
__global__ void __launch_bounds__(c_warp* Shape::c_warps, Shape::c_blocks)
        p2pKernel(const typename Shape::Law::Arguments task)
{
    using namespace p2pDetail;
    using Real = typename Shape::Real;

    __shared__ Piece<Real> pieces[Shape::c_warps][c_warp * Shape::c_perLane];
    __shared__ Real4<Real> targets[Shape::c_warps][Shape::c_targets];

    const int lane     = kept(static_cast<int>(threadIdx.x % c_warp));
    const int warp     = uniform(static_cast<int>(threadIdx.x) / c_warp, 0);
    const bool careful = task.exclusions.anyClose != nullptr && *task.exclusions.anyClose != 0;
    const Worker<Shape> self = { lane,
                                 pieces[warp],
                                 PieceList<Real>(pieces[warp]),
                                 targets[warp],
                                 careful,
                                 kept((2U << lane) - 1U),
                                 typename Shape::Law(task) };
    OwnSums sums;

    const int warps     = static_cast<int>(gridDim.x) * Shape::c_warps;
    const int logShares = Shape::c_shares ? task.logShares : 0;
    const bool listed   = task.occupied.cells != nullptr;
    int firstEntry, lastEntry;
    task.occupied.findShare(&firstEntry, &lastEntry);
    const int first = uniform(firstEntry << logShares, 0),
              items = uniform(lastEntry << logShares, 0);
    for (int item = first + static_cast<int>(blockIdx.x) * Shape::c_warps + warp; item < items;
         item += warps)
    {
        const int entry = item >> logShares;
        // in either case: ptxas of CUDA 13.0 mistakes the condition of one that is not always done
        const int cell = uniform(listed ? task.occupied.cells[entry] : entry, 0);
        const SourceSequence<Shape> sources(task, self, cell);
        __syncwarp();
        if (sources.own() > 0)
        {
            meetGroups<Shape>(task, self, sources, item & ((1 << logShares) - 1), logShares, &sums);
            __syncwarp(); // before the pieces of the next cell overwrite these
        }
    }
    if (Shape::c_energy)
    {
        addTotals<Shape>(task, sums);
    }
}

} // namespace farfield

#endif
