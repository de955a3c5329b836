/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of the operators in use, measured in the system itself.
 */
#ifndef FARFIELD_CHOICE_ERROR_MEASUREMENT_H
#define FARFIELD_CHOICE_ERROR_MEASUREMENT_H

#include <utility>
#include <vector>

#include "choice/force_scale.h"
#include "choice/force_spread.h"
#include "evaluation/charge_set.h"
#include "evaluation/pipeline.h"
#include "plan/occupancy.h"

namespace farfield
{

//! What must be left for positions of the grid that were not measured.
constexpr double c_margin = 0.95;

//! Error of the forces, relative to what Options::accuracy says.
struct MeasuredError
{
    double usual = 0; //!< mean over positions of the grid
    double worst = 0; //!< of the position with the largest, and of those that were not measured
    double unit  = 0; //!< what they are relative to, kJ/mol/nm, see ForceScale
    double rms   = 0; //!< RMS of all forces, those of particles in contact too, kJ/mol/nm
    //! As worst, of what rounding of positions in their cells does not explain: charges in
    //! contact have no better force in this precision.
    double beyondRounding = 0;
    MeasuredField field;
};
/*! \brief Measures it by forces at several positions of the grid against each other, of few particles
 *         against exact ones. */
template<class Real>
class ErrorMeasurement
{
public:
    //! \param[in] device  whose costs decide how much is measured
    ErrorMeasurement(const Options& options,
                     Device device,
                     const ChargeSet<Real>* charges,
                     OperatorsInUse<Real>* operators,
                     Pipeline<Real>* pipeline) :
        options_(options),
        device_(device), charges_(charges), operators_(operators), pipeline_(pipeline)
    {
    }
    //! Errors are relative to no less than this, kJ/mol/nm, see AccuracyControl.
    void setLeastForce(double force) { leastForce_ = force; }
    //! Takes in what does not depend on operators: where particles are, and what their forces are.
    //! \param[in] extent  that cells have to hold, nm
    void look(const Real* x, const Mat3& box, const Vec3& extent);
    /*! \brief Error of the operators in use, from evaluations at several positions of the grid.
     *
     *  Particles that are close to each other now, compared with what room they have, show little of
     *  what expansions do, and their large forces hide the rest. So the worst error is also that of
     *  the same charges spread evenly: molecules dissociate, clusters expand.
     *  \param[in] x, box  that the operators are for */
    MeasuredError measure(const Real* x, const Mat3& box);

    //! What errors are relative to where forces cancel, kJ/mol/nm.
    double leastForce(const Mat3& box) const;
    //! The RMS force in a field, kJ/mol/nm, see MeasuredField.
    double typicalForce(const MeasuredField& field) const;

    //! Where the particles are that look() was given.
    const Occupancy& occupied() const { return occupied_; }
    //! Predicted time of an evaluation on this rank alone, ns.
    double costOf(const Discretisation& d, const Occupancy& occupied) const;

private:
    //! Places of the particles, and their exact forces, [n][3]; none if these take too long.
    struct Places
    {
        const Real* x; //!< [n][3], nm
        std::vector<double> exact;
        int mostPositions; //!< of the grid, where exact forces are known
    };
    //! Exact forces, [n][3]; none where these take too long.
    std::vector<double> exactForces(const Real* x, const Mat3& box) const;
    //! measure() of these places alone.
    MeasuredError measureAt(const Places& places, const Mat3& box);
    //! The error by forces at several positions of the grid. \returns it, and whether it depends much on them
    std::pair<MeasuredError, bool> errorOf(const ForceSpread<Real>& spread,
                                           const Places& places,
                                           const Mat3& box);
    //! A force between neighbours that fill a room evenly, kJ/mol/nm. \param[in] room  rows, nm
    double pairForce(const Mat3& room) const;
    //! How much larger forces are than those in the room that the particles have.
    double crowding(const MeasuredError& measured) const;
    //! Whether forces are sums over pairs of the positions as they are given, without a far field.
    bool isSumOfPairs() const;
    //! Whether hardly any particles are far from each other in terms of cells, nor from images.
    bool areAllNear(const Real* x, const Mat3& box) const;
    //! Forces at one position of the grid.
    std::vector<Real> forcesAt(const Real* x, const Request& position);
    /*! \brief Forces at several positions of the grid: a number that are spread evenly, and some
     *         that put a particle into the corner of its cell, where errors are largest, or that
     *         part a pair. */
    ForceSpread<Real>
    measureSpread(const Places& places, const Mat3& box, int positions, int corners);
    //! How many positions of the grid an error is taken from.
    int positionsToMeasure(const Places& places) const;
    //! What rounding of positions in their cells does to the force of each particle, kJ/mol/nm.
    //! \param[in] cell  edge of a leaf, nm
    std::vector<double> roundingOfPositions(const ForceSpread<Real>& spread, double cell) const;
    //! Squared errors that are the same at all positions of the grid, (kJ/mol/nm)^2.
    struct Bias
    {
        double ofAll = 0, ofOrdinary = 0;
    };
    //! In a box of few cells, by operators of a higher order; 0 where exact forces are known.
    //! \param[in] weights  see ForceScale
    Bias biasAt(const Places& places,
                const Mat3& box,
                const ForceSpread<Real>& spread,
                const std::vector<double>& weights);

    Options options_;
    Device device_;
    const ChargeSet<Real>* charges_;
    OperatorsInUse<Real>* operators_;
    Pipeline<Real>* pipeline_;
    double leastForce_ = 0;    //!< kJ/mol/nm, see setLeastForce()
    Mat3 room_ = Mat3::Zero(); //!< that particles may come to without another choice; rows, nm
    //! The particles: what the log tells is a mean, which rare positions may decide on.
    Places here_ = { nullptr, {}, 1200 };
    //! The same charges spread evenly, for the worst position alone; empty until they are needed.
    Places even_ = { nullptr, {}, 100 };
    std::vector<Real> evenPlaces_;
    Occupancy occupied_{ 0.0 }; //!< where the particles are
};

} // namespace farfield

#endif
