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
    const Discretisation& d         = operators_->discretisation();
    double tolerance = std::min(estimatedError(d, d.leafGrid(d.referenceBox)), c_mostOfStrain);
    if (chosenFor_.measuredError > 0)
    {
        // where forces cancel, what is measured may be rounding: that is no room for strain
        tolerance = std::min(tolerance, chosenFor_.measuredError);
    }
    return planForBox(box, d, device_, tolerance, operators_->frame());
}

template<class Real>
bool Chosen<Real>::buildSameCells(const Mat3& box)
{
    //! An error beyond the request is the least there is, and may grow so far.
    constexpr double c_more = 1.1;
    const Discretisation& d = operators_->discretisation();
    Discretisation next     = d;
    next.referenceBox       = box;
    const double growth     = estimatedError(next, next.leafGrid(box))
                          / estimatedError(d, d.leafGrid(d.referenceBox));
    const double measured = chosenFor_.measuredError;
    const double allowed  = measured > options_.accuracy ? c_more * measured : options_.accuracy;
    // a box that is no longer rectangular has more operators for the same cells
    if (growth * measured > allowed || !whyTooLarge(next, device_, sizeof(Real)).empty())
    {
        return false;
    }
    operators_->change([&] { operators_->build(next); });
    chosenFor_.measuredError = growth * measured;
    return true;
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
    chosenFor_ = setting.chosenFor;
}

template<class Real>
void Chosen<Real>::setError(double measured, double systemFactor, bool isBestEffort)
{
    chosenFor_.measuredError = measured;
    chosenFor_.systemFactor  = systemFactor;
    chosenFor_.isBestEffort  = isBestEffort;
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
    return isLikeField(cappedFields,
                       chosenFor_.field,
                       weakestField(least, charges.squared, charges.charged),
                       charges.acting);
}

template<class Real>
Setup Chosen<Real>::setup(const Setup& ofEvaluator) const
{
    Setup s = ofEvaluator;
    if (operators_->exist())
    {
        const Discretisation& d = operators_->discretisation();
        const auto ofWater    = [&](const Mat3& box) { return estimatedError(d, d.leafGrid(box)); };
        const double measured = chosenFor_.measuredError;
        s.chosenFor           = decidedBy_;
        s.isBestEffort        = chosenFor_.isBestEffort;
        s.estimatedError      = measured > 0
                                        ? measured
                                        : std::max(ofWater(operators_->box()), c_bestAccuracy<Real>);
        s.largestError = measured > 0 ? chosenFor_.systemFactor * ofWater(d.referenceBox) / c_margin
                                      : s.estimatedError;
    }
    return s;
}

template<class Real>
std::vector<double> Chosen<Real>::state() const
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
                operators_->setBox(
                        { d.referenceBox, state.strain, Mat3::Identity(), state.virialStrain });
            });
    decidedBy_ = state.device;
    numbers_   = state.numbers;
}

template class Chosen<float>;
template class Chosen<double>;

} // namespace farfield
