/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Splitting and cut-offs of a direct Ewald sum, by a model of its error and its cost.
 */
#ifndef FARFIELD_BATCH_EWALD_PLAN_H
#define FARFIELD_BATCH_EWALD_PLAN_H

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
EwaldPlan fastestPlan(const EwaldCase& system, double detour, double pairCost = c_pairCostOfCpus);

//! The cut-off of waves for a splitting that is given; there are no pairs.
EwaldPlan planOfWaves(const EwaldCase& system, double splitting);

} // namespace farfield

#endif
