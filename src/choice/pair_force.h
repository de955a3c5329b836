/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The force between typical neighbours. For host and device.
 */
#ifndef FARFIELD_CHOICE_PAIR_FORCE_H
#define FARFIELD_CHOICE_PAIR_FORCE_H

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/host_device.h"

namespace farfield
{

/*! \brief The force between two typical charges at the distance of neighbours, kJ/mol/nm.
 *
 *  k q^2 / (V / N)^(2/3), q^2 the mean square of the N charges.
 *  \param[in] squaredCharges  their sum, e^2
 *  \param[in] volume          nm^3 */
FARFIELD_HD double
typicalPairForce(double coulombConstant, double squaredCharges, long long charged, double volume)
{
    const double count = static_cast<double>(charged);
    return coulombConstant * squaredCharges / (count * std::pow(volume / count, 2.0 / 3));
}

/*! \brief Part of typicalPairForce() that errors are relative to where forces cancel.
 *
 *  A hundredth, and no less than what makes the wanted error as large as the rounding of forces in
 *  this precision: what rounding leaves cannot be asked for. */
FARFIELD_HD double leastPartOfPairForce(double accuracy, int realSize)
{
    constexpr double c_forcesCancel = 0.01, c_roundings = 40;
    const double rounding =
            0.5
            * (realSize == 4 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon());
    const double ofRounding = c_roundings * rounding / accuracy;
    return ofRounding > c_forcesCancel ? ofRounding : c_forcesCancel;
}

} // namespace farfield

#endif
