/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The particles of leaf cells in the order of expansions, and their division among threads.
 */
#ifndef FARFIELD_CPU_LEAF_RANGES_H
#define FARFIELD_CPU_LEAF_RANGES_H

#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "cpu/cpu_kernels.h"
#include "cpu/tree.h"

namespace farfield
{

class LeafRanges
{
public:
    //! \param[in] start  [cells + 1] first particle of each cell, in storage order
    template<class Real, class Start>
    void set(const Level<Real>& leaves, const Start& start, int threads)
    {
        first_.assign(leaves.padded, 0);
        count_.assign(leaves.padded, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int slot = 0; slot < static_cast<int>(leaves.cells.size()); slot++)
        {
            const int cell = leaves.grid.index(leaves.cells[slot]);
            first_[slot]   = start[cell];
            count_[slot]   = start[cell + 1] - first_[slot];
        }
    }
    LeafSlots view() const
    {
        return { first_.data(), count_.data(), static_cast<int>(first_.size()) };
    }

    //! Calls work(begin, end, range) on ranges of slots with equal numbers of particles, one for
    //! each thread.
    template<class Work>
    void forRanges(int threads, const Work& work) const
    {
        const int groups = static_cast<int>(first_.size()) / c_slotPadding;
        std::vector<int> reached(groups + 1, 0);
        for (int g = 0; g < groups; g++)
        {
            int longest = 0;
            for (int s = 0; s < c_slotPadding; s++)
            {
                longest = std::max(longest, count_[g * c_slotPadding + s]);
            }
            reached[g + 1] = reached[g] + 2 + longest;
        }
        const auto boundary = [&](int range)
        {
            const int wanted =
                    static_cast<int>(static_cast<long long>(reached[groups]) * range / threads);
            return static_cast<int>(std::lower_bound(reached.begin(), reached.end(), wanted)
                                    - reached.begin());
        };
        forTasks(threads,
                 threads,
                 [&](int range)
                 {
                     work(boundary(range) * c_slotPadding,
                          (range + 1 == threads ? groups : boundary(range + 1)) * c_slotPadding,
                          range);
                 });
    }

private:
    std::vector<int> first_, count_; //!< particles of a slot
};

} // namespace farfield

#endif
