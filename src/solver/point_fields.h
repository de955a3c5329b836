/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials and fields at points that are no particles.
 */
#ifndef FARFIELD_SOLVER_POINT_FIELDS_H
#define FARFIELD_SOLVER_POINT_FIELDS_H

#include <memory>

#include "solver/single_state.h"

namespace farfield
{

//! Points at which potentials and fields are computed.
template<class Real>
struct Points
{
    const Real* at; //!< nm, [count][3]
    int count;
    Real* potentials; //!< kJ/mol/e, [count], or null
    Real* fields;     //!< kJ/mol/nm/e, [count][3], or null
};

/*! \brief The charged particles and the points among them.
 *
 *  A point is a particle whose charge is too small to matter, c_idleCharge: so it has a place in the
 *  cells, in all of which a tree has expansions. It costs what a particle does. */
template<class Real>
class PointFields
{
public:
    //! \param[in] options  of the solver whose charges they are
    explicit PointFields(const Options& options);

    //! The charges or the exclusions are others.
    void forget() { points_ = c_stale; }
    /*! \brief As Solver::evaluateAt(), on host arrays.
     *  \param[in] charges  with at least one that is charged
     *  \param[in] task     positions, box and request
     *  \param[in] points   more than none */
    void evaluate(const ChargeSet<Real>& charges,
                  const Task<Real>& task,
                  const Points<Real>& points);
    /*! \brief The same with arrays in device memory, in order with the stream of the task.
     *
     *  Without charges or points, too. What is computed is complete in the stream. */
    void evaluateOnDevice(const ChargeSet<Real>& charges,
                          const GpuBackend<Real>& gpu,
                          const Task<Real>& task,
                          const Points<Real>& points);

private:
    static constexpr int c_stale = -1;

    void setUp(const ChargeSet<Real>& charges, int points);
    //! What is asked for of all.
    static Request ofAll(const Request& request);

    Options options_;
    std::unique_ptr<SingleState<Real>> all_;         //!< particles, and points behind them
    std::unique_ptr<PointsOnDevice<Real>> onDevice_; //!< null until it is needed
    int points_ = c_stale;                           //!< that all_ has
};

} // namespace farfield

#endif
