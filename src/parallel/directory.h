/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles here by their index in the whole system.
 */
#ifndef FARFIELD_PARALLEL_DIRECTORY_H
#define FARFIELD_PARALLEL_DIRECTORY_H

#include <algorithm>
#include <utility>
#include <vector>

namespace farfield
{

//! Looks particles up in a table where indices are about as many as the particles, else by bisection.
class Directory
{
public:
    //! \param[in] index  [n] of particle 0 to n - 1, each different
    explicit Directory(const std::vector<int>& index)
    {
        const int end = index.empty() ? 0 : *std::max_element(index.begin(), index.end()) + 1;
        if (static_cast<size_t>(end) <= c_sparse * index.size())
        {
            table_.assign(end, -1);
            for (size_t i = 0; i < index.size(); i++)
            {
                table_[index[i]] = static_cast<int>(i);
            }
            return;
        }
        sorted_.reserve(index.size());
        for (size_t i = 0; i < index.size(); i++)
        {
            sorted_.emplace_back(index[i], static_cast<int>(i));
        }
        std::sort(sorted_.begin(), sorted_.end());
    }
    //! The particle with an index, -1 if it is not here.
    int find(int index) const
    {
        if (!table_.empty())
        {
            return index >= 0 && index < static_cast<int>(table_.size()) ? table_[index] : -1;
        }
        const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), std::make_pair(index, 0));
        return at != sorted_.end() && at->first == index ? at->second : -1;
    }

private:
    static constexpr size_t c_sparse = 64; //!< entries of a table per particle, at most
    std::vector<int> table_;
    std::vector<std::pair<int, int>> sorted_;
};

} // namespace farfield

#endif
