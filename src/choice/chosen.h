/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Order and cells in use, what they were chosen for, and whether they still suit it.
 */
#ifndef FARFIELD_CHOICE_CHOSEN_H
#define FARFIELD_CHOICE_CHOSEN_H

#include <vector>

#include "choice/saved_state.h"
#include "evaluation/box_follower.h"
#include "evaluation/charge_set.h"
#include "evaluation/operators_in_use.h"

namespace farfield
{

//! So many times the request an error may be until it is measured again.
constexpr double c_untilMeasured = 1.05;

/*! \brief The one rule for a system on one process and for one on several ranks.
 *
 *  Ranks of a system have the same numbers of it, and so come to the same answers. */
template<class Real>
class Chosen
{
public:
    //! \param[in] device  that has the operators
    Chosen(const Options& options, Device device, OperatorsInUse<Real>* operators) :
        options_(options), device_(device), operators_(operators)
    {
    }
    OperatorsInUse<Real>* operators() const { return operators_; }
    const ChosenFor& chosenFor() const { return chosenFor_; }
    //! What the model says of the error of the operators in water.
    double predictedError() const;
    //! The operators in use, and what they were chosen for.
    Setting inUse() const { return { operators_->discretisation(), chosenFor_ }; }

    //! \name Only in the work of change()
    //!@{
    //! \throws Error  OutOfMemory: the operators do not fit
    void build(const Setting& setting);
    //! Notes the error of the operators. \param[in] measured  0: it is not known
    void setError(double measured, double systemFactor, bool isBestEffort = false);
    //! Notes how far apart particles without images were then, nm.
    void setMeasuredExtent(const Vec3& extent) { chosenFor_.measuredExtent = extent; }
    //! Notes their ChargeSet::spread(), and AccuracyControl::typicalForce().
    void setMeasuredFor(double spread, double typicalForce)
    {
        chosenFor_.measuredSpread = spread;
        chosenFor_.typicalForce   = typicalForce;
    }
    //! Notes how strong the fields at charges were then.
    void setMeasuredField(const MeasuredField& field);
    //!@}
    //! Does what builds operators or measures their error; if it fails, all is as before.
    template<class Work>
    void change(const Work& work)
    {
        const ChosenFor before = chosenFor_;
        try
        {
            operators_->change(work);
        }
        catch (...)
        {
            chosenFor_ = before;
            throw;
        }
    }

    /*! \brief Makes the operators those of a box. Then mustMeasure() may be true.
     *  \param[in] chooseCells  chooses cells for the box and builds their operators */
    template<class ChooseCells>
    void followBox(const Mat3& box, const ChooseCells& chooseCells)
    {
        const BoxPlan plan = planFor(box);
        switch (plan.change)
        {
            case BoxChange::None:
                operators_->rebuild();
                break;
            case BoxChange::Strained:
                operators_->rebuild();
                operators_->change([&] { operators_->setBox(plan.frame); });
                break;
            case BoxChange::SameCellsAnew:
                if (!buildSameCells(box))
                {
                    chooseCells();
                }
                break;
            case BoxChange::CellsAnew:
                chooseCells();
                break;
        }
    }

    /*! \brief Whether the error may be another one than that which was measured.
     *
     *  Operators for the same cells in another box have the error that was measured only if their
     *  shape has much the same. */
    bool mustMeasure() const;

    //! Whether there are operators, and they were chosen for such particles.
    bool isFor(const ParticleNumbers& now) const;
    //! They have been chosen for these.
    void set(const ParticleNumbers& numbers);

    /*! \brief Whether the fields of the last evaluation are about as strong as when the error was
     *         measured, and not so weak that it may not suffice: see fieldRatio().
     *  \param[in] cappedFields  Backend::cappedFields(), of all ranks
     *  \param[in] least         see leastForce() */
    bool areFieldsAsMeasured(double cappedFields, const ChargeSums& charges, double least) const;

    //! Adds what was chosen and measured to what Evaluator::setup() says.
    Setup setup(const Setup& ofEvaluator) const;
    /*! \brief As Solver::state(); empty where nothing was chosen.
     *  \param[in] cellBound, allTakePart  see SavedState */
    std::vector<double> state(double cellBound = 0, bool allTakePart = false) const;
    //! A state that state() has given. \throws Error  as Solver::restore()
    SavedState checked(const std::vector<double>& state) const;
    //! Builds the operators of a state. \throws Error  OutOfMemory
    void restore(const SavedState& state);

private:
    //! What a box needs.
    BoxPlan planFor(const Mat3& box) const;
    //! Builds operators for the same cells in another box. \returns whether they fit
    bool buildSameCells(const Mat3& box);

    Options options_;
    Device device_;
    OperatorsInUse<Real>* operators_;
    ChosenFor chosenFor_;
    Device decidedBy_ = Device::Auto; //!< whose costs decided; Auto: nothing has been chosen
    ParticleNumbers numbers_;
};

} // namespace farfield

#endif
