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
    //! Forgets all; memory stays for those to come.
    void clear()
    {
        particles_ = 0;
        table_.clear();
        sorted_.clear();
    }
    //! \param[in] index  of the particles that follow those that are here, each different
    void add(const std::vector<int>& index)
    {
        const int begin = particles_;
        particles_ += static_cast<int>(index.size());
        const int last   = index.empty() ? -1 : *std::max_element(index.begin(), index.end());
        const size_t end = std::max(table_.size(), static_cast<size_t>(last + 1));
        if (sorted_.empty() && end <= c_sparse * particles_)
        {
            table_.resize(end, -1);
            for (size_t i = 0; i < index.size(); i++)
            {
                table_[index[i]] = begin + static_cast<int>(i);
            }
            return;
        }
        for (size_t k = 0; k < table_.size(); k++)
        {
            if (table_[k] >= 0)
            {
                sorted_.emplace_back(static_cast<int>(k), table_[k]);
            }
        }
        table_.clear();
        for (size_t i = 0; i < index.size(); i++)
        {
            sorted_.emplace_back(index[i], begin + static_cast<int>(i));
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
    int particles_                   = 0;
    std::vector<int> table_;
    std::vector<std::pair<int, int>> sorted_;
};

} // namespace farfield

#endif
