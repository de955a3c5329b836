/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a device does for a Batch. The CPU and CUDA implement it.
 */
#ifndef FARFIELD_BATCH_BATCH_BACKEND_H
#define FARFIELD_BATCH_BATCH_BACKEND_H

#include <initializer_list>
#include <memory>

#include "farfield/farfield_batch.h"

#include "batch/system_plan.h"

namespace farfield
{

/*! \brief The systems of a call, on a device.
 *
 *  take() begins a call, give() ends it. In between only what is computed counts of an output: whether
 *  its arrays are null. */
template<class Real>
class BatchBackend
{
public:
    virtual ~BatchBackend() = default;
    //! Arrays that results of a call are copied to, each may be null.
    using Results = std::initializer_list<const void*>;
    /*! \brief Takes systems.
     *  \param[in] results     all that give() gets
     *  \param[in] potentials  whether they are computed
     *  \param[in] stream      see Batch::evaluate()
     *  \throws Error  InvalidArgument: what the systems have makes no sense; the text names the system;
     *                 errors of earlier calls */
    virtual void
    take(const BatchInput<Real>& input, Results results, bool potentials, void* stream) = 0;
    /*! \brief Evaluates all systems.
     *  \param[in] tightening  see BatchSetup
     *  \returns the largest error that was measured, of this call or of earlier ones with this tightening
     *           that have not waited, relative to what Options::accuracy says
     *  \throws Error  InvalidArgument: charges are at one place, or sums are too long; as take() */
    virtual double evaluate(bool virials, double tightening, const MeasuredSystems& measured) = 0;
    //! Derivatives along a direction. \param[in] errors  see Batch::evaluateTangent()
    virtual void evaluateTangent(const BatchDirection<Real>& direction,
                                 const double* errors,
                                 bool virials) = 0;
    //! Copies what was computed to the caller.
    virtual void give(const BatchOutput<Real>& output)   = 0;
    virtual void give(const BatchTangent<Real>& tangent) = 0;
    //! Waits for all calls. \throws Error  errors of those that have not waited
    virtual void finish() = 0;
    //! OpenMP threads.
    virtual int threads() const = 0;
    //! CUDA device; -1 on CPUs.
    virtual int deviceId() const = 0;
};

//! \param[in] options  that are legal
template<class Real>
std::unique_ptr<BatchBackend<Real>> makeCpuBatch(const BatchOptions& options);

/*! \brief The CUDA backend; in a build without CUDA, gpu_batch_absent.cpp stands in for it.
 *  \throws Error  NotCompiled: built without CUDA; DeviceFailure: no usable GPU */
template<class Real>
std::unique_ptr<BatchBackend<Real>> makeGpuBatch(const BatchOptions& options);

} // namespace farfield

#endif
