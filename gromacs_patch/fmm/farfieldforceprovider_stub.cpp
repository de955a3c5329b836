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
 * \brief The farfield force providers in builds without external FMM: they cannot be created.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/exceptions.h"

#include "farfielddispersion.h"
#include "farfieldforceprovider.h"

namespace gmx
{

namespace
{

[[noreturn]] void throwWithoutFmm()
{
    GMX_THROW(NotImplementedError(
            "This GROMACS was built without FMM, configure it with -DGMX_USE_EXT_FMM=ON to run "
            "with fmm-backend = farfield."));
}

} // namespace

class FarfieldForceProvider::Impl
{
};

FarfieldForceProvider::FarfieldForceProvider(const FarfieldOptions& /* options */,
                                             const gmx_mtop_t& /* mtop */,
                                             const MDLogger& /* logger */,
                                             const FarfieldRun& /* run */)
{
    throwWithoutFmm();
}

FarfieldForceProvider::~FarfieldForceProvider() = default;

bool FarfieldForceProvider::useDevice(const DeviceContext* /* deviceContext */,
                                      const std::string& /* obstacle */,
                                      const std::string& /* updateOnHost */)
{
    return false;
}

void FarfieldForceProvider::atomsRedistributed(const MDModulesAtomsRedistributedSignal& /* signal */)
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

bool FarfieldForceProvider::mustBeRecordedAgain(const matrix /* box */,
                                                ArrayRef<const real> /* lambda */) const
{
    return false;
}

std::string FarfieldForceProvider::obstacleToGraphs() const
{
    return {};
}

bool FarfieldForceProvider::recordingsMayBeUpdated() const
{
    return false;
}

void FarfieldForceProvider::waitForLaunches(const int64_t /* step */) {}

void FarfieldForceProvider::launch(const matrix /* box */,
                                   const int64_t /* step */,
                                   const StepWorkload& /* stepWork */,
                                   ArrayRef<const real> /* lambda */,
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

class FarfieldDispersion::Impl
{
};

FarfieldDispersion::FarfieldDispersion(const FarfieldOptions& /* options */,
                                       const gmx_mtop_t& /* mtop */,
                                       const MDLogger& /* logger */,
                                       const FarfieldRun& /* run */)
{
    throwWithoutFmm();
}

FarfieldDispersion::~FarfieldDispersion() = default;

void FarfieldDispersion::atomsRedistributed(const MDModulesAtomsRedistributedSignal& /* signal */)
{
}

void FarfieldDispersion::calculateForces(const ForceProviderInput& /* forceProviderInput */,
                                         ForceProviderOutput* /* forceProviderOutput */)
{
}

std::vector<double> FarfieldDispersion::state() const
{
    return {};
}

} // namespace gmx
