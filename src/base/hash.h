/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Hashes, by which ranks compare what they have.
 */
#ifndef FARFIELD_BASE_HASH_H
#define FARFIELD_BASE_HASH_H

#include <cstdint>
#include <cstring>

#include <vector>

namespace farfield
{

//! A number that depends on every bit of another; no two have the same.
inline std::uint64_t mixed(std::uint64_t bits)
{
    bits += 0x9e3779b97f4a7c15U; // so that zero does not stay
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31);
}

//! Of the elements in their order, bit by bit.
template<class T>
std::uint64_t hashOf(const std::vector<T>& values)
{
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t hash = values.size();
    for (const T& value : values)
    {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof(T));
        hash = mixed(hash ^ bits);
    }
    return hash;
}

} // namespace farfield

#endif
