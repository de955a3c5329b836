/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The coefficients of the recurrence of MonicRecurrence; for host and device.
 */
#ifndef FARFIELD_OPERATORS_MONIC_RECURRENCE_H
#define FARFIELD_OPERATORS_MONIC_RECURRENCE_H

#include "base/host_device.h"

namespace farfield
{

//! beta_lm of A_(l+1)m = z A_lm - beta_lm r^2 A_(l-1)m.
FARFIELD_HD constexpr double monicBeta(int l, int m)
{
    return (l * l - m * m) / (4.0 * l * l - 1);
}

} // namespace farfield

#endif
