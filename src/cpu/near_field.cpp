/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/near_field.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "cells/excluded_pairs.h"

namespace farfield
{

template<class Real>
void NearField<Real>::subtract(const Mat3& box,
                               const Real* x,
                               const Real* q,
                               double closeDistance,
                               bool potentials,
                               StageSums* sums)
{
    std::fill(excludedForces_.begin(), excludedForces_.end(), Real(0));
    if (potentials)
    {
        excludedPotentials_.assign(excludedForces_.size() / 3, Real(0));
    }
    exclusions_.subtract(box,
                         x,
                         q,
                         closeDistance,
                         excludedForces_.data(),
                         potentials ? excludedPotentials_.data() : nullptr,
                         threads_,
                         &sums->energy,
                         sums->excludedVirial);
}

template<class Real>
void NearField<Real>::p2p(const CellList<Real>& list,
                          const CellList<Real>* ghosts,
                          const Grid& grid,
                          int ws,
                          double closeDistance,
                          const Request& request,
                          bool potentials,
                          StageSums* sums)
{
    NearTask<Real> task;
    task.particles            = list.particles();
    task.grid                 = &grid;
    task.ws                   = ws;
    task.energy               = request.energy;
    task.virial               = request.virial;
    task.potentials           = potentials;
    NearTask<Real> withGhosts = task;
    if (!exclusions_.close().empty())
    {
        sortClosePairs(list, ghosts);
        task.close          = close_.view();
        task.imageDistance2 = static_cast<Real>(closeInCells(closeDistance));
        withGhosts          = task;
        withGhosts.close    = closeGhosts_.view();
    }
    divide(list);
    const std::vector<int>& reached = division_.reached;
    // ranges of cells with equal numbers of particles, one for each thread
    const auto boundary = [&](int range)
    {
        const int particle =
                static_cast<int>(static_cast<long long>(division_.particles) * range / threads_);
        return range == threads_
                       ? static_cast<int>(reached.size())
                       : static_cast<int>(std::lower_bound(reached.begin(), reached.end(), particle)
                                          - reached.begin());
    };
    forTasks(threads_,
             threads_,
             [&](int range)
             {
                 NearForces<Real>* forces = &near_[range];
                 forces->resize(static_cast<int>(list.atom().size()), potentials);
                 const auto addPairs =
                         [&](const std::vector<int>& cells, int begin, int end, int part, int parts)
                 {
                     const auto partOf = [&](NearTask<Real> whole)
                     {
                         whole.cells = cells.data();
                         whole.part  = part;
                         whole.parts = parts;
                         return whole;
                     };
                     cpuKernels<Real>().p2p(partOf(task), begin, end, forces);
                     if (ghosts != nullptr)
                     {
                         cpuKernels<Real>().p2pOfGhosts(
                                 partOf(withGhosts), ghosts->particles(), begin, end, forces);
                     }
                 };
                 addPairs(division_.cells, boundary(range), boundary(range + 1), 0, 1);
                 addPairs(division_.full,
                          0,
                          static_cast<int>(division_.full.size()),
                          range,
                          threads_);
             });
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
void NearField<Real>::divide(const CellList<Real>& list)
{
    //! A cell with more than such a part of the particles of a thread keeps others waiting.
    constexpr double c_full = 0.25;

    const auto n = static_cast<double>(list.atom().size());
    auto& d      = division_;
    d.particles  = 0;
    d.cells.clear();
    d.reached.clear();
    d.full.clear();
    for (const int cell : list.occupied())
    {
        const int count = list.start()[cell + 1] - list.start()[cell];
        if (threads_ > 1 && count * threads_ > c_full * n)
        {
            d.full.push_back(cell);
            continue;
        }
        d.cells.push_back(cell);
        d.reached.push_back(d.particles);
        d.particles += count;
    }
}

template<class Real>
void NearField<Real>::sortClosePairs(const CellList<Real>& list, const CellList<Real>* ghosts)
{
    const int own      = static_cast<int>(excludedForces_.size() / 3);
    const auto& pairs  = exclusions_.close();
    const auto setRank = [&](const std::vector<int>& atom, int particles, std::vector<int>* rank)
    {
        rank->resize(particles);
#pragma omp parallel for schedule(static) num_threads(threads_)
        for (int i = 0; i < static_cast<int>(atom.size()); i++)
        {
            (*rank)[atom[i]] = i;
        }
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
