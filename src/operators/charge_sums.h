/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over the charges of a system.
 */
#ifndef FARFIELD_OPERATORS_CHARGE_SUMS_H
#define FARFIELD_OPERATORS_CHARGE_SUMS_H

#include <cmath>

#include <vector>

#include "operators/scaled_charges.h"

namespace farfield
{

//! Sums over the charges of a system.
struct ChargeSums
{
    long long charged = 0; //!< those that are not zero
    long long acting  = 0; //!< those that do something, see c_idleCharge
    double net        = 0; //!< e
    double squared    = 0; //!< e^2

    ChargeSums() = default;
    template<class Real>
    explicit ChargeSums(const std::vector<Real>& charges)
    {
        for (const Real q : charges)
        {
            charged += q != 0 ? 1 : 0;
            acting += std::abs(q) > static_cast<Real>(c_idleCharge<Real>) ? 1 : 0;
            net += static_cast<double>(q);
            squared += static_cast<double>(q) * static_cast<double>(q);
        }
    }
};

} // namespace farfield

#endif
