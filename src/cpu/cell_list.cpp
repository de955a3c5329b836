/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "farfield/farfield.h"

#include "base/threads.h"

namespace farfield
{

template<class Real>
void CellList<Real>::sort(const Grid& grid,
                          const std::array<double, 3>& offset,
                          const Mat3& rotation,
                          const Real* x,
                          const ScaledCharges<Real>& charges,
                          int threads)
{
    const int n     = charges.count();
    const int cells = static_cast<int>(grid.count());
    given_          = static_cast<int>(charges.q.size());
    // a histogram per thread: not more of them than the particles are worth
    counts_.resize(std::max(1, std::min<int>(threads, 1 + 8LL * n / std::max(cells, 1))));
    cell_.resize(n);
    relative_.resize(3 * static_cast<size_t>(n));
    start_.resize(cells + 1);
    // vectors may read behind the last particle
    const size_t padded = static_cast<size_t>(n) + 2 * c_slotPadding;
    x_.resize(padded);
    y_.resize(padded);
    z_.resize(padded);
    q_.resize(padded);
    atom_.resize(n);
    const auto frame = BinFrame::of(grid.edges(), grid.inverseEdges(), rotation);
    bin(grid, frame, offset, x, charges, threads);
    countToStart();
    place(charges, threads);
}

template<class Real>
int CellList<Real>::beginOf(int histogram) const
{
    const auto n = static_cast<long long>(cell_.size());
    return static_cast<int>(n * histogram / static_cast<long long>(counts_.size()));
}

template<class Real>
void CellList<Real>::bin(const Grid& grid,
                         const BinFrame& frame,
                         const std::array<double, 3>& offset,
                         const Real* x,
                         const ScaledCharges<Real>& charges,
                         int threads)
{
    const CellGrid cells = grid.plain();
    constexpr int c_none = std::numeric_limits<int>::max();
    int invalid          = c_none;
    FirstException failure;
    // all threads take part, or the others would end, and what the caller has pinned with them
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(min : invalid)
    for (int h = 0; h < static_cast<int>(counts_.size()); h++)
    {
        auto& count = counts_[h];
        failure.run([&] { count.assign(cells.cells, 0); });
        if (failure.any())
        {
            continue;
        }
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
                invalid = std::min(invalid, i);
                continue;
            }
            cell_[k] = cell;
            count[cell]++;
        }
    }
    failure.rethrow();
    if (invalid != c_none)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The position of particle " + std::to_string(invalid) + " ("
                            + std::to_string(x[3 * invalid]) + ", "
                            + std::to_string(x[3 * invalid + 1]) + ", "
                            + std::to_string(x[3 * invalid + 2])
                            + ") is not finite or lies more than a billion cells outside the box.");
    }
}

template<class Real>
void CellList<Real>::countToStart()
{
    int total = 0;
    occupied_.clear();
    for (size_t cell = 0; cell + 1 < start_.size(); cell++)
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
            occupied_.push_back(static_cast<int>(cell));
        }
    }
    start_.back() = total;
}

template<class Real>
void CellList<Real>::place(const ScaledCharges<Real>& charges, int threads)
{
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int h = 0; h < static_cast<int>(counts_.size()); h++)
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
        }
    }
}

template class CellList<float>;
template class CellList<double>;

} // namespace farfield
