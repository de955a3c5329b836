/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/exclusions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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
void Exclusions<Real>::set(const int* offsets, const int* partners, int n, int own, int threads)
{
    ExcludedPairs pairs = byFirst(bySecond(offsets, partners, n), n);
    const size_t count  = pairs.partners.size();
    auto stretches      = cut(pairs, own, threads);
    if (stretches.size() > 1)
    {
        pairs = withOthers(pairs, stretches, n, own);
    }
    count_ = count;
    pairs_ = std::move(pairs);
    stretches_.swap(stretches);
    bothWays_.reset();
}

template<class Real>
const ExcludedPairs& Exclusions<Real>::bothWays() const
{
    if (bothWays_)
    {
        return *bothWays_;
    }
    const auto n = static_cast<int>(pairs_.offsets.size()) - 1;
    bothWays_    = inRows(n,
                       [&](const auto& visit)
                       {
                           for (int i = 0; i < n; i++)
                           {
                               for (int k = pairs_.offsets[i]; k < pairs_.offsets[i + 1]; k++)
                               {
                                   // a row may list earlier ones, see withOthers()
                                   const int j = pairs_.partners[k];
                                   if (i < j)
                                   {
                                       visit(i, j);
                                       visit(j, i);
                                   }
                               }
                           }
                       });
    return *bothWays_;
}

template<class Real>
auto Exclusions<Real>::cut(const ExcludedPairs& pairs, int own, int threads) -> std::vector<Stretch>
{
    // a pair takes some 7 ns
    constexpr size_t c_least = 500;
    // of the pairs: those that are computed and listed twice; many threads gain by any number
    const double mostTwice = threads < 4 ? 0.2 : 1;

    const size_t count = pairs.partners.size();
    const auto most    = static_cast<size_t>(Team::pieces(threads));
    std::vector<Stretch> result;
    for (auto stretches = static_cast<int>(std::clamp<size_t>(count / c_least, 1, most));;
         stretches /= 2)
    {
        result.clear();
        size_t twice = 0;
        for (int s = 0, begin = 0; s < stretches; s++)
        {
            const auto first  = pairs.offsets.begin();
            const auto wanted = static_cast<int>(count * (s + 1) / stretches);
            const auto reached =
                    static_cast<int>(std::lower_bound(first, first + own, wanted) - first);
            const int end = s + 1 == stretches ? own : reached;
            twice += std::count_if(pairs.partners.begin() + pairs.offsets[begin],
                                   pairs.partners.begin() + pairs.offsets[end],
                                   [=](int j) { return j >= end && j < own; });
            result.push_back({ begin, end, {}, {} });
            begin = end;
        }
        if (static_cast<double>(twice) <= mostTwice * static_cast<double>(count))
        {
            return result;
        }
    }
}

template<class Real>
ExcludedPairs Exclusions<Real>::withOthers(const ExcludedPairs& pairs,
                                           const std::vector<Stretch>& stretches,
                                           int n,
                                           int own)
{
    return inRows(n,
                  [&](const auto& visit)
                  {
                      for (const Stretch& stretch : stretches)
                      {
                          for (int i = stretch.begin; i < stretch.end; i++)
                          {
                              for (int k = pairs.offsets[i]; k < pairs.offsets[i + 1]; k++)
                              {
                                  const int j = pairs.partners[k];
                                  visit(i, j);
                                  if (j >= stretch.end && j < own)
                                  {
                                      visit(j, i);
                                  }
                              }
                          }
                      }
                  });
}

template<class Real>
void Exclusions<Real>::addSubtraction(const Mat3& box,
                                      const Real* x,
                                      const Real* q,
                                      double closeDistance,
                                      Real* forces,
                                      Real* potentials,
                                      Team* team)
{
    const auto subtract = [=, image = MinimumImage::of(box)](int s, int /*thread*/)
    {
        Stretch& stretch          = stretches_[s];
        std::array<double, 7> sum = {};
        double dx[3];
        stretch.close.clear();
        std::fill(forces + 3 * static_cast<size_t>(stretch.begin),
                  forces + 3 * static_cast<size_t>(stretch.end),
                  Real(0));
        if (potentials != nullptr)
        {
            std::fill(potentials + stretch.begin, potentials + stretch.end, Real(0));
        }
        const auto visit = [&](int i, int j)
        {
            const size_t ofI = 3 * static_cast<size_t>(i);
            const size_t ofJ = 3 * static_cast<size_t>(j);
            const double r2  = image.between(x + ofI, x + ofJ, dx);
            if (r2 < closeDistance * closeDistance)
            {
                if (i < j)
                {
                    stretch.close.emplace_back(i, j);
                }
                return;
            }
            const double qq   = static_cast<double>(q[i]) * static_cast<double>(q[j]);
            const double r    = std::sqrt(r2);
            const double e    = qq / r;
            const double f    = -e / r2;
            const double F[3] = { f * dx[0], f * dx[1], f * dx[2] };
            const bool both   = j >= stretch.begin && j < stretch.end;
            for (int d = 0; d < 3; d++)
            {
                forces[ofI + d] += static_cast<Real>(F[d]);
                if (both)
                {
                    forces[ofJ + d] -= static_cast<Real>(F[d]);
                }
            }
            if (potentials != nullptr)
            {
                potentials[i] -= static_cast<Real>(static_cast<double>(q[j]) / r);
                if (both)
                {
                    potentials[j] -= static_cast<Real>(static_cast<double>(q[i]) / r);
                }
            }
            const double share = both ? 1 : 0.5;
            sum[0] -= share * e;
            sum[1] -= share * 0.5 * dx[0] * F[0];
            sum[2] -= share * 0.5 * dx[1] * F[1];
            sum[3] -= share * 0.5 * dx[2] * F[2];
            sum[4] -= share * 0.5 * dx[0] * F[1];
            sum[5] -= share * 0.5 * dx[0] * F[2];
            sum[6] -= share * 0.5 * dx[1] * F[2];
        };
        for (int i = stretch.begin; i < stretch.end; i++)
        {
            for (int k = pairs_.offsets[i]; k < pairs_.offsets[i + 1]; k++)
            {
                visit(i, pairs_.partners[k]);
            }
        }
        stretch.sums = sum;
    };
    team->add(static_cast<int>(stretches_.size()), subtract);
}

template<class Real>
void Exclusions<Real>::addSums(double* energy, double* virial) const
{
    for (const Stretch& stretch : stretches_)
    {
        *energy += stretch.sums[0];
        for (int c = 0; c < 6; c++)
        {
            virial[c] += stretch.sums[1 + c];
        }
    }
}

template<class Real>
std::vector<std::pair<int, int>> Exclusions<Real>::close() const
{
    std::vector<std::pair<int, int>> all;
    for (const Stretch& stretch : stretches_)
    {
        all.insert(all.end(), stretch.close.begin(), stretch.close.end());
    }
    return all;
}

template class Exclusions<float>;
template class Exclusions<double>;

} // namespace farfield
