/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What every solver has: a backend, the operators that it has, and evaluations with them.
 */
#ifndef FARFIELD_EVALUATION_EVALUATOR_H
#define FARFIELD_EVALUATION_EVALUATOR_H

#include <memory>
#include <string>
#include <vector>

#include "backend/gpu_backend.h"
#include "evaluation/pipeline.h"

namespace farfield
{

/*! \brief Evaluates on the device that the options ask for, with the operators in use.
 *
 *  Who chooses the operators, and for which particles, is decided elsewhere. */
template<class Real>
class Evaluator
{
public:
    /*! \param[in] options  are checked
     *  \param[in] ranks    of a system on several ranks, or null
     *  \throws Error  as Solver */
    explicit Evaluator(const Options& options, const DeviceRanks<Real>* ranks = nullptr);
    Evaluator(const Evaluator&)            = delete;
    Evaluator& operator=(const Evaluator&) = delete;

    Backend<Real>& backend() { return *backend_; }
    //! The backend, if it is one of a GPU, else null.
    GpuBackend<Real>* gpu() const { return gpu_; }
    //! The backend of arrays in device memory. \throws Error  Unsupported: it is not one of a GPU
    GpuBackend<Real>& onDevice() const;
    Device device() const { return gpu_ != nullptr ? Device::Gpu : Device::Cpu; }
    int threads() const { return threads_; }
    //! The options with what they leave to the machine.
    Options optionsInUse(const Options& options) const;
    OperatorsInUse<Real>& operators() { return operators_; }
    const OperatorsInUse<Real>& operators() const { return operators_; }
    Pipeline<Real>& pipeline() { return pipeline_; }
    StageTimes& times() { return times_; }
    const StageTimes& times() const { return times_; }

    //! While it lives, the device is the current one of this thread.
    DeviceScope<Real> makeCurrent() const { return DeviceScope<Real>(gpu_); }
    //! Waits for what the caller has put into streams of his own.
    void settle();
    /*! \brief Gives a task other operators after it was evaluated, and evaluates it again.
     *  \param[in] task    on host arrays, whose results are replaced
     *  \param[in] n       number of particles
     *  \param[in] renew   returns whether it has made others
     *  \param[in] run     evaluates a task
     *  \param[in,out] totals  of the task */
    template<class Renew, class Run>
    void runAgain(const Task<Real>& task, int n, const Renew& renew, const Run& run, Totals* totals)
    {
        Task<Real> own            = task;
        own.request.replaceForces = true;
        std::vector<Real> added(3 * static_cast<size_t>(n)), better(added.size());
        if (!task.request.replaceForces)
        {
            own.forces = added.data();
            times_.notCounted([&] { run(own); });
        }
        if (!renew())
        {
            return;
        }
        own.forces = better.data();
        times_.evaluation(*backend_, [&] { *totals = run(own); });
        for (size_t k = 0; k < added.size(); k++)
        {
            task.forces[k] = task.request.replaceForces ? better[k]
                                                        : task.forces[k] + (better[k] - added[k]);
        }
    }
    //! What Setup says of device and operators.
    Setup setup() const;

private:
    int threads_;
    //!\name Set while backend_ is made
    //!@{
    GpuBackend<Real>* gpu_ = nullptr;
    std::string helpersLost_; //!< why there are none for the backend
    //!@}
    std::unique_ptr<Backend<Real>> backend_;
    StageTimes times_;
    OperatorsInUse<Real> operators_;
    Pipeline<Real> pipeline_;
};

} // namespace farfield

#endif
