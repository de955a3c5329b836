/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2P: the near field of a cell with the third law, and of ghosts without it.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_P2P_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_P2P_INL_H
#undef FARFIELD_CPU_P2P_INL_H
#else
#define FARFIELD_CPU_P2P_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"

#include "cpu/p2p_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Forces between the targets of an item and all that is staged. \returns the energy
template<Besides besides, bool Third, class Real>
double cellForces(const NearTask<Real>& task,
                  const NearItem& item,
                  const Staged<Real>& s,
                  NearForces<Real>* forces)
{
    const auto block = [&](auto targets, int i) HWY_ATTR
    {
        constexpr int c_targets = decltype(targets)::value;
        if (task.close.offsets != nullptr)
        {
            ClosePair* begin = forces->closePairs.data() + forces->closePairsOf[i];
            ClosePair* end   = forces->closePairs.data() + forces->closePairsOf[i + c_targets];
            if (begin != end)
            {
                std::sort(begin,
                          end,
                          [](const ClosePair& a, const ClosePair& b)
                          { return a.source < b.source; });
                return targetBlock<c_targets, besides, Third, true>(task, s, i, begin, end);
            }
        }
        return targetBlock<c_targets, besides, Third, false>(task, s, i, nullptr, nullptr);
    };
    // blocks go to the parts in turn: a target has fewer sources behind it than those before
    constexpr int c_block = 4;
    const int whole       = s.own / c_block;
    double energy         = 0;
    for (int b = item.part; b < whole; b += item.parts)
    {
        energy += block(std::integral_constant<int, c_block>(), c_block * b);
    }
    if (whole % item.parts != item.part)
    {
        return energy;
    }
    int i = c_block * whole;
    if (i + 2 <= s.own)
    {
        energy += block(std::integral_constant<int, 2>(), i);
        i += 2;
    }
    if (i < s.own)
    {
        energy += block(std::integral_constant<int, 1>(), i);
    }
    return energy;
}

/*! \brief Finds the pairs of a cell that must not interact among its staged sources.
 *
 *  In small boxes there are several images of a source.
 *  \param[in] own  particles of the cell itself, the targets */
template<class Real>
void findClosePairs(const ClosePartners& close,
                    const Stretch& own,
                    Stretches<Real>* stretches,
                    NearForces<Real>* forces)
{
    stretches->orderByParticle();
    forces->closePairs.clear();
    forces->closePairsOf.resize(own.count + 1);
    for (int i = 0; i < own.count; i++)
    {
        forces->closePairsOf[i] = static_cast<int>(forces->closePairs.size());
        for (int k = close.offsets[own.first + i]; k < close.offsets[own.first + i + 1]; k++)
        {
            const int partner = close.partners[k];
            stretches->withParticle(partner,
                                    [&](const Stretch& t)
                                    {
                                        const int source = t.position + partner - t.first;
                                        // those before are targets that have been dealt with
                                        if (source > i)
                                        {
                                            forces->closePairs.push_back({ i, source });
                                        }
                                    });
        }
    }
    forces->closePairsOf[own.count] = static_cast<int>(forces->closePairs.size());
}

//! The pairs of what is staged. \returns the energy
template<class Real>
double stagedForces(const NearTask<Real>& task,
                    const NearItem& item,
                    const Staged<Real>& s,
                    NearForces<Real>* forces)
{
    return task.potentials ? cellForces<Besides::Potentials, true>(task, item, s, forces)
           : task.energy   ? cellForces<Besides::Energy, true>(task, item, s, forces)
                           : cellForces<Besides::Nothing, true>(task, item, s, forces);
}

template<class Real>
void p2p(const NearTask<Real>& task, int begin, int end, NearForces<Real>* forces)
{
    Stretches<Real> stretches(task, task.particles.start, true);
    for (int k = begin; k < end; k++)
    {
        const NearItem& item = task.items[k];
        stretches.find(item.cell, 0);
        const Staged<Real> s =
                stagedRoom(stretches.endOfStaged(), stretches.begin()->count, 0, &forces->staging);
        stage(task.particles, stretches, task.potentials, s);
        if (task.close.offsets != nullptr)
        {
            findClosePairs(task.close, *stretches.begin(), &stretches, forces);
        }
        forces->energy += stagedForces(task, item, s, forces);
        for (const Stretch& t : stretches)
        {
            addStaged(t, s, task.potentials, forces);
        }
        if (task.virial)
        {
            addVirial(s, forces->virial);
        }
    }
}

template<class Real>
void p2pOfGhosts(const NearTask<Real>& task,
                 const Particles<Real>& ghosts,
                 int begin,
                 int end,
                 NearForces<Real>* forces)
{
    const int L      = lanesOf<Real>();
    const int* start = task.particles.start;
    Stretches<Real> stretches(task, ghosts.start, false);
    for (int k = begin; k < end; k++)
    {
        const NearItem& item = task.items[k];
        const int cell       = item.cell;
        const Stretch own    = { start[cell], start[cell + 1] - start[cell], 0, 0 };
        const int others     = (own.count + L - 1) / L * L;
        stretches.find(cell, others);
        if (stretches.begin() == stretches.end())
        {
            continue;
        }
        const Staged<Real> s =
                stagedRoom(stretches.endOfStaged(), own.count, others, &forces->staging);
        stageStretch(task.particles, own, Vec3::Zero(), s);
        padStaged(s, own.count, others);
        stage(ghosts, stretches, task.potentials, s);
        if (task.close.offsets != nullptr)
        {
            findClosePairs(task.close, own, &stretches, forces);
        }
        // whoever has the ghosts sees the same pairs; forces on them are for the virial alone
        if (task.energy)
        {
            forces->energy += 0.5 * stagedForces(task, item, s, forces);
        }
        else
        {
            cellForces<Besides::Nothing, false>(task, item, s, forces);
        }
        addStaged(own, s, task.potentials, forces);
        if (task.virial)
        {
            double ofPairs[6] = { 0, 0, 0, 0, 0, 0 };
            addVirial(s, ofPairs);
            for (int c = 0; c < 6; c++)
            {
                forces->virial[c] += 0.5 * ofPairs[c];
            }
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
