/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Splitting and cut-offs of a direct Ewald sum, by a model of its error and its cost.
 *         For host and device.
 */
#ifndef FARFIELD_BATCH_EWALD_PLAN_H
#define FARFIELD_BATCH_EWALD_PLAN_H

#include <algorithm>
#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! Both sums end here.
struct EwaldPlan
{
    double splitting;  //!< a, 1/nm: pairs have erfc(a r)/r
    double cutoff;     //!< of pairs, nm; 0: there are none
    double waveCutoff; //!< of wave vectors, 1/nm
};

//! What the model needs of a system.
struct EwaldCase
{
    int charged;           //!< particles with a charge, >= 1
    double squaredCharges; //!< sum, times the Coulomb constant, kJ nm/mol
    double volume;         //!< nm^3
    double error;          //!< wanted RMS error of the forces, kJ/mol/nm
};

//! A pair within the cut-off takes as long as so many waves of half space at a particle, on CPUs.
constexpr double c_pairCostOfCpus = 20;

//! Both sums have a half of the squared error; what the model does not know doubles it.
constexpr double c_shareOfError = 0.5 / 1.4142135623730951;
//! a rc and kc / 2a: exp(-36) is below all rounding, and at 1 nothing has been gained yet.
constexpr double c_leastExponent = 1, c_mostExponent = 6;

//! a rc and kc / 2a, which are equal: 2 Q (a / (N V s))^(1/2) exp(-s^2) is the wanted error.
FARFIELD_HD double cutExponent(const EwaldCase& system, double a)
{
    const double scale =
            2 * system.squaredCharges * std::sqrt(a / (system.charged * system.volume));
    double s = 3;
    for (int i = 0; i < 3; i++)
    {
        const double square = std::log(scale / (c_shareOfError * system.error * std::sqrt(s)));
        s                   = std::sqrt(std::clamp(
                square, c_leastExponent * c_leastExponent, c_mostExponent * c_mostExponent));
    }
    return s;
}

/*! \brief Kolafa and Perram, Mol. Simul. 9, 351 (1992), doi:10.1080/08927029208049126, for charges that
 *         are not correlated beyond the cut-offs.
 *
 *  With Q the squared charges, N their number, rc and kc the cut-offs, errors are
 *
 *      2 Q / (N rc V)^(1/2) exp(-a^2 rc^2),   a Q (8 / (N V kc))^(1/2) exp(-kc^2 / 4a^2).
 *
 *  \param[in] detour    factor of the splitting beside the fastest one
 *  \param[in] pairCost  of a pair within the cut-off, in waves of half space at a particle: it decides
 *                       on the splitting alone, the error stays what is wanted */
FARFIELD_HD EwaldPlan fastestPlan(const EwaldCase& system,
                                  double detour,
                                  double pairCost = c_pairCostOfCpus)
{
    // pairs take N^2 4 pi / (3 V) (s / a)^3, waves N V (2 a s)^3 / (12 pi^2)
    const double equal =
            pairCost * system.charged * 2 * M_PI * M_PI * M_PI / (system.volume * system.volume);
    const double a = detour * std::pow(equal, 1.0 / 6);
    const double s = cutExponent(system, a);
    return { a, s / a, 2 * a * s };
}

//! The cut-off of waves for a splitting that is given; there are no pairs.
FARFIELD_HD EwaldPlan planOfWaves(const EwaldCase& system, double splitting)
{
    return { splitting, 0, 2 * splitting * cutExponent(system, splitting) };
}

} // namespace farfield

#endif
