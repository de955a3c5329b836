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
 * \brief Implements arrays of the FMM in the memory of CUDA devices.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldelsewhere.h"

#include <algorithm>
#include <string>

#include <farfield/farfield.h>

#include "gromacs/utility/vectypes.h"

namespace gmx
{

namespace
{

//! Another device is the current one while this lives.
class OnOtherDevice
{
public:
    explicit OnOtherDevice(const int device)
    {
        checkCuda(cudaGetDevice(&before_), "finding the GPU");
        checkCuda(cudaSetDevice(device), "choosing the GPU");
    }
    ~OnOtherDevice() { (void)cudaSetDevice(before_); }
    OnOtherDevice(const OnOtherDevice&)            = delete;
    OnOtherDevice& operator=(const OnOtherDevice&) = delete;

private:
    int before_ = 0;
};

} // namespace

void checkCuda(const cudaError_t status, const char* what)
{
    if (status != cudaSuccess)
    {
        throw farfield::Error(farfield::ErrorCode::DeviceFailure,
                              std::string("CUDA reports '") + cudaGetErrorString(status)
                                      + "' while " + what + ".");
    }
}

FarfieldVectors::FarfieldVectors()
{
    checkCuda(cudaGetDevice(&device_), "finding the GPU");
}

FarfieldVectors::~FarfieldVectors()
{
    // Errors have been reported by earlier calls
    (void)cudaFree(data_);
}

void FarfieldVectors::resize(const int numAtoms, const cudaStream_t stream)
{
    if (numAtoms <= capacity_ && data_ != nullptr)
    {
        return;
    }
    const OnOtherDevice scope(device_);
    checkCuda(cudaStreamSynchronize(stream), "waiting for FMM");
    checkCuda(cudaFree(data_), "freeing memory");
    data_     = nullptr;
    capacity_ = 0;
    // A domain may be empty
    const size_t size   = std::max(numAtoms, 1) * sizeof(RVec);
    void*        memory = nullptr;
    checkCuda(cudaMalloc(&memory, size), "allocating memory for coordinates and forces");
    data_     = static_cast<real*>(memory);
    capacity_ = numAtoms;
    // A library that computes nothing, to measure the rest of a step, leaves them so
    checkCuda(cudaMemsetAsync(memory, 0, size, stream), "clearing forces");
}

FarfieldElsewhere::FarfieldElsewhere(const int device) : device_(device)
{
    checkCuda(cudaEventCreateWithFlags(&xReady_, cudaEventDisableTiming), "creating an event");
    const OnOtherDevice scope(device);
    int                 lowest = 0, highest = 0;
    checkCuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "reading priorities");
    checkCuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
              "creating a stream");
    checkCuda(cudaEventCreateWithFlags(&forcesReady_, cudaEventDisableTiming), "creating an event");
    x_      = std::make_unique<FarfieldVectors>();
    forces_ = std::make_unique<FarfieldVectors>();
}

FarfieldElsewhere::~FarfieldElsewhere()
{
    // Errors have been reported by earlier calls
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
    (void)cudaEventDestroy(xReady_);
    (void)cudaEventDestroy(forcesReady_);
}

void FarfieldElsewhere::resize(const int numAtoms)
{
    size_ = numAtoms * sizeof(RVec);
    x_->resize(numAtoms, stream_);
    forces_->resize(numAtoms, stream_);
}

void FarfieldElsewhere::fetch(const real* x, const cudaStream_t stream)
{
    checkCuda(cudaEventRecord(xReady_, stream), "recording an event");
    checkCuda(cudaStreamWaitEvent(stream_, xReady_, 0), "waiting for coordinates");
    copy(x_->data(), x);
}

void FarfieldElsewhere::deliver(real* forces, const cudaStream_t stream)
{
    copy(forces, forces_->data());
    checkCuda(cudaEventRecord(forcesReady_, stream_), "recording an event");
    checkCuda(cudaStreamWaitEvent(stream, forcesReady_, 0), "waiting for forces");
}

void FarfieldElsewhere::copy(real* to, const real* from)
{
    checkCuda(cudaMemcpyAsync(to, from, size_, cudaMemcpyDefault, stream_), "copying between GPUs");
}

} // namespace gmx
