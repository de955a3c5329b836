/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "farfield/farfield.h"

#include "cells/position_error.h"

namespace farfield
{

template<class Real>
void CellList<Real>::bin(const Grid& grid,
                         const std::array<double, 3>& offset,
                         const Mat3& rotation,
                         const Real* x,
                         const ScaledCharges<Real>& charges,
                         Team* team)
{
    const int n     = charges.count();
    const int cells = static_cast<int>(grid.count());
    numParticles_   = static_cast<int>(charges.q.size());
    // a histogram per thread: not more of them than the particles are worth
    counts_.resize(std::max(1, std::min<int>(team->threads(), 1 + 8LL * n / std::max(cells, 1))));
    // stretches of a few cache lines: their counts are read by one thread
    constexpr int c_stretch = 64;
    const int stretches     = std::clamp(cells / c_stretch, 1, team->threads());
    countsOfStretch_.resize(counts_.size());
    occupiedOfStretch_.resize(stretches);
    cell_.resize(n);
    relative_.resize(3 * static_cast<size_t>(n));
    start_.resize(cells + 1);
    // vectors may read behind the last particle
    const size_t padded = static_cast<size_t>(n) + 2 * c_slotPadding;
    x_.resize(padded);
    y_.resize(padded);
    z_.resize(padded);
    q_.resize(padded);
    for (AlignedVector<Real>* given : { &givenX_, &givenY_, &givenZ_ })
    {
        given->resize(keepsGiven_ ? padded : 0);
    }
    atom_.resize(n);
    const auto frame = BinFrame::of(grid.edges(), grid.inverseEdges(), rotation);
    count(grid.plain(), frame, offset, x, charges, team);
    countToStart(team);
}

template<class Real>
int CellList<Real>::beginOfStretch(int stretch) const
{
    const auto cells = static_cast<long long>(start_.size()) - 1;
    return static_cast<int>(cells * stretch / static_cast<long long>(occupiedOfStretch_.size()));
}

template<class Real>
int CellList<Real>::beginOf(int histogram) const
{
    const auto n = static_cast<long long>(cell_.size());
    return static_cast<int>(n * histogram / static_cast<long long>(counts_.size()));
}

template<class Real>
void CellList<Real>::count(const CellGrid& cells,
                           const BinFrame& frame,
                           const std::array<double, 3>& offset,
                           const Real* x,
                           const ScaledCharges<Real>& charges,
                           Team* team)
{
    constexpr int c_none = std::numeric_limits<int>::max();
    const int stretches  = static_cast<int>(occupiedOfStretch_.size());
    std::vector<int> invalid(counts_.size(), c_none);
    team->forTasks(static_cast<int>(counts_.size()),
                   [&](int h, int /*thread*/)
                   {
                       auto& count = counts_[h];
                       count.assign(cells.cells, 0);
                       for (int k = beginOf(h); k < beginOf(h + 1); k++)
                       {
                           const int i   = charges.particle(k);
                           const Real* r = x + 3 * static_cast<size_t>(i);
                           int cell;
                           if (!binPosition(cells,
                                            frame,
                                            offset.data(),
                                            r,
                                            &cell,
                                            &relative_[3 * static_cast<size_t>(k)]))
                           {
                               invalid[h] = std::min(invalid[h], i);
                               continue;
                           }
                           cell_[k] = cell;
                           count[cell]++;
                       }
                       auto& sums = countsOfStretch_[h];
                       sums.resize(stretches);
                       for (int s = 0; s < stretches; s++)
                       {
                           sums[s] = std::accumulate(count.begin() + beginOfStretch(s),
                                                     count.begin() + beginOfStretch(s + 1),
                                                     0);
                       }
                   });
    const int first = *std::min_element(invalid.begin(), invalid.end());
    if (first != c_none)
    {
        throw positionError("particle", first, x + 3 * static_cast<size_t>(first));
    }
}

template<class Real>
void CellList<Real>::countToStart(Team* team)
{
    const int stretches = static_cast<int>(occupiedOfStretch_.size());
    std::vector<int> first(stretches + 1, 0);
    for (int s = 0; s < stretches; s++)
    {
        first[s + 1] = first[s];
        for (const auto& sums : countsOfStretch_)
        {
            first[s + 1] += sums[s];
        }
    }
    team->forTasks(stretches,
                   [&](int s, int /*thread*/)
                   {
                       int total      = first[s];
                       auto& occupied = occupiedOfStretch_[s];
                       occupied.clear();
                       for (int cell = beginOfStretch(s); cell < beginOfStretch(s + 1); cell++)
                       {
                           start_[cell] = total;
                           for (auto& count : counts_)
                           {
                               const int mine = count[cell];
                               count[cell]    = total;
                               total += mine;
                           }
                           if (total > start_[cell])
                           {
                               occupied.push_back(cell);
                           }
                       }
                   });
    start_.back() = first.back();
    occupied_.clear();
    for (const auto& own : occupiedOfStretch_)
    {
        occupied_.insert(occupied_.end(), own.begin(), own.end());
    }
}

template<class Real>
void CellList<Real>::addPlacing(const Real* x, const ScaledCharges<Real>& charges, Team* team)
{
    team->add(static_cast<int>(counts_.size()),
              [this, x, &charges](int h, int /*thread*/)
              {
                  auto& next = counts_[h];
                  for (int k = beginOf(h); k < beginOf(h + 1); k++)
                  {
                      const int to = next[cell_[k]]++;
                      x_[to]       = relative_[3 * static_cast<size_t>(k)];
                      y_[to]       = relative_[3 * static_cast<size_t>(k) + 1];
                      z_[to]       = relative_[3 * static_cast<size_t>(k) + 2];
                      atom_[to]    = charges.particle(k);
                      q_[to]       = charges.q[atom_[to]];
                      if (keepsGiven_)
                      {
                          const Real* r = x + 3 * static_cast<size_t>(atom_[to]);
                          givenX_[to]   = r[0];
                          givenY_[to]   = r[1];
                          givenZ_[to]   = r[2];
                      }
                  }
              });
}

template class CellList<float>;
template class CellList<double>;

} // namespace farfield
