/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/near_field.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cells/excluded_pairs.h"
#include "plan/cost_model.h"

namespace farfield
{

template<class Real>
void NearField<Real>::addSubtraction(const Mat3& box,
                                     const Real* x,
                                     const Real* q,
                                     double closeDistance,
                                     bool potentials)
{
    if (potentials)
    {
        excludedPotentials_.assign(excludedForces_.size() / 3, Real(0));
    }
    exclusions_.addSubtraction(box,
                               x,
                               q,
                               closeDistance,
                               excludedForces_.data(),
                               potentials ? excludedPotentials_.data() : nullptr,
                               &team_);
}

template<class Real>
void NearField<Real>::addP2p(const CellList<Real>& list,
                             const CellList<Real>* ghosts,
                             const Grid& grid,
                             int ws,
                             double closeDistance,
                             const std::vector<std::pair<int, int>>& further,
                             const Request& request,
                             bool potentials)
{
    task_            = {};
    task_.isRelative = !list.keepsGiven();
    task_.particles  = task_.isRelative ? list.particles() : list.given();
    task_.grid       = &grid;
    task_.ws         = ws;
    task_.energy     = request.energy;
    task_.virial     = request.virial;
    task_.potentials = potentials;
    taskOfGhosts_    = task_;
    auto close       = exclusions_.close();
    close.insert(close.end(), further.begin(), further.end());
    if (!close.empty())
    {
        sortClosePairs(close, list, ghosts);
        task_.close          = close_.view();
        task_.imageDistance2 = static_cast<Real>(closeInCells(closeDistance));
        taskOfGhosts_        = task_;
        taskOfGhosts_.close  = closeGhosts_.view();
    }
    divide(list);
    team_.add(division_.ranges,
              [this, &list, ghosts](int range, int /*thread*/) { addRange(range, list, ghosts); });
}

template<class Real>
void NearField<Real>::addRange(int range, const CellList<Real>& list, const CellList<Real>* ghosts)
{
    NearForces<Real>* forces = &near_[range];
    forces->resize(static_cast<int>(list.atom().size()), task_.potentials);
    const int begin = division_.boundary(range);
    const int end   = division_.boundary(range + 1);
    cpuKernels<Real>().p2p(task_, begin, end, forces);
    if (ghosts != nullptr)
    {
        cpuKernels<Real>().p2pOfGhosts(taskOfGhosts_, ghosts->particles(), begin, end, forces);
    }
}

template<class Real>
void NearField<Real>::addSums(StageSums* sums) const
{
    exclusions_.addSums(&sums->energy, sums->excludedVirial);
    for (const auto& own : near_)
    {
        sums->energy += own.energy;
        for (int c = 0; c < 6; c++)
        {
            sums->virial[c] += own.virial[c];
        }
    }
}

template<class Real>
int NearField<Real>::Division::boundary(int range) const
{
    const auto wanted = static_cast<long long>(reached.back()) * range / ranges;
    return static_cast<int>(std::lower_bound(reached.begin(), reached.end(), wanted)
                            - reached.begin());
}

template<class Real>
void NearField<Real>::divide(const CellList<Real>& list)
{
    //! With fewer particles a range has more to do with those around it than with its own.
    constexpr int c_least = 128;
    //! A part of a cell with more of the particles of a range makes ranges unequal.
    constexpr double c_most = 0.5;
    //! With fewer targets it takes longer to gather the sources.
    constexpr int c_targets = 8;

    const auto n      = static_cast<int>(list.atom().size());
    const int threads = team_.threads();
    auto& d           = division_;
    d.ranges          = std::clamp(n / c_least, threads, mostNearRanges(threads));
    const double most = c_most * n / d.ranges;
    d.items.clear();
    d.reached.assign(1, 0);
    for (const int cell : list.occupied())
    {
        const int count  = list.start()[cell + 1] - list.start()[cell];
        const int parts  = d.ranges == 1 ? 1
                                         : std::clamp(static_cast<int>(std::ceil(count / most)),
                                                     1,
                                                     std::max(1, count / c_targets));
        const int before = d.reached.back();
        for (int part = 0; part < parts; part++)
        {
            d.items.push_back({ cell, part, parts });
            d.reached.push_back(
                    before + static_cast<int>(static_cast<long long>(count) * (part + 1) / parts));
        }
    }
    task_.items         = d.items.data();
    taskOfGhosts_.items = d.items.data();
    near_.resize(d.ranges);
}

template<class Real>
void NearField<Real>::sortClosePairs(const std::vector<std::pair<int, int>>& pairs,
                                     const CellList<Real>& list,
                                     const CellList<Real>* ghosts)
{
    const int own      = static_cast<int>(excludedForces_.size() / 3);
    const auto setRank = [&](const std::vector<int>& atom, int particles, std::vector<int>* rank)
    {
        rank->resize(particles);
        constexpr int c_grain = 4096;
        team_.forRanges(static_cast<int>(atom.size()),
                        c_grain,
                        [&](int begin, int end)
                        {
                            for (int i = begin; i < end; i++)
                            {
                                (*rank)[atom[i]] = i;
                            }
                        });
    };
    setRank(list.atom(), own, &rank_);
    if (ghosts != nullptr)
    {
        setRank(ghosts->atom(), ghosts->particlesGiven(), &ghostRank_);
    }
    const auto fill = [&](ClosePairs* rows, const auto& forEntries)
    {
        rows->offsets.assign(list.atom().size() + 2, 0);
        size_t entries = 0;
        // counts one row ahead, so that filling moves the offsets to where they belong
        forEntries(
                [&](int row, int /*partner*/)
                {
                    rows->offsets[row + 2]++;
                    entries++;
                });
        std::partial_sum(rows->offsets.begin(), rows->offsets.end(), rows->offsets.begin());
        rows->partners.resize(entries);
        forEntries([&](int row, int partner)
                   { rows->partners[rows->offsets[row + 1]++] = partner; });
    };
    fill(&close_,
         [&](const auto& visit)
         {
             for (const auto& [i, j] : pairs)
             {
                 if (j < own)
                 {
                     visit(rank_[i], rank_[j]);
                     visit(rank_[j], rank_[i]);
                 }
             }
         });
    if (ghosts != nullptr)
    {
        fill(&closeGhosts_,
             [&](const auto& visit)
             {
                 for (const auto& [i, j] : pairs)
                 {
                     if (j >= own)
                     {
                         visit(rank_[i], ghostRank_[j - own]);
                     }
                 }
             });
    }
}

template class NearField<float>;
template class NearField<double>;

} // namespace farfield
