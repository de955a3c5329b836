/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/choice.h"

#include <algorithm>
#include <cmath>

#include "choice/tuner.h"
#include "plan/open_box.h"

namespace farfield
{

template<class Real>
Choice<Real>::Choice(const Options& options, ChargeSet<Real>* charges, Evaluator<Real>* evaluator) :
    options_(options), charges_(charges), evaluator_(evaluator),
    operators_(&evaluator->operators()), chosen_(options, evaluator->device(), operators_),
    accuracy_(options, evaluator->device(), charges, &chosen_, &evaluator->pipeline())
{
}

template<class Real>
bool Choice<Real>::isChosenFor(const Place<Real>& place) const
{
    const Discretisation& d = operators_->discretisation();
    return options_.boundary == Boundary::Periodic
           || (isLikeExtent(place.extent, extent())
               && OpenCells::of(d.coarseCells(), d.ws, d.boundary).hold(place.box, place.extent));
}

template<class Real>
bool Choice<Real>::isMeasuredFor(const Place<Real>& place) const
{
    return options_.boundary == Boundary::Periodic
           || isLikeExtent(place.extent, chosen_.chosenFor().measuredExtent);
}

template<class Real>
bool Choice<Real>::isSpreadAsMeasured(const Real* x) const
{
    return isLikeExtent(Vec3::Constant(charges_->spread(x, options_.boundary)),
                        Vec3::Constant(chosen_.chosenFor().measuredSpread));
}

template<class Real>
void Choice<Real>::setMeasuredFor(const Place<Real>& place, const Real* x)
{
    const double force = accuracy_.typicalForce(); // of the charges that were measured
    if (mixed_ != nullptr && lambda_)
    {
        noteFieldOfMix(x);
    }
    chosen_.setMeasuredExtent(place.extent);
    chosen_.setMeasuredFor(charges_->spread(x, options_.boundary), force);
}

template<class Real>
void Choice<Real>::noteFieldOfMix(const Real* x)
{
    mixed_->mix(*lambda_);
    MeasuredField field = chosen_.chosenFor().field;
    if (field.level == 0 || charges_->acting() == 0)
    {
        return;
    }
    std::vector<Real> forces(3 * static_cast<size_t>(charges_->count()));
    Request request;
    request.energy = request.virial = false;
    request.replaceForces           = true;
    evaluator_->times().notCounted(
            [&] {
                evaluator_->pipeline().run({ x, nullptr, forces.data(), nullptr, request });
            });
    const double capped = evaluator_->backend().cappedFields();
    if (capped >= 0)
    {
        field.level = field.cap * std::sqrt(capped / static_cast<double>(charges_->acting()));
        chosen_.setMeasuredField(field);
    }
}

template<class Real>
void Choice<Real>::follow(const Place<Real>& place,
                          const Positions& positions,
                          std::optional<double> lambda)
{
    lambda_ = lambda;
    charges_->complete();
    const auto isChosen = [&] { return chosen_.isFor(charges_->numbers()); };
    if (!isChosen())
    {
        mixForChoice(); // charges that have become zero at a lambda are of the choice, too
    }
    if (!isChosen())
    {
        choose(place, positions(), place.extent, options_.tune, whereMissed_);
    }
    else if (!isChosenFor(place))
    {
        followExtent(place, positions);
    }
    else
    {
        chosen_.followBox(
                place.box,
                [&] { choose(place, positions(), place.extent, false, WhereMissed::TakeBest); });
        if (chosen_.mustMeasure())
        {
            look(place, positions());
        }
    }
    if (!isMeasuredFor(place))
    {
        followSpread(place, positions);
    }
    if (helpersAreOpen_)
    {
        timeHelpers(positions);
    }
}

template<class Real>
void Choice<Real>::timeHelpers(const Positions& positions)
{
    helpersAreOpen_  = false;
    const Real* x    = positions();
    const auto times = [&]
    {
        mixForChoice();
        timed_ = farfield::timeHelpers(options_, *charges_, x, evaluator_, &accuracy_);
    };
    chosen_.change([&] { evaluator_->times().notCounted(times); });
}

template<class Real>
void Choice<Real>::followExtent(const Place<Real>& place, const Positions& positions)
{
    const Growth growth = growthFor(options_.boundary, place.extent, extent());
    if (!growth.any())
    {
        choose(place, positions(), place.extent, options_.tune, WhereMissed::TakeBest);
    }
    else if (const auto more = accuracy_.moreCells(place.box, positions(), growth))
    {
        chosen_.change([&] { chosen_.build(*more); });
        timed_.clear();
    }
    else
    {
        choose(place, positions(), growth.extent, options_.tune, WhereMissed::TakeBest);
    }
}

template<class Real>
void Choice<Real>::followSpread(const Place<Real>& place, const Positions& positions)
{
    bool suffices      = false;
    const auto measure = [&]
    {
        const Real* x = positions();
        suffices      = isSpreadAsMeasured(x);
        if (suffices)
        {
            chosen_.setMeasuredExtent(place.extent);
            return;
        }
        evaluator_->times().notCounted([&] { suffices = sufficesForAllStates(x); });
        if (suffices)
        {
            setMeasuredFor(place, x);
        }
    };
    chosen_.change(measure);
    if (!suffices)
    {
        choose(place, positions(), extent(), options_.tune, WhereMissed::TakeBest);
    }
}

template<class Real>
void Choice<Real>::choose(const Place<Real>& place,
                          const Real* x,
                          const Vec3& extent,
                          bool mayTune,
                          WhereMissed whereMissed)
{
    const auto buildForCharges = [&](WhereMissed where)
    {
        if (evaluator_->gpu() != nullptr)
        {
            // some may have been lost
            accuracy_.setHelpers(
                    std::min(accuracy_.network().helpers, evaluator_->gpu()->helperCount()));
        }
        accuracy_.buildSufficient(place.box, x, extent, where);
        if (evaluator_->gpu() != nullptr && mayTune)
        {
            const Mat3 inUse =
                    options_.boundary == Boundary::Periodic ? place.box : operators_->box();
            timed_          = tune(options_, *charges_, inUse, x, evaluator_, &chosen_, &accuracy_);
            helpersAreOpen_ = false;
        }
    };
    const auto build = [&]
    {
        mixForChoice();
        buildForCharges(whereMissed);
        if (!sufficesForOtherState(x))
        {
            mixed_->mixForOtherState();
            buildForCharges(WhereMissed::TakeBest);
            const ChosenFor forOther = chosen_.chosenFor();
            mixForChoice();
            const bool suffices = accuracy_.stillSuffices(x, operators_->box());
            noteLargerError(forOther, !suffices);
        }
    };
    ParticleNumbers numbers;
    chosen_.change(
            [&]
            {
                evaluator_->times().notCounted(build);
                numbers = charges_->numbers();
                setMeasuredFor(place, x);
            });
    chosen_.set(numbers);
}

template<class Real>
void Choice<Real>::mixForChoice()
{
    if (mixed_ != nullptr)
    {
        mixed_->mixForChoice();
    }
}

template<class Real>
bool Choice<Real>::sufficesForAllStates(const Real* x)
{
    mixForChoice();
    return accuracy_.stillSuffices(x, operators_->box()) && sufficesForOtherState(x);
}

template<class Real>
bool Choice<Real>::sufficesForOtherState(const Real* x)
{
    //! A state of fewer charges, relative to the other one, has its errors from what differs.
    constexpr double c_few = 0.1;
    if (mixed_ == nullptr)
    {
        return true;
    }
    const int acting       = charges_->acting();
    const ChosenFor before = chosen_.chosenFor();
    mixed_->mixForOtherState();
    const bool suffices =
            charges_->acting() <= c_few * acting || accuracy_.stillSuffices(x, operators_->box());
    mixForChoice();
    noteLargerError(before, false);
    chosen_.setMeasuredField(before.field);
    return suffices;
}

template<class Real>
void Choice<Real>::noteLargerError(const ChosenFor& other, bool isMissed)
{
    const ChosenFor own    = chosen_.chosenFor();
    const ChosenFor& worse = own.measuredError < other.measuredError ? other : own;
    chosen_.setError(worse.measuredError,
                     worse.systemFactor,
                     isMissed || own.isBestEffort || other.isBestEffort);
}

template<class Real>
bool Choice<Real>::areFieldsAsMeasured() const
{
    return chosen_.areFieldsAsMeasured(evaluator_->backend().cappedFields(),
                                       charges_->sums(),
                                       accuracy_.leastForce(operators_->box()));
}

template<class Real>
bool Choice<Real>::look(const Place<Real>& place, const Real* x)
{
    const auto exclusionRange = [this] { return operators_->discretisation().exclusionRange; };
    const double range        = exclusionRange();
    bool suits                = false;
    const auto lookAt         = [&]
    {
        chosen_.change(
                [&]
                {
                    evaluator_->times().notCounted(
                            [&]
                            {
                                // cells that one state needs may be finer than the other one asks for
                                suits = mixed_ == nullptr
                                                ? accuracy_.stillSuits(x, operators_->box())
                                                : sufficesForAllStates(x);
                            });
                    if (suits)
                    {
                        setMeasuredFor(place, x);
                    }
                });
        if (!suits)
        {
            choose(place, x, extent(), false, WhereMissed::TakeBest);
        }
    };
    evaluator_->times().add(Stage::SetUp, lookAt);
    return !suits || exclusionRange() != range;
}

template<class Real>
Setup Choice<Real>::setup() const
{
    Setup s = chosen_.setup(evaluator_->setup());
    s.timed = timed_;
    return s;
}

template<class Real>
void Choice<Real>::restore(const SavedState& state)
{
    if (state.allTakePart)
    {
        charges_->letAllTakePart();
    }
    chosen_.restore(state);
    accuracy_.setCellBound(state.cellBound);
    timed_.clear();
    helpersAreOpen_ = options_.tune && options_.helpersIfFaster && evaluator_->gpu() != nullptr
                      && evaluator_->gpu()->helperCount() > 0;
}

template class Choice<float>;
template class Choice<double>;

} // namespace farfield
