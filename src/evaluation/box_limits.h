/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How long the vectors of a box may be. For host and device.
 */
#ifndef FARFIELD_EVALUATION_BOX_LIMITS_H
#define FARFIELD_EVALUATION_BOX_LIMITS_H

namespace farfield
{

//! Smallest and largest edges of a box, nm: cells can be counted, and forces fit into a float.
constexpr double c_smallestBox = 1e-6;
constexpr double c_largestBox  = 1e8;

} // namespace farfield

#endif
