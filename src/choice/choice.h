/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The choice of order and cells for a system on one process: when it is made, kept, looked at
 *         again, and made anew.
 */
#ifndef FARFIELD_CHOICE_CHOICE_H
#define FARFIELD_CHOICE_CHOICE_H

#include <functional>
#include <optional>
#include <vector>

#include "choice/accuracy_control.h"
#include "choice/chosen.h"
#include "evaluation/evaluator.h"
#include "evaluation/placement.h"

namespace farfield
{

//! Charges that are mixed from those of several states.
class MixedCharges
{
public:
    virtual ~MixedCharges() = default;
    //! Sets those that cells are chosen and errors measured with.
    virtual void mixForChoice() = 0;
    //! Sets those of the other state, whose forces may be much weaker.
    virtual void mixForOtherState() = 0;
    //! Sets those of a lambda.
    virtual void mix(double lambda) = 0;
};

//! Makes the operators in use suit the particles and the box.
template<class Real>
class Choice
{
public:
    //! Returns positions in host memory, [n][3], nm, which it has checked.
    using Positions = std::function<const Real*()>;

    Choice(const Options& options, ChargeSet<Real>* charges, Evaluator<Real>* evaluator);

    //! \name Before anything is chosen
    //!@{
    void setNetwork(const Network& network) { accuracy_.setNetwork(network); }
    //! It is for a run that has begun, and refuses nothing.
    void takeBest() { whereMissed_ = WhereMissed::TakeBest; }
    //!@}
    //! As AccuracyControl.
    void countAllPlaces() { accuracy_.countAllPlaces(); }
    void setLeastForce(double force) { accuracy_.setLeastForce(force); }
    //! The charges are mixed; null: they are not.
    void setMixed(MixedCharges* mixed) { mixed_ = mixed; }

    /*! \brief Makes the operators those of a place and the particles there.
     *  \param[in] positions  called if needed
     *  \param[in] lambda     of mixed charges, which are evaluated next; none: it is not known */
    void follow(const Place<Real>& place, const Positions& positions, std::optional<double> lambda);
    //! As Chosen, of the last evaluation.
    bool areFieldsAsMeasured() const;
    /*! \brief Measures the error anew, as forces have changed much, and chooses anew where the
     *         operators do not do any more, or do far more than is asked for.
     *
     *  Mixed charges are those of the lambda that follow() was told, before and after it.
     *  \param[in] x  [n][3], nm, host memory
     *  \returns whether there are others now */
    bool look(const Place<Real>& place, const Real* x);
    //! AccuracyControl::typicalForce() when the error was measured. 0: it was not measured.
    double typicalForce() const
    {
        const double measured = chosen_.chosenFor().typicalForce;
        return measured > 0 ? measured : accuracy_.typicalForce();
    }

    //! Extent of particles without images that cells were chosen for, nm.
    Vec3 extent() const { return chosen_.chosenFor().extent; }
    Setup setup() const;
    std::vector<double> state() const
    {
        return chosen_.state(accuracy_.cellBound(), charges_->allTakePart());
    }
    SavedState checked(const std::vector<double>& state) const { return chosen_.checked(state); }
    void restore(const SavedState& state);

private:
    //! Whether cells were chosen for particles without images that are about as far apart.
    bool isChosenFor(const Place<Real>& place) const;
    //! Whether the error is that of particles without images that are about as far apart.
    bool isMeasuredFor(const Place<Real>& place) const;
    /*! \brief Whether the particles as a whole are about as far apart as when the error was measured.
     *
     *  A few that evaporate go far, and hardly change the forces that the error is relative to. */
    bool isSpreadAsMeasured(const Real* x) const;
    //! The error has been measured for these. Mixed charges become those of lambda_.
    void setMeasuredFor(const Place<Real>& place, const Real* x);
    /*! \brief Mixes the charges of lambda_, and notes their fields as those that next ones are compared
     *         with: the error was measured with the charges of the choice, which have other fields. */
    void noteFieldOfMix(const Real* x);
    //! Others for particles without images that have spread, or come together.
    void followExtent(const Place<Real>& place, const Positions& positions);
    //! Measures the error of particles without images that have spread, and chooses anew if it must.
    void followSpread(const Place<Real>& place, const Positions& positions);
    /*! \brief Chooses and builds operators that meet the accuracy.
     *  \param[in] extent   for particles so far apart, nm
     *  \param[in] mayTune  whether settings may be timed */
    void choose(const Place<Real>& place,
                const Real* x,
                const Vec3& extent,
                bool mayTune,
                WhereMissed whereMissed);
    void mixForChoice();
    //! Whether the operators in use meet the accuracy, for both states where charges are mixed.
    bool sufficesForAllStates(const Real* x);
    //! The same for the other state alone.
    bool sufficesForOtherState(const Real* x);
    //! Notes the larger one of the error in use and of another one.
    //! \param[in] isMissed  whether the accuracy is known not to be met
    void noteLargerError(const ChosenFor& other, bool isMissed);
    //! Times helpers of operators that a saved state has brought. \param[in] positions  called if needed
    void timeHelpers(const Positions& positions);

    Options options_;
    ChargeSet<Real>* charges_;
    Evaluator<Real>* evaluator_;
    OperatorsInUse<Real>* operators_;
    Chosen<Real> chosen_;
    AccuracyControl<Real> accuracy_;
    MixedCharges* mixed_     = nullptr;
    WhereMissed whereMissed_ = WhereMissed::Refuse; //!< at the first choice
    std::optional<double> lambda_;                  //!< as follow() was told
    bool helpersAreOpen_ = false; //!< which helpers are the fastest is to be found out
    std::vector<TimedSetting> timed_;
};

} // namespace farfield

#endif
