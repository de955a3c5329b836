/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What Solver::state() saves, as an array of numbers, and how it is checked on the way
 *         back.
 */
#ifndef FARFIELD_CHOICE_SAVED_STATE_H
#define FARFIELD_CHOICE_SAVED_STATE_H

#include <vector>

#include "choice/chosen_for.h"
#include "evaluation/charge_set.h"

namespace farfield
{

//! What a solver continues from.
struct SavedState
{
    Discretisation discretisation;
    ChosenFor chosenFor;
    Device device = Device::Cpu; //!< whose costs decided
    ParticleNumbers numbers;     //!< that it was chosen for
    //! Edge of cells, nm, beyond which rounding was found to be too much for the request; 0: none.
    double cellBound = 0;
    bool allTakePart = false; //!< ChargeSet::letAllTakePart()
    //! For which the operators of the reference box are corrected, see OperatorFrame.
    Mat3 strain       = Mat3::Zero();
    Mat3 virialStrain = Mat3::Zero();
};

/*! \brief The state as an array.
 *
 *  Besides the state it holds a version, a checksum, the precision, and those options that decide
 *  on results: accuracy, order, directRange, cellSize, m2l, leastSquares.
 *  \param[in] precision sizeof(Real) */
std::vector<double> encodeState(const SavedState& state, const Options& options, int precision);

//! Numbers in a state.
size_t stateSize();

/*! \brief The state of an array.
 *  \param[in] options    of the solver that continues
 *  \param[in] device     on which it works
 *  \param[in] precision  sizeof(Real) of that solver
 *  \throws Error  InvalidArgument: the array is damaged or was written by another version, with
 *                 another precision or with other options (the parameter is the first that
 *                 differs), its cells do not fit its box or its options, or its operators are
 *                 larger than any that are chosen, see whyTooLarge() */
SavedState
decodeState(const std::vector<double>& array, const Options& options, Device device, int precision);

} // namespace farfield

#endif
