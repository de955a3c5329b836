/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which elements of an array pass from rank to rank.
 */
#ifndef FARFIELD_CPU_PLACES_H
#define FARFIELD_CPU_PLACES_H

#include <algorithm>
#include <utility>
#include <vector>

namespace farfield
{

//! Places in an array, as stretches of neighbours that are copied at once, ascending.
class Places
{
public:
    explicit Places(std::vector<int> indices) : count_(indices.size())
    {
        std::sort(indices.begin(), indices.end());
        for (const int i : indices)
        {
            if (runs_.empty() || runs_.back().first + runs_.back().second != i)
            {
                runs_.emplace_back(i, 0);
            }
            runs_.back().second++;
        }
    }
    size_t count() const { return count_; } //!< places

    //! Copies elements of so many numbers from their places. \returns the end of the copies
    template<class Real>
    Real* pack(const Real* from, int numbers, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            to = std::copy_n(from + static_cast<size_t>(numbers) * first, numbers * length, to);
        }
        return to;
    }
    //! Copies them to their places. \returns the end of what was read
    template<class Real>
    const Real* unpack(const Real* from, int numbers, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            std::copy_n(from, numbers * length, to + static_cast<size_t>(numbers) * first);
            from += numbers * length;
        }
        return from;
    }
    //! Adds single numbers to those at their places. \returns the end of what was read
    template<class Real>
    const Real* add(const Real* from, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            for (int i = 0; i < length; i++)
            {
                to[first + i] += *from++;
            }
        }
        return from;
    }

private:
    std::vector<std::pair<int, int>> runs_; //!< first place and length
    size_t count_;
};

} // namespace farfield

#endif
