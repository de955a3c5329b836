/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/evaluator.h"

#include <string>
#include <utility>

#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

/*! \brief The helpers that options ask for; none that will not be used.
 *  \param[out] lost  as Setup::helpersLost */
HelpersWanted helpersFor(const Options& options, Device device, bool onRanks, std::string* lost)
{
    try
    {
        checkHelpers(options.helperDevices, device, onRanks);
    }
    catch (const Error& error)
    {
        if (!options.helpersIfFaster || error.code() == ErrorCode::InvalidArgument)
        {
            throw;
        }
        *lost = error.what();
        return {};
    }
    if (options.helpersIfFaster && !options.tune)
    {
        return {};
    }
    return { options.helperDevices, options.helpersIfFaster };
}

/*! \brief The backend that options ask for.
 *  \param[out] gpu   set to it, if it is one of a GPU
 *  \param[out] lost  as Setup::helpersLost */
template<class Real>
std::unique_ptr<Backend<Real>> makeBackend(const Options& options,
                                           int threads,
                                           const DeviceRanks<Real>* ranks,
                                           GpuBackend<Real>** gpu,
                                           std::string* lost)
{
    checkOptions<Real>(options);
    const bool mayUseGpu = options.device == Device::Auto && gpuIsUsable(options.deviceId);
    if (options.device == Device::Gpu || mayUseGpu)
    {
        auto onGpu = makeGpuBackend<Real>(options.coulombConstant,
                                          threads,
                                          options.reproducible,
                                          options.deviceId,
                                          ranks,
                                          helpersFor(options, Device::Gpu, ranks != nullptr, lost));
        *gpu       = onGpu.get();
        return onGpu;
    }
    checkEngine(options.m2l, Device::Cpu);
    helpersFor(options, Device::Cpu, ranks != nullptr, lost);
    return makeCpuBackend<Real>(
            options.coulombConstant, threads, ranks != nullptr ? ranks->partition : nullptr);
}

} // namespace

template<class Real>
Evaluator<Real>::Evaluator(const Options& options, const DeviceRanks<Real>* ranks) :
    threads_(options.threads > 0 ? options.threads : usableThreads()),
    backend_(makeBackend(options, threads_, ranks, &gpu_, &helpersLost_)),
    operators_(backend_.get()), pipeline_(backend_.get(), gpu_, &operators_, &times_)
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
    if (!helpersLost_.empty())
    {
        s.helpersLost = helpersLost_;
    }
    return s;
}

template class Evaluator<float>;
template class Evaluator<double>;

} // namespace farfield
