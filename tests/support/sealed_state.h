/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Saved states that somebody else has written.
 */
#ifndef FARFIELD_TESTS_SEALED_STATE_H
#define FARFIELD_TESTS_SEALED_STATE_H

#include <cstdint>
#include <cstring>

#include <vector>

namespace farfield
{
namespace test
{

/*! \brief Makes the checksum of a saved state right for its numbers.
 *
 *  The second number, FNV-1a over the bytes of those behind it, without its last 11 bits. */
inline void seal(std::vector<double>* state)
{
    std::uint64_t hash = 14695981039346656037ull;
    for (size_t i = 2; i < state->size(); ++i)
    {
        unsigned char bytes[sizeof(double)];
        std::memcpy(bytes, &(*state)[i], sizeof(double));
        for (const unsigned char byte : bytes)
        {
            hash = (hash ^ byte) * 1099511628211ull;
        }
    }
    if (state->size() > 1)
    {
        (*state)[1] = static_cast<double>(hash >> 11);
    }
}

} // namespace test
} // namespace farfield

#endif
