/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \internal \file
 * \brief The farfield force provider in builds without external FMM: it cannot be created.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/exceptions.h"

#include "farfieldforceprovider.h"

namespace gmx
{

class FarfieldForceProvider::Impl
{
};

FarfieldForceProvider::FarfieldForceProvider(const FarfieldOptions& /* options */,
                                             const gmx_mtop_t& /* mtop */,
                                             const MDLogger& /* logger */,
                                             const double /* coulombConstant */,
                                             const bool /* integratesMotion */,
                                             const bool /* reproducible */,
                                             const std::vector<double>& /* checkpointState */)
{
    GMX_THROW(NotImplementedError(
            "This GROMACS was built without FMM, configure it with -DGMX_USE_EXT_FMM=ON to run "
            "with fmm-backend = farfield."));
}

FarfieldForceProvider::~FarfieldForceProvider() = default;

bool FarfieldForceProvider::useDevice(const DeviceContext* /* deviceContext */,
                                      const std::string& /* obstacle */,
                                      const std::string& /* updateOnHost */)
{
    return false;
}

void FarfieldForceProvider::atomsRedistributed(
        const MDModulesAtomsRedistributedSignal& /* signal */)
{
}

void FarfieldForceProvider::calculateForces(const ForceProviderInput& /* forceProviderInput */,
                                            ForceProviderOutput* /* forceProviderOutput */)
{
}

void FarfieldForceProvider::reinit(StatePropagatorDataGpu* /* stateGpu */,
                                   GpuForceReduction* /* forceReduction */)
{
}

bool FarfieldForceProvider::boxHasChanged(const matrix /* box */) const
{
    return false;
}

void FarfieldForceProvider::launch(const matrix /* box */,
                                   const int64_t /* step */,
                                   const StepWorkload& /* stepWork */,
                                   GpuEventSynchronizer* /* xReadyOnDevice */)
{
}

void FarfieldForceProvider::waitAndReduce(const StepWorkload& /* stepWork */,
                                          ForceWithVirial* /* forceWithVirial */,
                                          gmx_enerdata_t* /* enerd */)
{
}

std::vector<double> FarfieldForceProvider::state() const
{
    return {};
}

void FarfieldForceProvider::logTimings() const {}

} // namespace gmx
