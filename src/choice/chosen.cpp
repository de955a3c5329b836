/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/chosen.h"

#include "choice/error_measurement.h"
#include "choice/force_scale.h"
#include "plan/error_estimate.h"

namespace farfield
{
template<class Real>
bool Chosen<Real>::isFor(const ParticleNumbers& now) const
{
    return evaluator_->operators().exist() && numbers_.standFor(now);
}

template<class Real>
void Chosen<Real>::set(const ParticleNumbers& numbers)
{
    device_  = evaluator_->device();
    numbers_ = numbers;
}

template<class Real>
bool Chosen<Real>::areFieldsAsMeasured(double cappedFields,
                                       const ChargeSums& charges,
                                       double least) const
{
    return isLikeField(cappedFields,
                       evaluator_->operators().discretisation().field,
                       weakestField(least, charges.squared, charges.charged),
                       charges.acting);
}

template<class Real>
Setup Chosen<Real>::setup() const
{
    Setup s = evaluator_->setup();
    if (evaluator_->operators().exist())
    {
        const Discretisation& d = evaluator_->operators().discretisation();
        const double ofWater    = estimatedError(d, d.leafGrid(d.referenceBox));
        s.chosenFor             = device_;
        s.largestError =
                d.measuredError > 0 ? d.systemFactor * ofWater / c_margin : s.estimatedError;
    }
    return s;
}

template<class Real>
std::vector<double> Chosen<Real>::state() const
{
    const OperatorsInUse<Real>& operators = evaluator_->operators();
    if (!operators.exist())
    {
        return {};
    }
    const OperatorFrame& frame = operators.frame();
    return encodeState(
            { operators.discretisation(), device_, numbers_, frame.strain, frame.virialStrain },
            options_,
            sizeof(Real));
}

template<class Real>
SavedState Chosen<Real>::checked(const std::vector<double>& state) const
{
    return decodeState(state, options_, evaluator_->device(), sizeof(Real));
}

template<class Real>
void Chosen<Real>::restore(const SavedState& state)
{
    OperatorsInUse<Real>& operators = evaluator_->operators();
    const Discretisation& d         = state.discretisation;
    operators.change(
            [&] {
                operators.build(
                        d, { d.referenceBox, state.strain, Mat3::Identity(), state.virialStrain });
            });
    device_  = state.chosenFor;
    numbers_ = state.numbers;
}

template class Chosen<float>;
template class Chosen<double>;

} // namespace farfield
