/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What farfield_cuda.h offers, without types of CUDA.
 */
#ifndef FARFIELD_BACKEND_DEVICE_ENTRY_H
#define FARFIELD_BACKEND_DEVICE_ENTRY_H

#include "farfield/farfield.h"

namespace farfield
{

//! See the functions of farfield_cuda.h; stream is a cudaStream_t.
template<class Real>
struct DeviceEntry
{
    static void enqueue(Solver<Real>& solver,
                        const Real* x,
                        const double box[3][3],
                        Real* forces,
                        const Request& request,
                        void* stream,
                        Real* potentials);
    static Totals wait(Solver<Real>& solver);
    static void evaluateAt(Solver<Real>& solver,
                           const Real* x,
                           const double box[3][3],
                           const Real* at,
                           int points,
                           Real* potentials,
                           Real* fields,
                           const Request& request,
                           void* stream);
    static bool mustRecordAgain(const Solver<Real>& solver);
    static bool mayUpdateGraphs(const Solver<Real>& solver);
    static std::vector<StageTime> measureStages(Solver<Real>& solver,
                                                const Real* x,
                                                const double box[3][3],
                                                Real* forces,
                                                const Request& request,
                                                int repeats);
};

} // namespace farfield

#endif
