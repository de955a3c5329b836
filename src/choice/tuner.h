/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Times the settings that meet the accuracy, on a GPU, and takes the fastest.
 */
#ifndef FARFIELD_CHOICE_TUNER_H
#define FARFIELD_CHOICE_TUNER_H

#include <vector>

#include "choice/accuracy_control.h"
#include "evaluation/evaluator.h"

namespace farfield
{

/*! \brief Times settings about as cheap as the one that has been built, and builds the fastest.
 *
 *  The operators in use must meet the accuracy; they stay if nothing is faster by more than the
 *  timing may err, or if what is faster turns out not to meet it. Where the choice is for several
 *  ranks, all is timed on this one: M2L, which every GPU does for all cells, counts whole, the rest by
 *  the share of a rank. With Options::helpersIfFaster each setting is timed without helpers, with one
 *  and with all.
 *  \param[in] x  [n][3], nm, host memory
 *  \returns what was timed, in that order; empty if there was no choice */
template<class Real>
std::vector<TimedSetting> tune(const Options& options,
                               const ChargeSet<Real>& charges,
                               const Mat3& box,
                               const Real* x,
                               Evaluator<Real>* evaluator,
                               Chosen<Real>* chosen,
                               AccuracyControl<Real>* accuracy);

/*! \brief Times the operators in use as tune() does, and uses the helpers that are the fastest.
 *  \param[in] x  [n][3], nm, host memory
 *  \returns what was timed */
template<class Real>
std::vector<TimedSetting> timeHelpers(const Options& options,
                                      const ChargeSet<Real>& charges,
                                      const Real* x,
                                      Evaluator<Real>* evaluator,
                                      AccuracyControl<Real>* accuracy);

} // namespace farfield

#endif
