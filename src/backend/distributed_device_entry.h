/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What farfield_cuda.h offers for systems on several ranks, without types of CUDA.
 */
#ifndef FARFIELD_BACKEND_DISTRIBUTED_DEVICE_ENTRY_H
#define FARFIELD_BACKEND_DISTRIBUTED_DEVICE_ENTRY_H

#include "farfield/farfield_parallel.h"

namespace farfield
{

//! See the functions of farfield_cuda.h; stream is a cudaStream_t.
template<class Real>
struct DistributedDeviceEntry
{
    static void enqueue(DistributedSolver<Real>& solver,
                        const Real* x,
                        const double box[3][3],
                        Real* forces,
                        const Request& request,
                        void* stream);
    static Totals wait(DistributedSolver<Real>& solver);
    static bool mustRecordAgain(const DistributedSolver<Real>& solver);
    static bool mayUpdateGraphs(const DistributedSolver<Real>& solver);
};

} // namespace farfield

#endif
