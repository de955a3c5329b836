/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges in units that make energies come out in kJ/mol, and who has one.
 */
#ifndef FARFIELD_OPERATORS_SCALED_CHARGES_H
#define FARFIELD_OPERATORS_SCALED_CHARGES_H

#include <algorithm>
#include <vector>

namespace farfield
{

//! Charges times the root of the Coulomb constant, and their sum as it is computed with.
template<class Real>
struct ScaledCharges
{
    std::vector<Real> q;      //!< [n]
    std::vector<int> charged; //!< ascending: the particles with a charge, unless all have one
    double net = 0;

    ScaledCharges() = default;
    ScaledCharges(const Real* charges, int n, double rootCoulomb) : q(n)
    {
        for (int i = 0; i < n; i++)
        {
            q[i] = static_cast<Real>(rootCoulomb * static_cast<double>(charges[i]));
            net += static_cast<double>(q[i]);
        }
        if (std::find(charges, charges + n, Real(0)) != charges + n)
        {
            for (int i = 0; i < n; i++)
            {
                if (charges[i] != 0)
                {
                    charged.push_back(i);
                }
            }
            allAreCharged_ = false;
        }
    }

    //! Number of particles with a charge.
    int count() const { return static_cast<int>(allAreCharged_ ? q.size() : charged.size()); }
    //! The k-th of them.
    int particle(int k) const { return allAreCharged_ ? k : charged[k]; }
    bool allAreCharged() const { return allAreCharged_; }

private:
    bool allAreCharged_ = true;
};

} // namespace farfield

#endif
