/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/evaluator.h"

#include <utility>

#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

//! The backend that options ask for; if it is one of a GPU, gpu is set to it.
template<class Real>
std::unique_ptr<Backend<Real>> makeBackend(const Options& options,
                                           int threads,
                                           const DeviceRanks<Real>* ranks,
                                           GpuBackend<Real>** gpu)
{
    checkOptions<Real>(options);
    const bool mayUseGpu = options.device == Device::Auto && gpuIsUsable(options.deviceId);
    if (options.device == Device::Gpu || mayUseGpu)
    {
        checkHelpers(options.helperDevices, Device::Gpu, ranks != nullptr);
        auto onGpu = makeGpuBackend<Real>(options.coulombConstant,
                                          threads,
                                          options.reproducible,
                                          options.deviceId,
                                          ranks,
                                          { options.helperDevices, options.helpersIfFaster });
        *gpu       = onGpu.get();
        return onGpu;
    }
    checkEngine(options.m2l, Device::Cpu);
    if (!options.helpersIfFaster)
    {
        checkHelpers(options.helperDevices, Device::Cpu, ranks != nullptr);
    }
    return makeCpuBackend<Real>(
            options.coulombConstant, threads, ranks != nullptr ? ranks->partition : nullptr);
}

} // namespace

template<class Real>
Evaluator<Real>::Evaluator(const Options& options, const DeviceRanks<Real>* ranks) :
    threads_(options.threads > 0 ? options.threads : usableThreads()),
    backend_(makeBackend(options, threads_, ranks, &gpu_)), operators_(backend_.get()),
    pipeline_(backend_.get(), gpu_, &operators_, &times_)
{
}

template<class Real>
GpuBackend<Real>& Evaluator<Real>::onDevice() const
{
    checkOnGpu(gpu_ != nullptr);
    return *gpu_;
}

template<class Real>
Options Evaluator<Real>::optionsInUse(const Options& options) const
{
    Options own = options;
    own.device  = device();
    own.threads = threads_;
    return own;
}

template<class Real>
void Evaluator<Real>::settle()
{
    if (gpu_ != nullptr)
    {
        gpu_->settle();
    }
}

template<class Real>
Setup Evaluator<Real>::setup() const
{
    Setup s      = operators_.exist() ? operators_.setup() : Setup();
    s.device     = device();
    s.threads    = threads_;
    s.deviceName = gpu_ != nullptr ? gpu_->deviceName() : cpuTargetName();
    s.deviceId   = gpu_ != nullptr ? gpu_->deviceId() : -1;
    if (gpu_ != nullptr)
    {
        s.helpers     = gpu_->helpers();
        s.helpersLost = gpu_->helpersLost();
    }
    return s;
}

template class Evaluator<float>;
template class Evaluator<double>;

} // namespace farfield
