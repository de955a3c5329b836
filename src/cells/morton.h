/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief An order of cells in which those that are near each other are often near in the order.
 */
#ifndef FARFIELD_CELLS_MORTON_H
#define FARFIELD_CELLS_MORTON_H

#include <cstdint>

#include "base/host_device.h"
#include "base/vectors.h"

namespace farfield
{

//! Bits of a component of a cell in a key.
constexpr int c_keyBits = 21;

/*! \brief A key of a cell whose components are from 0 to 2^21 - 1: the bits of the components in turn.
 *
 *  Siblings, cousins and so on stand together in the order of keys: G. M. Morton, A Computer Oriented Geodetic Data Base,
 *  IBM (1966). */
FARFIELD_HD std::uint64_t mortonKey(int x, int y, int z)
{
    // two zeros between any two bits
    const auto spread = [](int component)
    {
        auto v = static_cast<std::uint64_t>(component);
        v      = (v | v << 32) & 0x1f00000000ffffULL;
        v      = (v | v << 16) & 0x1f0000ff0000ffULL;
        v      = (v | v << 8) & 0x100f00f00f00f00fULL;
        v      = (v | v << 4) & 0x10c30c30c30c30c3ULL;
        return (v | v << 2) & 0x1249249249249249ULL;
    };
    return spread(x) | spread(y) << 1 | spread(z) << 2;
}
inline std::uint64_t mortonKey(const Int3& c)
{
    return mortonKey(c[0], c[1], c[2]);
}

} // namespace farfield

#endif
