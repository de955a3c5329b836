/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Coordinates whose differences are exact. For host and device.
 */
#ifndef FARFIELD_BATCH_PLACES_H
#define FARFIELD_BATCH_PLACES_H

#include <cstdint>

#include "base/host_device.h"

namespace farfield
{

/*! \brief A coordinate in an array, in units of PairTask::unit.
 *
 *  Integers: their differences are exact, so that a pair in contact has no error of rounding of the
 *  coordinates in a box, nor of those of images. */
template<class Real>
struct PlaceOfImage;
template<>
struct PlaceOfImage<float>
{
    using Type = std::int32_t;
};
template<>
struct PlaceOfImage<double>
{
    using Type = double;
};

//! A coordinate in units. Integers may wrap around: differences of partners do not.
template<class Place>
FARFIELD_HD Place placeAt(double coordinate);
template<>
FARFIELD_HD std::int32_t placeAt<std::int32_t>(double coordinate)
{
    const double nearest = coordinate + (coordinate < 0 ? -0.5 : 0.5);
    return static_cast<std::int32_t>(
            static_cast<std::uint32_t>(static_cast<std::int64_t>(nearest)));
}
template<>
FARFIELD_HD float placeAt<float>(double coordinate)
{
    return static_cast<float>(coordinate);
}
template<>
FARFIELD_HD double placeAt<double>(double coordinate)
{
    return coordinate;
}

//! So many box vectors from the origin is too far away, as of a Solver.
constexpr double c_farthest = 1e9;
//! The largest difference of integers that stand for coordinates.
constexpr double c_largestDifference = 1 << 30;

} // namespace farfield

#endif
