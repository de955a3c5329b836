/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which charges are refused. For host and device.
 */
#ifndef FARFIELD_EVALUATION_CHARGE_LIMITS_H
#define FARFIELD_EVALUATION_CHARGE_LIMITS_H

#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! The largest charge, e. Products of larger ones do not fit single precision.
constexpr double c_largestCharge = 1e12;

//! Whether a charge is finite and not beyond the largest.
template<class Real>
FARFIELD_HD bool isLegalCharge(Real q)
{
    // written so that NaN fails
    return std::abs(q) <= static_cast<Real>(c_largestCharge);
}

} // namespace farfield

#endif
