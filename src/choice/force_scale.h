/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What errors of forces are relative to: a property of the system, not of the few particles
 *         that happen to be in contact.
 */
#ifndef FARFIELD_CHOICE_FORCE_SCALE_H
#define FARFIELD_CHOICE_FORCE_SCALE_H

#include <vector>

#include "choice/chosen_for.h"
#include "choice/pair_force.h"
#include "evaluation/charge_set.h"

namespace farfield
{

/*! \brief What errors are relative to where forces cancel, kJ/mol/nm; see leastPartOfPairForce().
 *  \param[in] volume  nm^3 */
double leastForce(const Options& options, int realSize, const ChargeSums& charges, double volume);

/*! \brief The scale of the forces of a configuration.
 *
 *  The root mean square of all forces says how large forces are, unless a few particles are in
 *  contact: these may have nearly all of it, and when they part it is gone. So particles in a field
 *  far above the median do not count; the fields of a settled system are within a few medians. */
struct ForceScale
{
    /*! \param[in] forces     [n][3], kJ/mol/nm
     *  \param[in] pairForce  typicalPairForce(): without its part c_settled no system is settled
     *  \param[in] least      smallest scale, kJ/mol/nm */
    template<class Real>
    ForceScale(const std::vector<double>& forces,
               const ChargeSet<Real>& charges,
               double pairForce,
               double least);

    double square; //!< what squared errors are relative to: a sum over particles, (kJ/mol/nm)^2
    double ofAll;  //!< the same with all particles in full, those in contact too
    /*! \brief [n] How much the squared error of a particle counts beside square: less in fields
     *         beyond the cap, where it is compared with the force of the particle itself. Empty if
     *         all count in full. */
    std::vector<double> weights;
    MeasuredField field; //!< of these forces
};

//! Fields at charges that are weaker are alike, kJ/mol/nm/e. \param[in] least  smallest scale, kJ/mol/nm
double weakestField(double least, double squaredCharges, long long charged);

/*! \brief Fields over those when the error was measured; 1 where there is nothing to compare with.
 *  \param[in] cappedFields  Backend::cappedFields(), of all ranks
 *  \param[in] least         fields below this are alike, kJ/mol/nm/e
 *  \param[in] acting        number of charges that do something */
double fieldRatio(double cappedFields, const MeasuredField& then, double least, long long acting);

/*! \brief Whether fields are about as strong as when the error was measured.
 *
 *  If they are not, the error is measured again: relative to weaker forces it is larger. Stronger
 *  ones are of no harm, and matter less.
 *  \param[in] ratio   fieldRatio()
 *  \param[in] acting  number of charges that do something; fields of few vary by themselves */
bool isLikeField(double ratio, long long acting);

} // namespace farfield

#endif
