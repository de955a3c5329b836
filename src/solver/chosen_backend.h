/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The backend that options ask for.
 */
#ifndef FARFIELD_SOLVER_CHOSEN_BACKEND_H
#define FARFIELD_SOLVER_CHOSEN_BACKEND_H

#include <memory>
#include <utility>

#include "backend/gpu_backend.h"
#include "solver/input_check.h"

namespace farfield
{

//! A backend; gpu is the same, if it is one of a GPU, else null.
template<class Real>
struct ChosenBackend
{
    std::unique_ptr<Backend<Real>> backend;
    GpuBackend<Real>* gpu = nullptr;

    //! \param[in] ranks  of a system on several ranks, or null
    ChosenBackend(const Options& options, int threads, const DeviceRanks<Real>* ranks = nullptr)
    {
        checkOptions<Real>(options);
        const bool mayUseGpu = options.device == Device::Auto && gpuIsUsable(options.deviceId);
        if (options.device == Device::Gpu || mayUseGpu)
        {
            auto onGpu = makeGpuBackend<Real>(options.coulombConstant,
                                              threads,
                                              options.reproducible,
                                              options.deviceId,
                                              ranks);
            gpu        = onGpu.get();
            backend    = std::move(onGpu);
        }
        else
        {
            checkEngine(options.m2l, Device::Cpu);
            backend = makeCpuBackend<Real>(options.coulombConstant,
                                           threads,
                                           ranks != nullptr ? ranks->partition : nullptr);
        }
    }
};

} // namespace farfield

#endif
