/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which boxes a Batch takes. For host and device.
 */
#ifndef FARFIELD_BATCH_LEGAL_BOX_H
#define FARFIELD_BATCH_LEGAL_BOX_H

#include "batch/slab_box.h"
#include "evaluation/box_limits.h"

namespace farfield
{

//! Vectors span a volume, or a plane, of more than this, over the product of their lengths.
constexpr double c_leastVolume = 1e-12;

//! Whether the length of a vector is legal.
FARFIELD_HD bool isLegalLength(double length)
{
    // written so that NaN fails
    return length <= c_largestBox && length >= c_smallestBox;
}

//! Whether vectors are of legal lengths and span a volume. \param[in] box  rows, nm
FARFIELD_HD bool isLegalBox(const double* box)
{
    double product = 1;
    for (int k = 0; k < 3; k++)
    {
        const double length = std::sqrt(dotFromLeft(box + 3 * k, box + 3 * k));
        if (!isLegalLength(length))
        {
            return false;
        }
        product *= length;
    }
    return std::abs(determinantOf(box)) > c_leastVolume * product;
}

//! Whether two vectors are of legal lengths and span a plane. \param[in] plane  rows, nm, [2][3]
FARFIELD_HD bool isLegalPlane(const double* plane)
{
    const double lengths[] = { std::sqrt(dotFromLeft(plane, plane)),
                               std::sqrt(dotFromLeft(plane + 3, plane + 3)) };
    double normal[3];
    return isLegalLength(lengths[0]) && isLegalLength(lengths[1])
           && findNormal(plane, normal) > c_leastVolume * lengths[0] * lengths[1];
}

} // namespace farfield

#endif
