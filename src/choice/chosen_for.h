/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What order and cells were chosen for, and what was measured there. No operator depends on it.
 */
#ifndef FARFIELD_CHOICE_CHOSEN_FOR_H
#define FARFIELD_CHOICE_CHOSEN_FOR_H

#include "plan/discretisation.h"

namespace farfield
{

/*! \brief How strong the fields at charges are, kJ/mol/nm/e, by a measure that a few particles in
 *         contact cannot move, unless there are but few.
 *
 *  Forces are compared with it later, see Chosen::areFieldsAsMeasured(). */
struct MeasuredField
{
    double cap = 0; //!< fields above this are counted as this; 0: not measured
    //! Root of the mean square field, none counted above the cap; at least what errors are relative to.
    double level = 0;
};

//! The system that order and cells were chosen for, and their error in it.
struct ChosenFor
{
    Vec3 extent = Vec3::Zero(); //!< of particles without images, nm
    //! Relative error in this system over that in water, for which estimatedError() is.
    double systemFactor  = 1;
    double measuredError = 0;     //!< see ForceSpread; 0: not measured
    bool isBestEffort    = false; //!< the accuracy is not met: nothing better can be had
    //! \name When the error was measured
    //!@{
    double predictedError = 0;            //!< Chosen::predictedError()
    Vec3 measuredExtent   = Vec3::Zero(); //!< as extent
    double measuredSpread = 0;            //!< ChargeSet::spread(), nm
    double typicalForce   = 0;            //!< AccuracyControl::typicalForce(); 0: not measured
    MeasuredField field   = {};
    //!@}
};

//! Order and cells, and what they were chosen for.
struct Setting
{
    Discretisation discretisation;
    ChosenFor chosenFor;
};

} // namespace farfield

#endif
