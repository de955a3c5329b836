/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the library asks of solvers of its own.
 */
#ifndef FARFIELD_SOLVER_SOLVER_ACCESS_H
#define FARFIELD_SOLVER_SOLVER_ACCESS_H

#include "farfield/farfield.h"

#include "plan/network.h"

namespace farfield
{

template<class Real>
struct SolverAccess
{
    //! Of particles without a charge no potentials are wanted, only of those with the idle charge of a
    //! probe, which may be anywhere: AccuracyControl::countAllPlaces(). Before anything is chosen.
    static void serveProbes(Solver<Real>& solver);
    //! As AccuracyControl::setNetwork(), before anything is chosen.
    static void setNetwork(Solver<Real>& solver, const Network& network);
    //! It chooses for a run that has begun, and refuses nothing.
    static void takeBest(Solver<Real>& solver);
    //! Measures the error anew, and chooses anew where it is not what it should be; as evaluate() does
    //! when forces have changed much.
    static void lookAtForces(Solver<Real>& solver, const Real* x, const double box[3][3]);
    //! As AccuracyControl::setLeastForce().
    static void setLeastForce(Solver<Real>& solver, double force);
};

} // namespace farfield

#endif
