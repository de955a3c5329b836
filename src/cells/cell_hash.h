/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where cells of a level stand, for levels that have too many cells for a table of all.
 */
#ifndef FARFIELD_CELLS_CELL_HASH_H
#define FARFIELD_CELLS_CELL_HASH_H

#include <cstdint>
#include <vector>

#include "cells/morton.h"

namespace farfield
{

//! A table from cells to numbers, by open addressing.
class CellHash
{
public:
    //! Takes the place of each of some cells. \param[in] cells  components from 0 to 2^21 - 1
    void set(const std::vector<Int3>& cells)
    {
        size_t size = 16;
        while (size < 2 * cells.size())
        {
            size *= 2;
        }
        keys_.assign(size, c_free);
        places_.resize(size);
        for (size_t i = 0; i < cells.size(); i++)
        {
            size_t at = begin(packed(cells[i]));
            while (keys_[at] != c_free)
            {
                at = (at + 1) & (size - 1);
            }
            keys_[at]   = packed(cells[i]);
            places_[at] = static_cast<int>(i);
        }
    }
    //! The place of a cell, -1 if it is none of them.
    int find(const Int3& c) const
    {
        const std::uint64_t key = packed(c);
        size_t at               = begin(key);
        while (keys_[at] != key)
        {
            if (keys_[at] == c_free)
            {
                return -1;
            }
            at = (at + 1) & (keys_.size() - 1);
        }
        return places_[at];
    }

private:
    static constexpr std::uint64_t c_free = ~std::uint64_t(0);

    static std::uint64_t packed(const Int3& c)
    {
        return static_cast<std::uint64_t>(c[0]) | static_cast<std::uint64_t>(c[1]) << c_keyBits
               | static_cast<std::uint64_t>(c[2]) << 2 * c_keyBits;
    }
    //! Multiplicative hashing: Knuth, The Art of Computer Programming, vol. 3, 6.4.
    size_t begin(std::uint64_t key) const
    {
        return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20) & (keys_.size() - 1);
    }

    std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(1, c_free);
    std::vector<int> places_;
};

} // namespace farfield

#endif
