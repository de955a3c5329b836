/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How long the sums of a system are. For host and device.
 */
#ifndef FARFIELD_BATCH_SYSTEM_PLAN_H
#define FARFIELD_BATCH_SYSTEM_PLAN_H

#include <algorithm>
#include <cmath>

#include "farfield/farfield_batch.h"

#include "base/host_device.h"
#include "batch/ewald_plan.h"
#include "batch/near_forces.h"
#include "choice/pair_force.h"

namespace farfield
{

//! Splittings of a measurement differ by this factor.
constexpr double c_detour = 1.3;

//! Of which systems of a call the error is measured: one in so many of all systems so far.
struct MeasuredSystems
{
    static constexpr int c_step = 64;

    FARFIELD_HD bool has(int system) const { return any && (before + system) % c_step == 0; }
    //! An upper bound of how many of so many systems they are.
    int atMost(int systems) const { return any ? systems / c_step + 1 : 0; }

    bool any;         //!< whether there is an error to measure
    long long before; //!< systems of the calls before
};

//! What decides on the sums of a system.
struct SystemTraits
{
    int charged           = 0; //!< particles with a charge
    double squaredCharges = 0; //!< of all channels, e^2
    double volume         = 0; //!< that particles are in, nm^3
    double fullness       = 1; //!< of the box: this volume is a part of its own, see SlabBox
    double nearForce      = 0; //!< the middle one of NearForces, e^2/nm^2
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
 *  Forces are taken for those between neighbours. If they turn out weaker, sums are computed again. */
class ForceAim
{
public:
    //! \param[in] realSize  bytes of a number of the forces
    FARFIELD_HD ForceAim(const BatchOptions& options,
                         const SystemTraits& traits,
                         const Sharpness& sharpness,
                         int realSize) :
        accuracy_(options.accuracy / sharpness.tightening),
        charged_(traits.charged), mayChange_(sharpness.force == 0 && options.waveCutoff == 0)
    {
        const double pair = typicalPairForce(
                options.coulombConstant, traits.squaredCharges, traits.charged, traits.volume);
        least_            = pair * leastPartOfPairForce(options.accuracy, realSize);
        const double near = c_partOfNearForces * options.coulombConstant * traits.nearForce;
        setForce(sharpness.force > 0 ? sharpness.force : std::max(least_, near));
    }
    //! What errors are relative to, kJ/mol/nm.
    FARFIELD_HD double force() const { return force_; }
    //! RMS error of the forces, kJ/mol/nm.
    FARFIELD_HD double error() const { return error_; }
    /*! \brief Whether sums for this error were accurate enough; if not, the error is another one now.
     *  \param[in] squares  sum of the squared forces, (kJ/mol/nm)^2 */
    FARFIELD_HD bool suffices(double squares)
    {
        const double found = std::max(least_, std::sqrt(squares / charged_));
        if (!mayChange_ || found >= force_)
        {
            return true;
        }
        // somewhat less, or rounding would ask for another round
        setForce(std::max(least_, 0.9 * found));
        return false;
    }

private:
    FARFIELD_HD void setForce(double force)
    {
        force_ = force;
        error_ = accuracy_ * force;
    }

    double accuracy_; //!< with the tightening
    int charged_;
    bool mayChange_;
    double least_ = 0, force_ = 0, error_ = 0;
};

/*! \brief Splitting and cut-offs for an error.
 *  \param[in] error     RMS error of the forces, kJ/mol/nm
 *  \param[in] detour    factor of the splitting beside the fastest one
 *  \param[in] pairCost  see fastestPlan() */
FARFIELD_HD EwaldPlan planFor(const BatchOptions& options,
                              const SystemTraits& traits,
                              double error,
                              double detour,
                              double pairCost)
{
    const EwaldCase model = {
        traits.charged, options.coulombConstant * traits.squaredCharges, traits.volume, error
    };
    if (options.smearing == 0)
    {
        // waves fill the vacuum, too
        return fastestPlan(model, detour, pairCost * traits.fullness);
    }
    // waves at a cut-off that is given belong to the sum, whichever way they round
    constexpr double c_rounding = 1e-10;
    EwaldPlan plan              = planOfWaves(model, 1 / (std::sqrt(2.0) * options.smearing));
    plan.waveCutoff             = options.waveCutoff > 0 ? options.waveCutoff * (1 + c_rounding)
                                                         : plan.waveCutoff * detour;
    return plan;
}

//! Energies that need no sum, kJ/mol/e^2.
struct EwaldConstants
{
    double self;       //!< of a charge with itself
    double background; //!< of a net charge with its background
};
FARFIELD_HD EwaldConstants constantsOf(const BatchOptions& options,
                                       const EwaldPlan& plan,
                                       double volume)
{
    const double k    = options.coulombConstant;
    const bool points = options.smearing == 0;
    return { points || !options.selfEnergy ? k * plan.splitting / std::sqrt(M_PI) : 0,
             points ? k * M_PI / (2 * plan.splitting * plan.splitting * volume) : 0 };
}

/*! \brief The squared error of the force of a particle, (kJ/mol/nm)^2.
 *
 *  In contact the error is rounding, relative to the force.
 *  \param[in] force, other  with two splittings, kJ/mol/nm
 *  \param[in] scale         what errors are relative to, kJ/mol/nm */
template<class Real>
FARFIELD_HD double squaredErrorOf(const Real* force, const Real* other, double scale)
{
    // particles with a force so many times the usual one are in contact
    constexpr double c_contact = 2.5;
    double error = 0, square = 0;
    for (int k = 0; k < 3; k++)
    {
        const auto f   = static_cast<double>(force[k]);
        const double d = f - static_cast<double>(other[k]);
        error += d * d;
        square += f * f;
    }
    return error / std::max(1.0, square / (c_contact * scale * c_contact * scale));
}

/*! \brief The error of forces relative to \p scale.
 *  \param[in] square    sum of squaredErrorOf()
 *  \param[in] smearing  see BatchOptions */
FARFIELD_HD double relativeErrorOf(double square, int n, double scale, double smearing)
{
    // both have the error; Gaussian charges have more waves at the other place
    const double share = smearing > 0 ? 1 : 0.5;
    return std::sqrt(share * square / n) / scale;
}

/*! \brief The error of forces relative to \p scale, from those of another splitting.
 *
 *  \param[in] forces, others  [n][3], kJ/mol/nm
 *  \param[in] scale           what errors are relative to, kJ/mol/nm
 *  \param[in] smearing        see BatchOptions */
template<class Real>
double errorOfForces(const Real* forces, const Real* others, int n, double scale, double smearing);

} // namespace farfield

#endif
