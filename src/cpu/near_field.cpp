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
                          const Grid& grid,
                          int ws,
                          double closeDistance,
                          const Request& request,
                          bool potentials,
                          StageSums* sums)
{
    NearTask<Real> task;
    task.particles  = list.particles();
    task.grid       = &grid;
    task.ws         = ws;
    task.cells      = list.occupied().data();
    task.energy     = request.energy;
    task.virial     = request.virial;
    task.potentials = potentials;
    if (!exclusions_.close().empty())
    {
        sortClosePairs(list.atom());
        task.closeOffsets   = closeOffsets_.data();
        task.closePartners  = closePartners_.data();
        task.imageDistance2 = static_cast<Real>(closeInCells(closeDistance));
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
                 cpuKernels<Real>().p2p(task, boundary(range), boundary(range + 1), &near_[range]);
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
void NearField<Real>::sortClosePairs(const std::vector<int>& atom)
{
    const int n       = static_cast<int>(atom.size());
    const auto& pairs = exclusions_.close();
    rank_.resize(excludedForces_.size() / 3);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (int i = 0; i < n; i++)
    {
        rank_[atom[i]] = i;
    }
    closeOffsets_.assign(static_cast<size_t>(n) + 2, 0);
    closePartners_.resize(2 * pairs.size());
    // counts one row ahead, so that filling moves the offsets to where they belong
    for (const auto& [i, j] : pairs)
    {
        closeOffsets_[rank_[i] + 2]++;
        closeOffsets_[rank_[j] + 2]++;
    }
    std::partial_sum(closeOffsets_.begin(), closeOffsets_.end(), closeOffsets_.begin());
    for (const auto& [i, j] : pairs)
    {
        closePartners_[closeOffsets_[rank_[i] + 1]++] = rank_[j];
        closePartners_[closeOffsets_[rank_[j] + 1]++] = rank_[i];
    }
}

template class NearField<float>;
template class NearField<double>;

} // namespace farfield
