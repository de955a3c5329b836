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

/*! \libinternal \file
 * \brief Declares what the farfield force provider has on the device.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDONDEVICE_H
#define GMX_FMM_FARFIELDONDEVICE_H

#include <cstdint>

#include <memory>
#include <string>
#include <vector>

#include "gromacs/utility/real.h"
#include "gromacs/utility/vectypes.h"

class DeviceContext;
class GpuEventSynchronizer;

namespace farfield
{
class Communicator;
class DeviceCommunicator;
struct Request;
struct StageTime;
struct Totals;
} // namespace farfield

namespace gmx
{

template<typename>
class ArrayRef;
class FarfieldDispersion;
class FarfieldRanks;
struct FarfieldDeviceMessages;
class GpuForceReduction;
class StatePropagatorDataGpu;

/*! \brief Returns what connects the GPUs of several ranks, nullptr if messages have to pass through the host.
 *
 * All ranks call it together.
 *
 * \param[in]  host      connects the ranks
 * \param[in]  deviceId  CUDA device of this rank
 * \param[out] messages  how they pass
 * \throws farfield::Error
 */
std::unique_ptr<farfield::DeviceCommunicator> makeDeviceCommunicator(farfield::Communicator* host,
                                                                     int deviceId,
                                                                     FarfieldDeviceMessages* messages);

/*! \brief Stream, forces and calls of the library for coordinates in device memory.
 *
 * Knows nothing of energies, logs or errors, but those of dispersion: functions throw farfield::Error.
 */
class FarfieldOnDevice
{
public:
    //! \param[in] ranks  their solver has the device Gpu; must outlive this object
    FarfieldOnDevice(FarfieldRanks* ranks, const DeviceContext& deviceContext);
    ~FarfieldOnDevice();

    //! Whether GROMACS and the library were both built with CUDA.
    static bool isCompiled();

    //! Computes dispersion, too.
    void addDispersion(FarfieldDispersion* dispersion);

    //! As IDeviceForceProvider::reinit().
    void reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction);

    /*! \brief Puts an evaluation into the stream.
     *
     * \param[in] box             box vectors as rows
     * \param[in] request         what to compute besides forces
     * \param[in] step            the step
     * \param[in] forcesToHost    copy the forces to the host, rather than telling the reduction
     * \param[in] xReadyOnDevice  when the coordinates are complete
     */
    void launch(const double             box[DIM][DIM],
                const farfield::Request& request,
                int64_t                  step,
                bool                     forcesToHost,
                GpuEventSynchronizer*    xReadyOnDevice);

    //! Whether the solver can not go on with what graphs have recorded of it.
    bool mustBeRecordedAgain() const;

    //! Whether executable graphs may be updated to what is recorded later.
    bool recordingsMayBeUpdated() const;

    //! Waits for the last launch.
    farfield::Totals wait();
    //! What the last launch has of dispersion.
    const farfield::Totals& dispersionTotals() const;
    //! The forces of a launch with forcesToHost, after wait().
    ArrayRef<const RVec> forces() const;

    //! Copies the coordinates to the host, to tell what is wrong with them.
    std::vector<RVec> coordinates() const;

    //! Device time of every stage at the current coordinates, of one rank; overwrites the forces.
    std::vector<farfield::StageTime> measureStages(const double box[DIM][DIM], real lambda);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
