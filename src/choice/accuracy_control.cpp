/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/accuracy_control.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cells/cell_shape.h"
#include "plan/cost_model.h"
#include "plan/error_estimate.h"
#include "plan/open_box.h"
#include "plan/operator_limits.h"

namespace farfield
{
namespace
{

//! Where rounding of positions in cells of this edge, nm, is too much, that of charges and forces is, too.
constexpr double c_smallestBound = 0.3;
//! Errors below this part of the request are worth another, cheaper choice.
constexpr double c_idle = 0.15;
//! A ratio that was measured at one setting is off by so much at another.
constexpr double c_doubt = 1.1;
//! Part of the request that subtracting excluded pairs may take.
constexpr double c_ofExclusions = 0.3;
//! Errors that were measured differ by as much without a reason.
constexpr double c_noise = 1.05;
//! Excluded pairs at any distance, nm, as far as they are surely near.
constexpr double c_allExclusions = 1e9;

} // namespace

/*! \brief The course of the search: which error in water to ask for next, by what the attempts
 *         before have met. */
template<class Real>
class AccuracyControl<Real>::Search
{
public:
    explicit Search(double request) : request_(request) {}
    double request() const { return request_; }
    //! Whether another attempt is worth it.
    bool goesOn() const
    {
        constexpr int c_mostAttempts     = 10;
        constexpr double c_largestFactor = 1e12; // beyond this no setting is left
        return attempts_ < c_mostAttempts && factor_ < c_largestFactor && !isStuck_;
    }
    //! Whether attempts did not become better as they should have.
    bool isStuck() const { return isStuck_; }
    //! Another kind of settings is tried from now on.
    void startAgain()
    {
        isStuck_ = false;
        factor_  = 1;
        failed_.clear();
    }
    //! Error in this system over that in water, as far as is known.
    double factor() const { return factor_; }
    //! The setting was the same as before.
    void askForMore() { factor_ *= 2; }
    //! Whether a cheaper attempt may follow one that does, or one that did not.
    bool mayAskForLess() const { return cheaper_ < c_mostCheaper; }
    //! An attempt has met more than was asked for: a cheaper one may do.
    void askForLess(double ratio)
    {
        enough_ = factor_;
        factor_ = ratio;
        attempts_++;
        cheaper_++;
    }
    //! The cheaper attempt does not do: one between it and that which does may.
    void askForLessThanEnough()
    {
        factor_ = std::sqrt(factor_ * enough_);
        attempts_++;
        cheaper_++;
    }
    //! An attempt has not met the request.
    void failed(double measured, double predicted, double ratio)
    {
        // What should have become much better and has not is rounding. Compared with every attempt:
        // rounding varies, and each one may be a little better than the last.
        isStuck_ = std::any_of(failed_.begin(),
                               failed_.end(),
                               [&](const Errors& e) {
                                   return predicted < 1e-2 * e.predicted
                                          && measured > 0.7 * e.measured;
                               });
        failed_.push_back({ measured, predicted });
        attempts_++;
        factor_ = std::max(ratio, 1.5 * factor_);
    }
    //! Smallest error that was measured.
    double least() const { return least_; }

    //! An attempt is built. \returns false, and nothing, where all of them take too long together
    bool mayBuild(const Discretisation& d)
    {
        setUp_ += partOfLongestSetUp(d);
        return !last || setUp_ <= 1;
    }
    //! Whether a setting is the one before.
    bool isAsLast(const Discretisation& d) const
    {
        return last && d.hasSettingOf(last->discretisation);
    }
    //! Notes what may be taken where nothing suffices. \param[in] built  what was measured
    void note(const MeasuredError& measured, const Setting& built)
    {
        if (measured.worst < least_)
        {
            least_  = measured.worst;
            closest = built;
        }
        if (!atRounding && measured.beyondRounding <= request_)
        {
            atRounding = built; // the first one is the cheapest
        }
    }

    std::optional<Setting> sufficient, last; //!< as built
    std::optional<Setting> atRounding;       //!< where all that is missing is rounding
    std::optional<Setting> closest;          //!< the one with the smallest error
    bool isBuilt = false;                    //!< the last one

private:
    struct Errors
    {
        double measured, predicted;
    };
    static constexpr int c_mostCheaper = 3;

    double request_;
    double setUp_  = 0; //!< of all attempts, in terms of what they may take
    double factor_ = 1;
    double enough_ = 1; //!< the factor of the attempt that does
    int attempts_  = 0;
    int cheaper_   = 0; //!< those that came after one that did
    bool isStuck_  = false;
    double least_  = std::numeric_limits<double>::infinity();
    std::vector<Errors> failed_; //!< attempts, since it started again
};

template<class Real>
void AccuracyControl<Real>::buildSufficient(const Mat3& periodicBox,
                                            const Real* x,
                                            const Vec3& extent,
                                            WhereMissed whereMissed)
{
    Mat3 box;
    const auto chooseBox = [&]
    {
        box = options_.boundary == Boundary::Periodic
                      ? periodicBox
                      : openBoxFor(options_, x, periodicBox, extent);
        errors_.look(x, box, extent);
    };
    cellBound_ = 0;
    chooseBox();
    Search search(c_margin * options_.accuracy);
    bool isDone = false;
    while (!isDone && search.goesOn())
    {
        const Attempt attempt = buildNext(box, extent, &search);
        if (attempt == Attempt::None)
        {
            break;
        }
        if (attempt == Attempt::AsBefore)
        {
            search.askForMore();
            continue;
        }
        const Discretisation& built  = search.last->discretisation;
        const double predicted       = estimatedError(built, built.leafGrid(box));
        const MeasuredError measured = measureAndNote(x, box, predicted);
        isDone                       = judge(measured, predicted, &search);
        // rounding grows with cells
        const double smaller =
                built.leafGrid(box).unit() * std::min(0.5, 0.7 * search.request() / measured.worst);
        if (search.isStuck() && options_.cellSize == 0 && smaller > c_smallestBound
            && roundsInCells(options_.boundary))
        {
            cellBound_ = smaller;
            chooseBox();
            search.startAgain();
        }
    }
    if (!search.sufficient)
    {
        takeClosest(whereMissed, &search);
    }
    // the last one may be cheaper and not do
    if (!search.isBuilt || search.sufficient->chosenFor.isBestEffort
        || !operators_->discretisation().hasSettingOf(search.sufficient->discretisation))
    {
        chosen_->build(*search.sufficient);
    }
}

template<class Real>
typename AccuracyControl<Real>::Attempt AccuracyControl<Real>::buildNext(const Mat3& box,
                                                                         const Vec3& extent,
                                                                         Search* search)
{
    Options ofWater  = options_;
    ofWater.accuracy = options_.accuracy / search->factor();
    try
    {
        Discretisation d = choice(ofWater, box, errors_.occupied(), extent);
        if (search->last)
        {
            d.exclusionRange = operators_->discretisation().exclusionRange;
        }
        if (search->sufficient
            && (search->isAsLast(d) || d.hasSettingOf(search->sufficient->discretisation)))
        {
            return Attempt::None;
        }
        if (search->isAsLast(d))
        {
            return Attempt::AsBefore;
        }
        if (!search->mayBuild(d))
        {
            return Attempt::None;
        }
        search->isBuilt       = false;
        const Setting setting = { d, { extent } };
        chosen_->build(setting);
        search->isBuilt = true;
        search->last    = setting;
        return Attempt::Built;
    }
    catch (const Error&)
    {
        if (!search->last)
        {
            throw;
        }
        return Attempt::None; // what would be better cannot be had
    }
}

template<class Real>
bool AccuracyControl<Real>::judge(const MeasuredError& measured, double predicted, Search* search)
{
    const double ratio     = c_doubt * measured.worst / predicted;
    const bool orderIsOpen = options_.order < 0;
    search->note(measured, chosen_->inUse());
    if (measured.worst <= search->request() || !orderIsOpen)
    {
        // an explicit order stands even if it misses the accuracy
        search->sufficient = chosen_->inUse();
        const bool isIdle  = orderIsOpen && !allPlacesCount() && search->mayAskForLess()
                            && measured.worst > 0 && measured.worst < c_idle * search->request()
                            && ratio < search->factor();
        if (isIdle)
        {
            search->askForLess(ratio);
        }
        return !isIdle;
    }
    if (!search->sufficient)
    {
        search->failed(measured.worst, predicted, ratio);
        return false;
    }
    if (!search->mayAskForLess())
    {
        return true;
    }
    search->askForLessThanEnough();
    return false;
}

template<class Real>
void AccuracyControl<Real>::takeClosest(WhereMissed whereMissed, Search* search) const
{
    search->sufficient = search->atRounding;
    if (!search->sufficient && whereMissed == WhereMissed::TakeBest)
    {
        search->sufficient = search->closest ? search->closest : search->last;
    }
    if (!search->sufficient)
    {
        refuse(search->least());
    }
    search->sufficient->chosenFor.isBestEffort = true;
}

template<class Real>
std::optional<Setting> AccuracyControl<Real>::moreCells(const Mat3& box,
                                                        const Real* x,
                                                        const Growth& growth) const
{
    //! Predicted costs that differ by less are no reason for other cells.
    constexpr double c_similar = 1.25;

    Setting setting      = chosen_->inUse();
    Discretisation& more = setting.discretisation;
    if (more.isAllNear())
    {
        return {}; // its order is for no far field
    }
    more.referenceBox        = box;
    setting.chosenFor.extent = growth.extent;
    for (int k = 0; k < 3; k++)
    {
        more.referenceBox.row(k) *= growth.factors[k];
        for (int& entry : more.leafCells[k])
        {
            entry *= growth.factors[k];
        }
    }
    // the box may have changed as well, and with it the cells
    const auto shapeOf = [](const Discretisation& d)
    { return shapeRatio(d.leafGrid(d.referenceBox).edges(), d.ws); };
    if (shapeOf(more) > c_worseShape * shapeOf(operators_->discretisation())
        || !OpenCells::of(more.coarseCells(), more.ws, more.boundary)
                    .hold(more.referenceBox, largestLike(growth.extent))
        || static_cast<double>(more.leafGrid(more.referenceBox).count()) > c_maxCells
        || !whyTooLarge(more, device_, sizeof(Real)).empty())
    {
        return {};
    }
    Options ofWater   = options_;
    ofWater.accuracy  = options_.accuracy / std::max(setting.chosenFor.systemFactor, 1.0);
    const double cost = errors_.costOf(more, charges_->occupancy(x, more.referenceBox));
    try
    {
        const Mat3 other        = openBoxFor(ofWater, x, box, growth.extent);
        const Occupancy inOther = charges_->occupancy(x, other);
        const double best = errors_.costOf(choice(ofWater, other, inOther, growth.extent), inOther);
        return cost <= c_similar * best ? std::optional(setting) : std::nullopt;
    }
    catch (const Error&)
    {
        return setting; // there are no others
    }
}

template<class Real>
PlanTask AccuracyControl<Real>::taskOf(const Options& options,
                                       const Mat3& box,
                                       const Vec3& extent) const
{
    PlanTask task    = { options, device_, box, charges_->takingPart(), Occupancy(0.0) };
    task.realSize    = sizeof(Real);
    task.largestCell = largestCell();
    task.extent      = extent;
    return task;
}

template<class Real>
Discretisation AccuracyControl<Real>::choice(const Options& options,
                                             const Mat3& box,
                                             const Occupancy& occupied,
                                             const Vec3& extent) const
{
    PlanTask task  = taskOf(options, box, extent);
    task.occupancy = occupied;
    task.network   = network_;
    return chooseDiscretisation(task);
}

template<class Real>
Mat3 AccuracyControl<Real>::openBoxFor(const Options& options,
                                       const Real* x,
                                       const Mat3& periodicBox,
                                       const Vec3& extent) const
{
    return chooseOpenBox(taskOf(options, periodicBox, extent),
                         [&](const Mat3& box) { return charges_->occupancy(x, box); });
}

template<class Real>
MeasuredError AccuracyControl<Real>::measureAndNote(const Real* x,
                                                    const Mat3& box,
                                                    double predicted)
{
    MeasuredError measured = errors_.measure(x, box);
    const bool mayLeaveOut = operators_->discretisation().exclusionRange < c_allExclusions;
    if (mayLeaveOut && charges_->hasExclusions() && measured.unit > 0)
    {
        const double allowed = c_margin * options_.accuracy;
        // with an order that is given the error may be larger than what was asked for
        if (roundingOfExclusions(x, box, measured.unit)
            > c_ofExclusions * std::max(options_.accuracy, measured.worst))
        {
            measured = leaveOutAllExclusions(
                    x, box, measured, std::max(allowed, c_noise * measured.worst));
        }
        else if (measured.worst > allowed)
        {
            // what is left of subtracting excluded pairs may be all that is wrong
            measured = leaveOutAllExclusions(x, box, measured, 0.8 * measured.worst);
        }
    }
    chosen_->setError(measured.usual, measured.worst / predicted);
    chosen_->setMeasuredField(measured.field);
    return measured;
}

template<class Real>
double AccuracyControl<Real>::roundingOfExclusions(const Real* x,
                                                   const Mat3& box,
                                                   double unit) const
{
    //! Excluded pairs are those of molecules: wherever they are now, they may come as near as a bond, nm.
    constexpr double c_bond = 0.1;

    const Discretisation& d = operators_->discretisation();
    const auto pairs        = charges_->pairsApart(x, box);
    const double nearest    = std::max(d.exclusionRange, 0.8 * std::min(pairs.shortest, c_bond));
    const double unitInLast = 0.25 * std::numeric_limits<Real>::epsilon();
    // of the positions of both particles, relative to centres half an edge away, and of a force
    const double ofPositions = std::sqrt(2.0) * unitInLast * d.leafGrid(box).unit();
    const double relative    = 2 * ofPositions / nearest + 8 * unitInLast;
    const double squared = charges_->squaredCharges() / static_cast<double>(charges_->charged());
    const double force   = options_.coulombConstant * squared / (nearest * nearest);
    const double perParticle = static_cast<double>(pairs.count) / charges_->count();
    return relative * force * std::sqrt(perParticle) / unit;
}

template<class Real>
MeasuredError AccuracyControl<Real>::leaveOutAllExclusions(const Real* x,
                                                           const Mat3& box,
                                                           const MeasuredError& measured,
                                                           double allowed)
{
    const double range = operators_->discretisation().exclusionRange;
    operators_->setExclusionRange(c_allExclusions);
    const MeasuredError withoutThem = errors_.measure(x, box);
    if (withoutThem.worst <= allowed)
    {
        return withoutThem;
    }
    operators_->setExclusionRange(range);
    return measured;
}

template<class Real>
void AccuracyControl<Real>::refuse(double best) const
{
    const std::string attainable = text(1.1 * best / c_margin);
    throw Error(ErrorCode::InvalidArgument,
                "The accuracy " + text(options_.accuracy)
                        + " cannot be reached for these particles in this box in "
                        + (sizeof(Real) == 4 ? "single" : "double")
                        + " precision. The best that was measured is " + attainable + ": set "
                        + attainable + " or more.",
                "accuracy");
}

template<class Real>
double AccuracyControl<Real>::largestCell() const
{
    if (!roundsInCells(options_.boundary))
    {
        return std::numeric_limits<double>::infinity();
    }
    constexpr double c_distance = 0.15, c_part = 0.5;
    const double rounding = 0.25 * std::numeric_limits<Real>::epsilon();
    const double largest  = c_part * options_.accuracy * c_distance / (4 * rounding);
    return cellBound_ > 0 ? std::min(cellBound_, largest) : largest;
}

template<class Real>
MeasuredError AccuracyControl<Real>::measureAnew(const Real* x, const Mat3& box)
{
    errors_.look(x, box, chosen_->chosenFor().extent);
    // as Setup::largestError says it
    return measureAndNote(x, box, chosen_->predictedError());
}

template<class Real>
bool AccuracyControl<Real>::stillSuffices(const Real* x, const Mat3& box)
{
    return measureAnew(x, box).worst <= options_.accuracy || options_.order >= 0;
}

template<class Real>
bool AccuracyControl<Real>::stillSuits(const Real* x, const Mat3& box)
{
    const MeasuredError measured = measureAnew(x, box);
    return (measured.worst <= options_.accuracy
            && (measured.worst > c_idle * options_.accuracy || allPlacesCount()))
           || options_.order >= 0;
}

template class AccuracyControl<float>;
template class AccuracyControl<double>;

} // namespace farfield
