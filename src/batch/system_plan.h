/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How long the sums of a system are, for all devices.
 */
#ifndef FARFIELD_BATCH_SYSTEM_PLAN_H
#define FARFIELD_BATCH_SYSTEM_PLAN_H

#include <array>

#include "farfield/farfield_batch.h"

#include "batch/ewald_plan.h"

namespace farfield
{

//! Splittings of a measurement differ by this factor.
constexpr double c_detour = 1.3;

//! What decides on the sums of a system.
struct SystemTraits
{
    int charged           = 0; //!< particles with a charge
    double squaredCharges = 0; //!< of all channels, e^2
    double volume         = 0; //!< nm^3
};

//! How accurate sums are.
struct Sharpness
{
    double tightening; //!< see BatchSetup
    double force;      //!< what errors are relative to, kJ/mol/nm; 0: decided by the forces
    double detour;     //!< factor of the splitting beside the fastest one
};

/*! \brief The error that the sums of a periodic system are cut for.
 *
 *  Forces are taken for a part of the force between typical neighbours. If they turn out weaker, sums
 *  are computed again. */
class ForceAim
{
public:
    //! \param[in] realSize  bytes of a number of the forces
    ForceAim(const BatchOptions& options,
             const SystemTraits& traits,
             const Sharpness& sharpness,
             int realSize);
    //! What errors are relative to, kJ/mol/nm.
    double force() const { return force_; }
    //! RMS error of the forces, kJ/mol/nm.
    double error() const { return error_; }
    /*! \brief Whether sums for this error were accurate enough; if not, the error is another one now.
     *  \param[in] squares  sum of the squared forces, (kJ/mol/nm)^2 */
    bool suffices(double squares);

private:
    void setForce(double force);

    double accuracy_; //!< with the tightening
    int charged_;
    bool mayChange_;
    double least_ = 0, force_ = 0, error_ = 0;
};

/*! \brief Splitting and cut-offs for an error.
 *  \param[in] error     RMS error of the forces, kJ/mol/nm
 *  \param[in] detour    factor of the splitting beside the fastest one
 *  \param[in] pairCost  see fastestPlan() */
EwaldPlan planFor(const BatchOptions& options,
                  const SystemTraits& traits,
                  double error,
                  double detour,
                  double pairCost);

//! Energies of a charge with itself, kJ/mol/e^2, and of a net charge with its background.
std::array<double, 2> constantsOf(const BatchOptions& options,
                                  const EwaldPlan& plan,
                                  double volume);

/*! \brief The error of forces relative to \p scale, from those of another splitting.
 *
 *  \param[in] forces, others  [n][3], kJ/mol/nm
 *  \param[in] scale           what errors are relative to, kJ/mol/nm
 *  \param[in] smearing        see BatchOptions */
template<class Real>
double errorOfForces(const Real* forces, const Real* others, int n, double scale, double smearing);

} // namespace farfield

#endif
