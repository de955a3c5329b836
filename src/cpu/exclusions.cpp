/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/exclusions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/threads.h"
#include "cells/minimum_image.h"

namespace farfield
{

template<class Real>
void Exclusions<Real>::set(const int* offsets, const int* partners, int n)
{
    std::vector<Pair> pairs;
    for (int i = 0; i < n; i++)
    {
        for (int k = offsets[i]; k < offsets[i + 1]; k++)
        {
            if (partners[k] != i)
            {
                pairs.push_back({ std::min(i, partners[k]), std::max(i, partners[k]) });
            }
        }
    }
    const auto less = [](const Pair& a, const Pair& b)
    { return a.i != b.i ? a.i < b.i : a.j < b.j; };
    const auto equal = [](const Pair& a, const Pair& b) { return a.i == b.i && a.j == b.j; };
    std::sort(pairs.begin(), pairs.end(), less);
    pairs.erase(std::unique(pairs.begin(), pairs.end(), equal), pairs.end());
    // molecules end where no earlier pair reaches
    std::vector<int> cuts;
    int reach = -1;
    for (size_t k = 0; k < pairs.size(); k++)
    {
        if (pairs[k].i > reach)
        {
            cuts.push_back(static_cast<int>(k));
        }
        reach = std::max(reach, pairs[k].j);
    }
    if (!pairs.empty())
    {
        cuts.push_back(static_cast<int>(pairs.size()));
    }
    pairs_.swap(pairs);
    cuts_.swap(cuts);
    close_.clear();
}

template<class Real>
std::vector<int> Exclusions<Real>::ranges(int threads) const
{
    std::vector<int> begin(threads + 1, static_cast<int>(pairs_.size()));
    begin[0] = 0;
    for (int t = 1; t < threads; t++)
    {
        const int wanted = static_cast<int>(pairs_.size() * t / threads);
        begin[t] = cuts_.empty() ? 0 : *std::lower_bound(cuts_.begin(), cuts_.end(), wanted);
    }
    return begin;
}

template<class Real>
void Exclusions<Real>::subtract(const Mat3& box,
                                const Real* x,
                                const Real* q,
                                double closeDistance,
                                Real* forces,
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
                 for (int k = begin[range]; k < begin[range + 1]; k++)
                 {
                     const Pair& p   = pairs_[k];
                     const double r2 = image.between(x + 3 * static_cast<size_t>(p.i),
                                                     x + 3 * static_cast<size_t>(p.j),
                                                     dx);
                     if (r2 < closeDistance * closeDistance)
                     {
                         found[range].emplace_back(p.i, p.j);
                         continue;
                     }
                     const double qq   = static_cast<double>(q[p.i]) * static_cast<double>(q[p.j]);
                     const double e    = qq / std::sqrt(r2);
                     const double f    = -e / r2;
                     const double F[3] = { f * dx[0], f * dx[1], f * dx[2] };
                     for (int d = 0; d < 3; d++)
                     {
                         forces[3 * static_cast<size_t>(p.i) + d] += static_cast<Real>(F[d]);
                         forces[3 * static_cast<size_t>(p.j) + d] -= static_cast<Real>(F[d]);
                     }
                     sum[0] -= e;
                     sum[1] -= 0.5 * dx[0] * F[0];
                     sum[2] -= 0.5 * dx[1] * F[1];
                     sum[3] -= 0.5 * dx[2] * F[2];
                     sum[4] -= 0.5 * dx[0] * F[1];
                     sum[5] -= 0.5 * dx[0] * F[2];
                     sum[6] -= 0.5 * dx[1] * F[2];
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
