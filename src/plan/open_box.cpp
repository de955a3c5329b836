/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/open_box.h"

#include <algorithm>

namespace farfield
{
namespace
{

//! By how much particles may spread before cells are chosen anew, and how much they may shrink to.
constexpr double c_reserve = 1.1, c_leastShare = 0.5;
//! Lengths of the box over the longest: flat and long systems need a few cells across.
constexpr double c_thinnest = 0.1;
//! More than what rounding of a position may be in cells.
constexpr double c_rounding = 1e-3;

} // namespace

bool OpenCells::hold(const Mat3& box, const Vec3& extent) const
{
    for (int k = 0; k < 3; k++)
    {
        // particles are at most so many cells apart, and from images of each other
        const int most  = (counts[k] - 1) / 2;
        const int least = counts[k] - most;
        if (!(extent[k] < (most - c_rounding) * box(k, k) / counts[k]) || least <= ws)
        {
            return false;
        }
    }
    return true;
}

Mat3 openBox(const Vec3& extent, double cell, double factor)
{
    double least = std::max(cell, c_thinnest * extent.maxCoeff());
    if (least == 0)
    {
        least = 1; // a single particle
    }
    const Vec3 lengths = c_reserve * factor * extent.cwiseMax(least);
    return lengths.asDiagonal();
}

Vec3 largestLike(const Vec3& chosen)
{
    return c_reserve * chosen.cwiseMax(c_thinnest * chosen.maxCoeff());
}

bool isLikeExtent(const Vec3& extent, const Vec3& chosen)
{
    return (extent.array() <= largestLike(chosen).array()).all()
           && extent.maxCoeff() >= c_leastShare * chosen.maxCoeff();
}

} // namespace farfield
