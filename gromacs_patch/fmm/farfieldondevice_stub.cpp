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
 * \brief Without CUDA in GROMACS or in the library, coordinates come from the host.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include <farfield/farfield_parallel.h>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxassert.h"

#include "farfieldondevice.h"
#include "farfieldrun.h"

namespace gmx
{

class FarfieldOnDevice::Impl
{
};

std::unique_ptr<farfield::DeviceCommunicator> makeDeviceCommunicator(farfield::Communicator* /* host */,
                                                                     const int /* deviceId */,
                                                                     FarfieldDeviceMessages* messages)
{
    *messages = { "through the host: GROMACS and the library were not both built with CUDA" };
    return nullptr;
}

FarfieldOnDevice::FarfieldOnDevice(FarfieldRanks* /* ranks */, const DeviceContext& /* deviceContext */)
{
    GMX_RELEASE_ASSERT(false, "Only to be used when isCompiled()");
}

FarfieldOnDevice::~FarfieldOnDevice() = default;

bool FarfieldOnDevice::isCompiled()
{
    return false;
}

void FarfieldOnDevice::addDispersion(FarfieldDispersion* /* dispersion */) {}

void FarfieldOnDevice::reinit(StatePropagatorDataGpu* /* stateGpu */,
                              GpuForceReduction* /* forceReduction */)
{
}

void FarfieldOnDevice::launch(const double /* box */[DIM][DIM],
                              const farfield::Request& /* request */,
                              const int64_t /* step */,
                              const bool /* forcesToHost */,
                              GpuEventSynchronizer* /* xReadyOnDevice */)
{
}

bool FarfieldOnDevice::mustBeRecordedAgain() const
{
    return false;
}

bool FarfieldOnDevice::recordingsMayBeUpdated() const
{
    return false;
}

farfield::Totals FarfieldOnDevice::wait()
{
    return {};
}

const farfield::Totals& FarfieldOnDevice::dispersionTotals() const
{
    static const farfield::Totals none;
    return none;
}

ArrayRef<const RVec> FarfieldOnDevice::forces() const
{
    return {};
}

std::vector<RVec> FarfieldOnDevice::coordinates() const
{
    return {};
}

std::vector<farfield::StageTime> FarfieldOnDevice::measureStages(const double /* box */[DIM][DIM],
                                                                 const real /* lambda */)
{
    return {};
}

} // namespace gmx
