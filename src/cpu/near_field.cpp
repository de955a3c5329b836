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
    task.cells                = list.occupied().data();
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
    const int n     = static_cast<int>(list.atom().size());
    const int cells = static_cast<int>(list.occupied().size());
    // ranges of cells with equal numbers of particles, one for each thread
    const auto boundary = [&](int range)
    {
        if (range == threads_)
        {
            return cells;
        }
        const int particle = static_cast<int>(static_cast<long long>(n) * range / threads_);
        const auto at      = std::lower_bound(list.occupied().begin(),
                                         list.occupied().end(),
                                         particle,
                                         [&](int cell, int p) { return list.start()[cell] < p; });
        return static_cast<int>(at - list.occupied().begin());
    };
    forTasks(threads_,
             threads_,
             [&](int range)
             {
                 near_[range].resize(n, potentials);
                 const int begin = boundary(range), end = boundary(range + 1);
                 cpuKernels<Real>().p2p(task, begin, end, &near_[range]);
                 if (ghosts != nullptr)
                 {
                     cpuKernels<Real>().p2pOfGhosts(
                             withGhosts, ghosts->particles(), begin, end, &near_[range]);
                 }
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
