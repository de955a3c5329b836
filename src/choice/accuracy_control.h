/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The choice of operators that meet the accuracy, by measured errors.
 *
 *  The error model of estimatedError() is that of water. What it predicts is compared with what is
 *  measured, see force_spread.h, and the ratio of the two, a property of the system, goes into the
 *  next choice.
 */
#ifndef FARFIELD_CHOICE_ACCURACY_CONTROL_H
#define FARFIELD_CHOICE_ACCURACY_CONTROL_H

#include <array>
#include <optional>
#include <vector>

#include "choice/chosen.h"
#include "choice/error_measurement.h"
#include "evaluation/charge_set.h"
#include "evaluation/pipeline.h"
#include "plan/occupancy.h"
#include "plan/open_box.h"

namespace farfield
{

//! What is done where nothing meets the accuracy.
enum class WhereMissed
{
    Refuse,  //!< a run has not begun
    TakeBest //!< a run must go on
};

//! Chooses and builds operators, and measures their error.
template<class Real>
class AccuracyControl
{
public:
    /*! \param[in] device  whose costs decide */
    AccuracyControl(const Options& options,
                    Device device,
                    const ChargeSet<Real>* charges,
                    Chosen<Real>* chosen,
                    Pipeline<Real>* pipeline) :
        options_(options),
        device_(device), charges_(charges), operators_(chosen->operators()), chosen_(chosen),
        errors_(options, device, charges, chosen->operators(), pipeline)
    {
        network_.helpers = options.helpersIfFaster ? 0 : options.helperDevices.size();
    }

    /*! \brief Errors count where there are no charges, too, as they do where particles without a
     *         charge take part.
     *
     *  What is measured, which is forces on charges, may then ask for more than the estimate of
     *  water, but not for less: all charges may be near each other. */
    void countAllPlaces() { countsAllPlaces_ = true; }
    //! What is chosen is for several ranks; errors are measured on this one.
    void setNetwork(const Network& network) { network_ = network; }
    const Network& network() const { return network_; }
    //! What is chosen is for a GPU with so many helpers.
    void setHelpers(int helpers) { network_.helpers = helpers; }
    /*! \brief Errors are relative to no less than this, kJ/mol/nm: particles that are a part of a
     *         system, whose forces are added to those of the whole. */
    void setLeastForce(double force) { errors_.setLeastForce(force); }

    /*! \brief Chooses and builds operators that meet the accuracy, in these very positions.
     *
     *  All that are tried take no longer to set up than one choice may, see
     *  chooseDiscretisation(). What takes longer is not tried.
     *  \param[in] periodicBox  only its vectors along periodic axes have a meaning
     *  \param[in] x  [n][3], nm, host memory
     *  \param[in] extent  that cells have to hold, nm, see extentInBox(); without images
     *  Where all that is missing is what single precision cannot resolve, or the best is to be taken,
     *  ChosenFor::isBestEffort says so.
     *  \throws Error  InvalidArgument: the accuracy cannot be met; the best that can is named */
    void buildSufficient(const Mat3& periodicBox,
                         const Real* x,
                         const Vec3& extent,
                         WhereMissed whereMissed = WhereMissed::Refuse);

    /*! \brief More of the cells in use, for particles that have spread; nothing if others would do
     *         much better, or if they cannot be had.
     *
     *  Errors hardly depend on how many cells there are, so none are measured.
     *  \param[in] box     that the operators in use are for, without images along some axes
     *  \param[in] growth  of it */
    std::optional<Setting> moreCells(const Mat3& box, const Real* x, const Growth& growth) const;

    /*! \brief Whether the operators in use still do for particles that have spread; notes their error.
     *  \param[in] x, box  that the operators are for */
    bool stillSuffices(const Real* x, const Mat3& box);

    /*! \brief As stillSuffices(), and whether the operators do no more than they have to, either:
     *         others may be cheaper. */
    bool stillSuits(const Real* x, const Mat3& box);
    //! As ErrorMeasurement.
    double leastForce(const Mat3& box) const { return errors_.leastForce(box); }
    double typicalForce() const { return errors_.typicalForce(chosen_->chosenFor().field); }

    /*! \brief What a choice of cells for a box depends on, but for the occupancy and the ranks.
     *  \param[in] options  the accuracy in terms of water */
    PlanTask taskOf(const Options& options, const Mat3& box, const Vec3& extent) const;
    /*! \brief Edge of the largest cell, nm, in which rounding leaves the accuracy.
     *
     *  Positions are relative to the centre of a cell: half a unit in the last place of half an
     *  edge, at both ends of a distance of 0.15 nm, may cost half of the accuracy. */
    double largestCell() const;
    //! Edge of cells, nm, beyond which rounding was found to be too much for the request; 0: none.
    double cellBound() const { return cellBound_; }
    void setCellBound(double bound) { cellBound_ = bound; }

private:
    //! Whether errors count where there are no charges.
    bool allPlacesCount() const { return countsAllPlaces_ || charges_->hasIdle(); }
    class Search;
    //! What came of the next attempt of a search.
    enum class Attempt
    {
        Built,
        AsBefore, //!< its setting is the one before
        None      //!< there is no other
    };
    //! Builds the setting that a search asks for next.
    Attempt buildNext(const Mat3& box, const Vec3& extent, Search* search);
    //! Says what the next attempt asks for. \returns whether there is none
    bool judge(const MeasuredError& measured, double predicted, Search* search);
    //! Takes the setting that comes closest. \throws Error  as buildSufficient()
    void takeClosest(WhereMissed whereMissed, Search* search) const;
    //! How far off the operators in use are, in terms of the request.
    MeasuredError measureAnew(const Real* x, const Mat3& box);
    /*! \brief The box that suits particles without images.
     *  \param[in] options  the accuracy in terms of water
     *  \param[in] extent   see extentInBox() */
    Mat3 openBoxFor(const Options& options,
                    const Real* x,
                    const Mat3& periodicBox,
                    const Vec3& extent) const;
    //! The choice for a box. \param[in] options  the accuracy in terms of water
    Discretisation choice(const Options& options,
                          const Mat3& box,
                          const Occupancy& occupied,
                          const Vec3& extent) const;
    /*! \brief As ErrorMeasurement::measure(), noted with the operators, which may leave out more
     *         excluded pairs for it.
     *  \param[in] predicted  error in water */
    MeasuredError measureAndNote(const Real* x, const Mat3& box, double predicted);
    /*! \brief What subtracting excluded pairs may add to the error once they have moved, relative
     *         to the same as the accuracy.
     *
     *  The near field has a pair from positions that are rounded in their cells, and its
     *  subtraction from exact ones. Pairs may come as near as those that are left out instead, or
     *  by a fifth nearer than they are, or than a bond where they are farther apart: molecules that
     *  begin with scattered atoms settle.
     *  \param[in] unit  what errors are relative to, kJ/mol/nm */
    double roundingOfExclusions(const Real* x, const Mat3& box, double unit) const;
    //! Leaves excluded pairs at any distance out of the near field if that does no harm.
    MeasuredError leaveOutAllExclusions(const Real* x,
                                        const Mat3& box,
                                        const MeasuredError& measured,
                                        double allowed);
    //! That nothing meets the accuracy. \param[in] best  error that was met
    [[noreturn]] void refuse(double best) const;

    Options options_;
    Device device_;
    const ChargeSet<Real>* charges_;
    OperatorsInUse<Real>* operators_;
    Chosen<Real>* chosen_;
    ErrorMeasurement<Real> errors_;
    bool countsAllPlaces_ = false;
    Network network_;      //!< of the ranks for which the choice is made
    double cellBound_ = 0; //!< see cellBound()
};

} // namespace farfield

#endif
