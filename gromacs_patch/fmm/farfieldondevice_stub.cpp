/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \internal \file
 * \brief Without CUDA in GROMACS or in the library, coordinates come from the host.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include <farfield/farfield.h>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxassert.h"

#include "farfieldondevice.h"

namespace gmx
{

class FarfieldOnDevice::Impl
{
};

FarfieldOnDevice::FarfieldOnDevice(farfield::Solver<real>* /* solver */,
                                   const DeviceContext& /* deviceContext */)
{
    GMX_RELEASE_ASSERT(false, "Only to be used when isCompiled()");
}

FarfieldOnDevice::~FarfieldOnDevice() = default;

bool FarfieldOnDevice::isCompiled()
{
    return false;
}

void FarfieldOnDevice::reinit(StatePropagatorDataGpu* /* stateGpu */,
                              GpuForceReduction* /* forceReduction */)
{
}

void FarfieldOnDevice::launch(const double /* box */[DIM][DIM],
                              const farfield::Request& /* request */,
                              const bool /* forcesToHost */,
                              GpuEventSynchronizer* /* xReadyOnDevice */)
{
}

farfield::Totals FarfieldOnDevice::wait()
{
    return {};
}

ArrayRef<const RVec> FarfieldOnDevice::forces() const
{
    return {};
}

std::vector<RVec> FarfieldOnDevice::coordinates() const
{
    return {};
}

std::vector<farfield::StageTime> FarfieldOnDevice::measureStages(const double /* box */[DIM][DIM])
{
    return {};
}

} // namespace gmx
