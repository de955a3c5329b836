/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief An evaluation: the stages of the FMM, one after the other.
 */
#ifndef FARFIELD_EVALUATION_PIPELINE_H
#define FARFIELD_EVALUATION_PIPELINE_H

#include "backend/gpu_backend.h"
#include "evaluation/operators_in_use.h"
#include "evaluation/stage_times.h"

namespace farfield
{

//! Runs the stages of a backend with the operators in use, and times them.
template<class Real>
class Pipeline
{
public:
    //! \param[in] gpu  the backend, if it is one of a GPU, else null
    Pipeline(Backend<Real>* backend,
             GpuBackend<Real>* gpu,
             OperatorsInUse<Real>* operators,
             StageTimes* times) :
        backend_(backend),
        gpu_(gpu), operators_(operators), times_(times)
    {
    }
    //! Evaluates on host arrays, again where lists had too little room.
    Totals run(const Task<Real>& task);
    //! Evaluates on arrays in device memory, in order with the stream, without waiting.
    void enqueue(const Task<Real>& task);

private:
    Totals attempt(Task<Real> task);
    Totals runStages(const Task<Real>& task);

    Backend<Real>* backend_;
    GpuBackend<Real>* gpu_;
    OperatorsInUse<Real>* operators_;
    StageTimes* times_;
};

} // namespace farfield

#endif
