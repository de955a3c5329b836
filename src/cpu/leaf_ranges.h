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

#include "base/team.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"

namespace farfield
{

class LeafRanges
{
public:
    //! Takes the cells, by the next run of the team.
    //! \param[in] start  [cells + 1] first particle of each cell, in storage order
    template<class Real>
    void addSet(const Level<Real>& leaves, const std::vector<int>& start, Team* team)
    {
        first_.assign(leaves.padded, 0);
        count_.assign(leaves.padded, 0);
        constexpr int c_grain = 256;
        team->addRanges(static_cast<int>(leaves.cells.size()),
                        c_grain,
                        [this, &leaves, &start](int begin, int end)
                        {
                            for (int slot = begin; slot < end; slot++)
                            {
                                const int cell = leaves.grid.index(leaves.cells[slot]);
                                first_[slot]   = start[cell];
                                count_[slot]   = start[cell + 1] - first_[slot];
                            }
                        });
    }
    LeafSlots view() const
    {
        return { first_.data(), count_.data(), static_cast<int>(first_.size()) };
    }

    //! Ranges into which addRanges() cuts the slots.
    int ranges(const Team& team) const { return std::min(groups(), Team::pieces(team.threads())); }
    //! Calls work(begin, end, range) on ranges of slots with about equal numbers of particles, by the
    //! next run of the team.
    template<class Work>
    void addRanges(Team* team, const Work& work)
    {
        reached_.assign(groups() + 1, 0);
        for (int g = 0; g < groups(); g++)
        {
            const int* count = count_.data() + static_cast<size_t>(g) * c_slotPadding;
            reached_[g + 1]  = reached_[g] + 2 + *std::max_element(count, count + c_slotPadding);
        }
        const int count = ranges(*team);
        team->add(count,
                  [this, count, work](int range, int /*thread*/)
                  { work(boundary(range, count), boundary(range + 1, count), range); });
    }

private:
    int groups() const { return static_cast<int>(first_.size()) / c_slotPadding; }
    //! First slot of a range.
    int boundary(int range, int ranges) const
    {
        const auto wanted = static_cast<long long>(reached_.back()) * range / ranges;
        return static_cast<int>(std::lower_bound(reached_.begin(), reached_.end(), wanted)
                                - reached_.begin())
               * c_slotPadding;
    }

    std::vector<int> first_, count_; //!< particles of a slot
    std::vector<int> reached_;       //!< cost of the groups of slots before
};

} // namespace farfield

#endif
