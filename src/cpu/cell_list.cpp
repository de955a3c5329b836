/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "farfield/farfield.h"

#include "base/threads.h"
#include "cells/binning.h"

namespace farfield
{

template<class Real>
void CellList<Real>::sort(const Grid& grid,
                          const std::array<double, 3>& offset,
                          const Mat3& rotation,
                          const Real* x,
                          const Real* q,
                          int n,
                          int threads)
{
    const int cells           = static_cast<int>(grid.count());
    const CellGrid cellsOfBox = grid.plain();
    const BinFrame frame      = BinFrame::of(grid.edges(), grid.inverseEdges(), rotation);
    // a histogram per thread: not more of them than the particles are worth. All threads take part,
    // or the others would end, and what the caller has pinned to a core with them.
    const int histograms = std::max(1, std::min<int>(threads, 1 + 8LL * n / std::max(cells, 1)));
    const auto stretch   = [&](int thread)
    { return static_cast<int>(static_cast<long long>(n) * thread / histograms); };

    cell_.resize(n);
    relative_.resize(3 * static_cast<size_t>(n));
    counts_.resize(histograms);
    start_.resize(cells + 1);
    // vectors may read behind the last particle
    const size_t padded = static_cast<size_t>(n) + 2 * c_slotPadding;
    x_.resize(padded);
    y_.resize(padded);
    z_.resize(padded);
    q_.resize(padded);
    atom_.resize(n);

    constexpr int c_none = std::numeric_limits<int>::max();
    int invalid          = c_none;
    FirstException failure;
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(min : invalid)
    for (int thread = 0; thread < histograms; thread++)
    {
        auto& count = counts_[thread];
        failure.run([&] { count.assign(cells, 0); });
        if (failure.any())
        {
            continue;
        }
        for (int i = stretch(thread); i < stretch(thread + 1); i++)
        {
            int cell;
            Real* relative = relative_.data() + 3 * static_cast<size_t>(i);
            if (!binPosition(cellsOfBox,
                             frame,
                             offset.data(),
                             x + 3 * static_cast<size_t>(i),
                             &cell,
                             relative))
            {
                invalid = std::min(invalid, i);
                continue;
            }
            cell_[i] = cell;
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

    // Counts become the first position of each thread's share of a cell.
    int total = 0;
    occupied_.clear();
    for (int cell = 0; cell < cells; cell++)
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
            occupied_.push_back(cell);
        }
    }
    start_[cells] = total;

#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int thread = 0; thread < histograms; thread++)
    {
        auto& next = counts_[thread];
        for (int i = stretch(thread); i < stretch(thread + 1); i++)
        {
            const int to = next[cell_[i]]++;
            x_[to]       = relative_[3 * static_cast<size_t>(i)];
            y_[to]       = relative_[3 * static_cast<size_t>(i) + 1];
            z_[to]       = relative_[3 * static_cast<size_t>(i) + 2];
            q_[to]       = q[i];
            atom_[to]    = i;
        }
    }
}

template class CellList<float>;
template class CellList<double>;

} // namespace farfield
