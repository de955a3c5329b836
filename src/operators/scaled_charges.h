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

/*! \brief Of a particle that takes part and does nothing: too small to matter beside any other, e.
 *
 *  Between two of them single precision has normal numbers; processors are slow with subnormal ones. Double
 *  precision has them anyhow, and sees what two at one place have of each other. */
template<class Real>
constexpr double c_idleCharge = sizeof(Real) == 4 ? 1e-16 : 1e-17;

//! Scaled charges up to this do nothing.
template<class Real>
double largestIdle(double rootCoulomb)
{
    return 1.001 * c_idleCharge<Real> * rootCoulomb;
}

//! Charges times the root of the Coulomb constant, and their sum as it is computed with.
template<class Real>
struct ScaledCharges
{
    std::vector<Real> q; //!< [n]
    double net = 0;

    ScaledCharges() = default;
    //! \param[in] allIfNone  all take part if none of these has a charge: they are the whole system
    ScaledCharges(const Real* charges, int n, double rootCoulomb, bool allIfNone = true) : q(n)
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
                    charged_.push_back(i);
                }
            }
            allTakePart_ = allIfNone && charged_.empty();
        }
    }

    //! Particles that take part: those with a charge, or all if none of a whole system has one.
    int count() const { return static_cast<int>(allTakePart_ ? q.size() : charged_.size()); }
    //! The k-th of them.
    int particle(int k) const { return allTakePart_ ? k : charged_[k]; }
    bool allTakePart() const { return allTakePart_; }
    //! [n] Those that take part, ascending, then the others, ascending.
    std::vector<int> order() const
    {
        std::vector<int> all;
        all.reserve(q.size());
        for (int k = 0; k < count(); k++)
        {
            all.push_back(particle(k));
        }
        int next = 0; // of the particles up to the one at hand
        for (const int charged : charged_)
        {
            for (; next < charged; next++)
            {
                all.push_back(next);
            }
            next++;
        }
        while (all.size() < q.size())
        {
            all.push_back(next++);
        }
        return all;
    }

private:
    bool allTakePart_ = true;
    std::vector<int> charged_; //!< ascending; empty if all are, or none
};

} // namespace farfield

#endif
