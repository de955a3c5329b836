/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials and fields at points that are no particles.
 */
#ifndef FARFIELD_SOLVER_POINT_FIELDS_H
#define FARFIELD_SOLVER_POINT_FIELDS_H

#include <memory>

#include "farfield/farfield.h"

#include "backend/gpu_backend.h"
#include "solver/charge_set.h"

namespace farfield
{

/*! \brief A solver of its own, of the charged particles and the points.
 *
 *  A point is a particle whose charge is too small to matter, c_idleCharge: so it has a place in the
 *  cells, in all of which a tree has expansions. It costs what a particle does. */
template<class Real>
class PointFields
{
public:
    //! \param[in] options  of the solver whose charges they are
    explicit PointFields(const Options& options);
    ~PointFields();

    //! The charges or the exclusions are others.
    void forget() { points_ = c_stale; }
    /*! \brief As Solver::evaluateAt(). \param[in] charges  with at least one that is charged
     *  \param[in] points  more than 0 */
    void evaluate(const ChargeSet<Real>& charges,
                  const Real* x,
                  const double box[3][3],
                  const Real* at,
                  int points,
                  const Request& request,
                  Real* potentials,
                  Real* fields);
    /*! \brief The same with arrays in device memory, in order with a stream.
     *
     *  Without charges or points, too.
     *  \param[in] stream  cudaStream_t; potentials and fields are complete in it */
    void evaluateOnDevice(const ChargeSet<Real>& charges,
                          const GpuBackend<Real>& gpu,
                          const Real* x,
                          const double box[3][3],
                          const Real* at,
                          int points,
                          const Request& request,
                          Real* potentials,
                          Real* fields,
                          void* stream);

private:
    static constexpr int c_stale = -1;

    void setUp(const ChargeSet<Real>& charges, int points);
    //! What the solver of all is asked for.
    static Request ofAll(const Request& request);

    Options options_;
    std::unique_ptr<Solver<Real>> solver_;
    std::unique_ptr<PointsOnDevice<Real>> onDevice_; //!< null until it is needed
    int points_ = c_stale;                           //!< that the solver has, behind the particles
};

} // namespace farfield

#endif
