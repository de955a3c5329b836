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
 * \brief On which device the FMM runs, and how coordinates and forces get there.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDDEVICE_H
#define GMX_FMM_FARFIELDDEVICE_H

#include <string>

#include "gromacs/utility/arrayref.h"

#include "farfieldrun.h"

struct gmx_mtop_t;

namespace gmx
{

struct FarfieldOptions;
class SimulationWorkload;

/*! \brief Tells why the force provider can not use GROMACS's coordinates and forces on the device.
 *
 * \param[in] simulationWork  what runs where; nullptr when not known
 * \returns an empty string if it can
 */
std::string obstacleToDevice(const SimulationWorkload* simulationWork);

/*! \brief Decides where the FMM runs.
 *
 * mdrun's assignment of devices to ranks holds, and with it -gpu_id. Without one, the FMM is on the
 * CPU unless the user wants it on a GPU: then the ranks of a node take turns on the devices that
 * mdrun may use.
 *
 * \param[in] options           the mdp options
 * \param[in] assignedDevice    CUDA device that mdrun has assigned to this rank, or -1
 * \param[in] availableDevices  CUDA devices that were detected and that the user allows
 * \param[in] rankOnNode        number of this rank among those on its node
 */
FarfieldDeviceChoice chooseDevice(const FarfieldOptions& options,
                                  int                    assignedDevice,
                                  ArrayRef<const int>    availableDevices,
                                  int                    rankOnNode);

//! Where a rank is among those of its node, and which CUDA devices these have.
struct FarfieldNode
{
    //! Devices that were detected and that the user allows
    ArrayRef<const int> availableDevices;
    //! Devices that mdrun has assigned to ranks
    ArrayRef<const int> assignedDevices;
    //! Whether the user has said which devices are for this run, and not which rank has which
    bool devicesAreSelected;
    //! Number of this rank, and how many ranks there are
    int rank, numRanks;
};

/*! \brief Decides which GPUs help that of this rank with the near field.
 *
 * The environment variable GMX_FMM_HELPERS names them, or none. Otherwise those that no rank of the
 * node has, of this simulation or another, are dealt to its ranks in turn. The system has to be so
 * large that they may make it faster: whether they do is timed. The user must have selected
 * devices, or have set the variable to "auto": others may have plans for what mdrun merely sees.
 *
 * \param[in] device          of this rank
 * \param[in] node            what there is
 * \param[in] numAtoms        of the system
 * \param[in] isDistributed   whether several ranks share it
 * \throws InvalidInputError  the environment variable has another value
 */
FarfieldHelpers chooseHelpers(const FarfieldDeviceChoice& device,
                              const FarfieldNode&         node,
                              int                         numAtoms,
                              bool                        isDistributed);

/*! \brief Tells why mdrun copies coordinates and forces from and to the host at every step.
 *
 * \param[in] simulationWork  what runs where; nullptr when not known
 * \param[in] mtop            the global topology
 * \returns an empty string if it does not
 */
std::string reasonForUpdateOnHost(const SimulationWorkload* simulationWork, const gmx_mtop_t& mtop);

} // namespace gmx

#endif
