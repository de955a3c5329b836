/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/exclusions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/threads.h"
#include "cells/minimum_image.h"

namespace farfield
{

namespace
{

/*! \brief Entries as compressed rows.
 *  \param[in] forEntries  calls a function with row and entry of each, twice in the same order */
template<class ForEntries>
ExcludedPairs inRows(int n, const ForEntries& forEntries)
{
    ExcludedPairs rows;
    rows.offsets.assign(static_cast<size_t>(n) + 1, 0);
    forEntries([&](int row, int /*entry*/) { rows.offsets[row + 1]++; });
    std::partial_sum(rows.offsets.begin(), rows.offsets.end(), rows.offsets.begin());
    rows.partners.resize(rows.offsets[n]);
    std::vector<int> next(rows.offsets.begin(), rows.offsets.end() - 1);
    forEntries([&](int row, int entry) { rows.partners[next[row]++] = entry; });
    return rows;
}

//! All that is listed, at the second particle of each pair, in any order and number.
ExcludedPairs bySecond(const int* offsets, const int* partners, int n)
{
    return inRows(n,
                  [&](const auto& visit)
                  {
                      for (int i = 0; i < n; i++)
                      {
                          for (int k = offsets[i]; k < offsets[i + 1]; k++)
                          {
                              if (partners[k] != i)
                              {
                                  visit(std::max(i, partners[k]), std::min(i, partners[k]));
                              }
                          }
                      }
                  });
}

//! Each pair once, at its first particle, ascending: rows are filled by ascending second one.
ExcludedPairs byFirst(const ExcludedPairs& listed, int n)
{
    return inRows(n,
                  [&](const auto& visit)
                  {
                      std::vector<int> last(n, -1);
                      for (int j = 0; j < n; j++)
                      {
                          for (int k = listed.offsets[j]; k < listed.offsets[j + 1]; k++)
                          {
                              const int i = listed.partners[k];
                              if (last[i] != j)
                              {
                                  last[i] = j;
                                  visit(i, j);
                              }
                          }
                      }
                  });
}

} // namespace

template<class Real>
void Exclusions<Real>::set(const int* offsets, const int* partners, int n, int own)
{
    ExcludedPairs pairs = byFirst(bySecond(offsets, partners, n), n);
    // molecules end where no earlier pair reaches
    std::vector<int> cuts;
    int reach = -1;
    for (int i = 0; i < n; i++)
    {
        if (pairs.offsets[i] == pairs.offsets[i + 1])
        {
            continue;
        }
        if (i > reach)
        {
            cuts.push_back(i);
        }
        // ghosts, which are last, are written to by nobody
        const auto begin = pairs.partners.begin() + pairs.offsets[i];
        const auto end   = pairs.partners.begin() + pairs.offsets[i + 1];
        const auto ghost = std::lower_bound(begin, end, own);
        reach            = ghost == begin ? std::max(reach, i) : std::max(reach, *(ghost - 1));
    }
    cuts.push_back(n);
    own_ = own;
    std::swap(pairs_, pairs);
    cuts_.swap(cuts);
    close_.clear();
}

template<class Real>
std::vector<int> Exclusions<Real>::ranges(int threads) const
{
    const int rows = static_cast<int>(pairs_.offsets.size()) - 1;
    std::vector<int> begin(threads + 1, rows);
    begin[0] = 0;
    for (int t = 1; t < threads; t++)
    {
        const size_t wanted = count() * t / threads;
        begin[t]            = *std::lower_bound(cuts_.begin(),
                                     cuts_.end(),
                                     wanted,
                                     [&](int row, size_t pair)
                                     { return static_cast<size_t>(pairs_.offsets[row]) < pair; });
    }
    return begin;
}

template<class Real>
void Exclusions<Real>::subtract(const Mat3& box,
                                const Real* x,
                                const Real* q,
                                double closeDistance,
                                Real* forces,
                                Real* potentials,
                                int threads,
                                double* energy,
                                double* virial)
{
    const MinimumImage image     = MinimumImage::of(box);
    const std::vector<int> begin = ranges(threads);
    std::vector<std::array<double, 7>> sums(threads);
    std::vector<std::vector<std::pair<int, int>>> found(threads);
    forTasks(threads,
             threads,
             [&](int range)
             {
                 std::array<double, 7> sum = {};
                 double dx[3];
                 const auto visit = [&](int i, int j)
                 {
                     const size_t ofI = 3 * static_cast<size_t>(i);
                     const size_t ofJ = 3 * static_cast<size_t>(j);
                     const double r2  = image.between(x + ofI, x + ofJ, dx);
                     if (r2 < closeDistance * closeDistance)
                     {
                         found[range].emplace_back(i, j);
                         return;
                     }
                     const double qq   = static_cast<double>(q[i]) * static_cast<double>(q[j]);
                     const double r    = std::sqrt(r2);
                     const double e    = qq / r;
                     const double f    = -e / r2;
                     const double F[3] = { f * dx[0], f * dx[1], f * dx[2] };
                     const bool ghost  = j >= own_;
                     for (int d = 0; d < 3; d++)
                     {
                         forces[ofI + d] += static_cast<Real>(F[d]);
                         if (!ghost)
                         {
                             forces[ofJ + d] -= static_cast<Real>(F[d]);
                         }
                     }
                     if (potentials != nullptr)
                     {
                         potentials[i] -= static_cast<Real>(static_cast<double>(q[j]) / r);
                         if (!ghost)
                         {
                             potentials[j] -= static_cast<Real>(static_cast<double>(q[i]) / r);
                         }
                     }
                     const double share = ghost ? 0.5 : 1;
                     sum[0] -= share * e;
                     sum[1] -= share * 0.5 * dx[0] * F[0];
                     sum[2] -= share * 0.5 * dx[1] * F[1];
                     sum[3] -= share * 0.5 * dx[2] * F[2];
                     sum[4] -= share * 0.5 * dx[0] * F[1];
                     sum[5] -= share * 0.5 * dx[0] * F[2];
                     sum[6] -= share * 0.5 * dx[1] * F[2];
                 };
                 for (int i = begin[range]; i < begin[range + 1]; i++)
                 {
                     for (int k = pairs_.offsets[i]; k < pairs_.offsets[i + 1]; k++)
                     {
                         visit(i, pairs_.partners[k]);
                     }
                 }
                 sums[range] = sum;
             });
    close_.clear();
    for (const auto& own : found)
    {
        close_.insert(close_.end(), own.begin(), own.end());
    }
    for (const auto& sum : sums)
    {
        *energy += sum[0];
        for (int c = 0; c < 6; c++)
        {
            virial[c] += sum[1 + c];
        }
    }
}

template class Exclusions<float>;
template class Exclusions<double>;

} // namespace farfield
