/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which boxes a Batch takes. For host and device.
 */
#ifndef FARFIELD_BATCH_LEGAL_BOX_H
#define FARFIELD_BATCH_LEGAL_BOX_H

#include "batch/compact_box.h"
#include "evaluation/box_limits.h"

namespace farfield
{

//! Whether vectors are of legal lengths and span a volume. \param[in] box  rows, nm
FARFIELD_HD bool isLegalBox(const double* box)
{
    constexpr double c_leastVolume = 1e-12; // over the product of the lengths
    double product                 = 1;
    for (int k = 0; k < 3; k++)
    {
        const double length = std::sqrt(dotFromLeft(box + 3 * k, box + 3 * k));
        // written so that NaN fails
        if (!(length <= c_largestBox && length >= c_smallestBox))
        {
            return false;
        }
        product *= length;
    }
    return std::abs(determinantOf(box)) > c_leastVolume * product;
}

} // namespace farfield

#endif
