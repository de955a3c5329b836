/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/chosen.h"

#include <algorithm>

#include "choice/error_measurement.h"
#include "choice/force_scale.h"
#include "plan/error_estimate.h"
#include "plan/operator_limits.h"

namespace farfield
{
template<class Real>
BoxPlan Chosen<Real>::planFor(const Mat3& box) const
{
    //! Largest relative error that may leave room for a strain followed to first order.
    constexpr double c_mostOfStrain = 0.1;
    double tolerance                = std::min(predictedError(), c_mostOfStrain);
    if (chosenFor_.measuredError > 0)
    {
        // where forces cancel, what is measured may be rounding: that is no room for strain
        tolerance = std::min(tolerance, chosenFor_.measuredError);
    }
    return planForBox(box, operators_->discretisation(), device_, tolerance, operators_->frame());
}

template<class Real>
bool Chosen<Real>::buildSameCells(const Mat3& box)
{
    Discretisation next = operators_->discretisation();
    next.referenceBox   = box;
    // a box that is no longer rectangular has more operators for the same cells
    if (!whyTooLarge(next, device_, sizeof(Real)).empty())
    {
        return false;
    }
    operators_->change([&] { operators_->build(next); });
    return true;
}

template<class Real>
double Chosen<Real>::predictedError() const
{
    const Discretisation& d = operators_->discretisation();
    return estimatedError(d, d.leafGrid(d.referenceBox));
}

template<class Real>
bool Chosen<Real>::mustMeasure() const
{
    //! So much the error may change before it is measured again, up or down.
    constexpr double c_much = 1.5;
    if (chosenFor_.measuredError == 0)
    {
        return false;
    }
    const double now    = predictedError();
    const double then   = chosenFor_.predictedError;
    const double growth = now / then;
    const bool isMissed = options_.order < 0 && chosenFor_.systemFactor * then <= options_.accuracy
                          && chosenFor_.systemFactor * now > options_.accuracy;
    return isMissed || growth > c_much || growth < 1 / c_much;
}

template<class Real>
bool Chosen<Real>::isFor(const ParticleNumbers& now) const
{
    return operators_->exist() && numbers_.standFor(now);
}

template<class Real>
void Chosen<Real>::set(const ParticleNumbers& numbers)
{
    decidedBy_ = device_;
    numbers_   = numbers;
}

template<class Real>
void Chosen<Real>::build(const Setting& setting)
{
    operators_->build(setting.discretisation);
    operators_->setFieldCap(setting.chosenFor.field.cap);
    chosenFor_                = setting.chosenFor;
    chosenFor_.predictedError = predictedError();
}

template<class Real>
void Chosen<Real>::setError(double measured, double systemFactor, bool isBestEffort)
{
    chosenFor_.measuredError  = measured;
    chosenFor_.systemFactor   = systemFactor;
    chosenFor_.isBestEffort   = isBestEffort;
    chosenFor_.predictedError = predictedError();
}

template<class Real>
void Chosen<Real>::setMeasuredField(const MeasuredField& field)
{
    chosenFor_.field = field;
    operators_->setFieldCap(field.cap);
}

template<class Real>
bool Chosen<Real>::areFieldsAsMeasured(double cappedFields,
                                       const ChargeSums& charges,
                                       double least) const
{
    const double ratio = fieldRatio(cappedFields,
                                    chosenFor_.field,
                                    weakestField(least, charges.squared, charges.charged),
                                    charges.acting);
    // relative to weaker forces the same error is larger; it was no larger than the request
    const bool mayMiss = options_.order < 0 && !chosenFor_.isBestEffort
                         && c_untilMeasured * ratio < 1
                         && chosenFor_.systemFactor * predictedError()
                                    > c_untilMeasured * ratio * options_.accuracy;
    return !mayMiss && isLikeField(ratio, charges.acting);
}

template<class Real>
Setup Chosen<Real>::setup(const Setup& ofEvaluator) const
{
    Setup s = ofEvaluator;
    if (operators_->exist())
    {
        const Discretisation& d = operators_->discretisation();
        const double inWater    = estimatedError(d, d.leafGrid(operators_->box()));
        const double measured   = chosenFor_.measuredError;
        s.chosenFor             = decidedBy_;
        s.isBestEffort          = chosenFor_.isBestEffort;
        s.estimatedError        = measured > 0 ? measured : std::max(inWater, c_bestAccuracy<Real>);
        s.largestError = measured > 0 ? chosenFor_.systemFactor * predictedError() / c_margin
                                      : s.estimatedError;
    }
    return s;
}

template<class Real>
std::vector<double> Chosen<Real>::state(double cellBound, bool allTakePart) const
{
    if (!operators_->exist())
    {
        return {};
    }
    const OperatorFrame& frame = operators_->frame();
    return encodeState({ operators_->discretisation(),
                         chosenFor_,
                         decidedBy_,
                         numbers_,
                         cellBound,
                         allTakePart,
                         frame.strain,
                         frame.virialStrain },
                       options_,
                       sizeof(Real));
}

template<class Real>
SavedState Chosen<Real>::checked(const std::vector<double>& state) const
{
    return decodeState(state, options_, device_, sizeof(Real));
}

template<class Real>
void Chosen<Real>::restore(const SavedState& state)
{
    const Discretisation& d = state.discretisation;
    change(
            [&]
            {
                build({ d, state.chosenFor });
                chosenFor_ = state.chosenFor; // predicted in the box where it was measured
                operators_->setBox(
                        { d.referenceBox, state.strain, Mat3::Identity(), state.virialStrain });
            });
    decidedBy_ = state.device;
    numbers_   = state.numbers;
}

template class Chosen<float>;
template class Chosen<double>;

} // namespace farfield
