/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */

/*! \internal \file
 * \brief Implements what the farfield force provider has on a CUDA device.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldondevice.h"

#include "config.h"

#include <cuda_runtime.h>

#include <cstdlib>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <farfield/farfield_cuda.h>
#if GMX_FARFIELD_NCCL
#    include <farfield/farfield_nccl.h>
#endif

#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/gpueventsynchronizer.h"
#include "gromacs/gpu_utils/hostallocator.h"
#include "gromacs/mdlib/gpuforcereduction.h"
#include "gromacs/mdtypes/state_propagator_data_gpu.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/gmxmpi.h"
#include "gromacs/utility/mpiinfo.h"

#include "farfielddispersion.h"
#include "farfieldranks.h"
#include "farfieldrun.h"

#if GMX_LIB_MPI
#    include <farfield/farfield_cuda_mpi.h>
#endif

namespace gmx
{

namespace
{

static_assert(std::is_same_v<real, float> && sizeof(RVec) == 3 * sizeof(real),
              "The arrays of GROMACS on the device are those of the library");

//! Evaluations per stage time
constexpr int c_numMeasurements = 20;

//! Throws if a call of CUDA failed.
void check(const cudaError_t status, const char* what)
{
    if (status != cudaSuccess)
    {
        throw farfield::Error(farfield::ErrorCode::DeviceFailure,
                              std::string("CUDA reports '") + cudaGetErrorString(status)
                                      + "' while " + what + ".");
    }
}

} // namespace

std::unique_ptr<farfield::DeviceCommunicator> makeDeviceCommunicator(farfield::Communicator* host,
                                                                     const int deviceId,
                                                                     FarfieldDeviceMessages* messages)
{
    if (deviceId >= 0)
    {
        check(cudaSetDevice(deviceId), "choosing the GPU");
    }
    // The way out that GROMACS has where GPUs reach each other, but what they write gets lost
    const bool mayBeDirect =
            farfield::isTrueOnAll(host, std::getenv("GMX_DISABLE_DIRECT_GPU_COMM") == nullptr);
    if (mayBeDirect)
    {
        if (auto peers = farfield::makePeerCommunicator(host))
        {
            *messages = { "by writing into each other's memory", true };
            return peers;
        }
    }
    std::string whyNotNccl = "GROMACS was built without NCCL";
#if GMX_FARFIELD_NCCL
    if (farfield::NcclCommunicator::haveOwnGpus(host))
    {
        *messages = { "by NCCL" };
        return std::make_unique<farfield::NcclCommunicator>(host);
    }
    whyNotNccl = "NCCL needs a GPU of its own for every rank";
#endif
#if GMX_LIB_MPI
    const GpuAwareMpiStatus ofMpi = checkMpiCudaAwareSupport();
    const bool isAware = ofMpi == GpuAwareMpiStatus::Supported || ofMpi == GpuAwareMpiStatus::Forced;
    if (farfield::isTrueOnAll(host, isAware && mayBeDirect))
    {
        *messages = { "by GPU-aware MPI: " + whyNotNccl };
        // With a library MPI the communicator is of this type, see makeCommunicator()
        return std::make_unique<farfield::GpuAwareMpiCommunicator>(
                &dynamic_cast<farfield::MpiCommunicator&>(*host));
    }
#endif
    *messages = { "through the host: " + whyNotNccl };
    return nullptr;
}

class FarfieldOnDevice::Impl
{
public:
    Impl(FarfieldRanks* ranks, const DeviceContext& deviceContext) :
        ranks_(*ranks), stream_(deviceContext, DeviceStreamPriority::High, false)
    {
        changePinningPolicy(&forcesOnHost_, PinningPolicy::PinnedIfSupported);
    }
    ~Impl()
    {
        // Errors have been reported by earlier calls
        (void)cudaStreamSynchronize(stream_.stream());
        (void)cudaFree(forces_);
    }

    //! Number of bytes of the coordinates, and of the forces
    size_t size() const { return numAtoms_ * sizeof(RVec); }

    farfield::CoulombSolver<real>& solver() const { return ranks_.solver(); }

    //! Puts dispersion beside the stream, and returns the energy and the virial of a step that computes them
    farfield::Totals enqueueDispersion(const double box[DIM][DIM], const farfield::KernelRequest& request)
    {
        return farfield::enqueue(
                dispersion_->sum(), x_, dispersion_->isPeriodic() ? box : nullptr, request, stream_.stream());
    }
    //! The same at a step
    void launchDispersion(const double box[DIM][DIM], const farfield::Request& request, int64_t step);
    //! Says what was chosen
    void logDispersion();

    FarfieldRanks& ranks_;
    //! The forces are what a step waits for: FMM goes before non-bonded interactions
    DeviceStream stream_;
    //! Marked when the forces are complete and are to be reduced on the device
    GpuEventSynchronizer forcesReady_;

    //! Whether the coordinates may be anywhere: after a search they may be those of a replica
    bool mayHaveJumped_ = true;
    //! Whether a step that GROMACS has given its graphs up for was launched, not replayed
    bool ranUnrecorded_ = false;

    //! Set when dispersion is computed, too
    FarfieldDispersion* dispersion_ = nullptr;
    farfield::Totals    dispersionTotals_;
    //! The step of its last launch, -1 for none
    int64_t dispersionStep_ = -1;

    int numAtoms_ = 0;
    //! Coordinates, owned by StatePropagatorDataGpu
    const real* x_ = nullptr;
    //! Number of atoms that forces_ has room for
    int              capacity_ = 0;
    real*            forces_   = nullptr;
    HostVector<RVec> forcesOnHost_;
};

FarfieldOnDevice::FarfieldOnDevice(FarfieldRanks* ranks, const DeviceContext& deviceContext) :
    impl_(std::make_unique<Impl>(ranks, deviceContext))
{
}

FarfieldOnDevice::~FarfieldOnDevice() = default;

bool FarfieldOnDevice::isCompiled()
{
    return true;
}

void FarfieldOnDevice::addDispersion(FarfieldDispersion* dispersion)
{
    impl_->dispersion_ = dispersion;
}

void FarfieldOnDevice::Impl::launchDispersion(const double             box[DIM][DIM],
                                              const farfield::Request& request,
                                              const int64_t            step)
{
    farfield::KernelRequest own;
    own.energy = request.energy;
    own.virial = request.virial;
    // Replays of graphs are not told of
    constexpr int64_t c_most = 1 << 20;
    const int64_t     passed = step - std::exchange(dispersionStep_, step);
    own.evaluations          = static_cast<int>(std::clamp<int64_t>(passed, 1, c_most));
    try
    {
        dispersionTotals_ = enqueueDispersion(box, own);
        if (dispersion_->hasNewSetup())
        {
            logDispersion();
        }
    }
    catch (const farfield::Error& error)
    {
        dispersion_->rethrow(error, step);
    }
}

void FarfieldOnDevice::Impl::logDispersion()
{
    std::vector<RVec> forces(numAtoms_);
    void*             memory = nullptr;
    check(cudaMalloc(&memory, size()), "allocating memory for forces");
    check(cudaMemsetAsync(memory, 0, size(), stream_.stream()), "clearing forces");
    farfield::addForces(dispersion_->sum(), static_cast<real*>(memory), stream_.stream());
    check(cudaMemcpyAsync(forces.data(), memory, size(), cudaMemcpyDeviceToHost, stream_.stream()),
          "copying forces");
    check(cudaStreamSynchronize(stream_.stream()), "waiting for FMM");
    check(cudaFree(memory), "freeing memory");
    dispersion_->logSetup(forces);
}

void FarfieldOnDevice::reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction)
{
    impl_->numAtoms_ = stateGpu->numAtomsLocal();
    impl_->x_        = reinterpret_cast<const real*>(stateGpu->getCoordinates());
    if (impl_->numAtoms_ > impl_->capacity_ || impl_->forces_ == nullptr)
    {
        check(cudaStreamSynchronize(impl_->stream_.stream()), "waiting for FMM");
        check(cudaFree(impl_->forces_), "freeing memory");
        impl_->forces_   = nullptr;
        impl_->capacity_ = 0;
        void* memory     = nullptr;
        // A domain may be empty
        check(cudaMalloc(&memory, std::max(impl_->size(), sizeof(RVec))),
              "allocating memory for forces");
        impl_->forces_   = static_cast<real*>(memory);
        impl_->capacity_ = impl_->numAtoms_;
        // A library that computes nothing, to measure the rest of a step, leaves them so
        check(cudaMemsetAsync(memory, 0, impl_->size(), impl_->stream_.stream()), "clearing forces");
    }
    impl_->forcesOnHost_.resize(impl_->numAtoms_);
    impl_->mayHaveJumped_ = true;
    if (impl_->dispersion_ != nullptr)
    {
        check(cudaStreamSynchronize(impl_->stream_.stream()), "waiting for FMM");
        farfield::setSites(impl_->dispersion_->sum(), impl_->dispersion_->sites());
    }
    forceReduction->registerRvecForce(reinterpret_cast<RVec*>(impl_->forces_));
    forceReduction->addDependency(&impl_->forcesReady_);
}

void FarfieldOnDevice::launch(const double             box[DIM][DIM],
                              const farfield::Request& request,
                              const int64_t            step,
                              const bool               forcesToHost,
                              GpuEventSynchronizer*    xReadyOnDevice)
{
    const cudaStream_t stream = impl_->stream_.stream();
    // Coordinates are complete only after the previous forces were used
    xReadyOnDevice->enqueueWaitEvent(impl_->stream_);
    farfield::Request complete = request;
    complete.replaceForces     = true;
    complete.mayHaveJumped     = std::exchange(impl_->mayHaveJumped_, false);
    // After a search GROMACS has no graphs, and none if mustBeRecordedAgain() said so
    const bool hasNoGraphs = complete.mayHaveJumped || farfield::mustRecordAgain(impl_->solver());
    if (impl_->dispersion_ != nullptr)
    {
        // It runs beside the rest
        impl_->launchDispersion(box, request, step);
    }
    farfield::enqueue(impl_->solver(), impl_->x_, box, impl_->forces_, complete, stream);
    if (impl_->dispersion_ != nullptr)
    {
        farfield::addForces(impl_->dispersion_->sum(), impl_->forces_, stream);
    }
    // What this step has made room for can be recorded at the next
    impl_->ranUnrecorded_ = hasNoGraphs && farfield::mustRecordAgain(impl_->solver());
    if (forcesToHost)
    {
        check(cudaMemcpyAsync(
                      impl_->forcesOnHost_.data(), impl_->forces_, impl_->size(), cudaMemcpyDeviceToHost, stream),
              "copying forces");
    }
    else
    {
        impl_->forcesReady_.markEvent(impl_->stream_);
    }
}

bool FarfieldOnDevice::mustBeRecordedAgain() const
{
    const bool isOfDispersion =
            impl_->dispersion_ != nullptr && farfield::mustRecordAgain(impl_->dispersion_->sum());
    return isOfDispersion || (farfield::mustRecordAgain(impl_->solver()) && !impl_->ranUnrecorded_);
}

bool FarfieldOnDevice::recordingsMayBeUpdated() const
{
    return farfield::mayUpdateGraphs(impl_->solver());
}

const farfield::Totals& FarfieldOnDevice::dispersionTotals() const
{
    return impl_->dispersionTotals_;
}

farfield::Totals FarfieldOnDevice::wait()
{
    const farfield::Totals totals = farfield::wait(impl_->solver());
    check(cudaStreamSynchronize(impl_->stream_.stream()), "waiting for FMM");
    return totals;
}

ArrayRef<const RVec> FarfieldOnDevice::forces() const
{
    return impl_->forcesOnHost_;
}

std::vector<RVec> FarfieldOnDevice::coordinates() const
{
    std::vector<RVec> x(impl_->numAtoms_);
    check(cudaMemcpy(x.data(), impl_->x_, impl_->size(), cudaMemcpyDeviceToHost),
          "copying coordinates");
    return x;
}

std::vector<farfield::StageTime> FarfieldOnDevice::measureStages(const double box[DIM][DIM], const real lambda)
{
    check(cudaDeviceSynchronize(), "waiting for the last step");
    farfield::Request request;
    request.energy        = false;
    request.virial        = false;
    request.replaceForces = true;
    request.lambda        = lambda;
    return farfield::measureStages(
            *impl_->ranks_.solverOfOneRank(), impl_->x_, box, impl_->forces_, request, c_numMeasurements);
}

} // namespace gmx
