/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges in units that make energies come out in kJ/mol.
 */
#ifndef FARFIELD_OPERATORS_SCALED_CHARGES_H
#define FARFIELD_OPERATORS_SCALED_CHARGES_H

#include <vector>

namespace farfield
{

//! Charges times the root of the Coulomb constant, and their sum as it is computed with.
template<class Real>
struct ScaledCharges
{
    std::vector<Real> q;
    double net = 0;

    ScaledCharges(const Real* charges, int n, double rootCoulomb) : q(n)
    {
        for (int i = 0; i < n; i++)
        {
            q[i] = static_cast<Real>(rootCoulomb * static_cast<double>(charges[i]));
            net += static_cast<double>(q[i]);
        }
    }
};

} // namespace farfield

#endif
