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
 * \brief Implements the choice of the device.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfielddevice.h"

#include "config.h"

#include <cstdlib>

#include <algorithm>
#include <iterator>

#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldoptions.h"

namespace gmx
{

namespace
{

//! Environment variable that takes coordinates and forces through the host
constexpr const char* c_disableVariable = "GMX_FMM_DISABLE_GPU_BUFFERS";

//! Environment variable that overrides fmm-farfield-device at run time
constexpr const char* c_deviceVariable = "GMX_FMM_DEVICE";

//! Environment variable that names the GPUs that help with the near field
constexpr const char* c_helpersVariable = "GMX_FMM_HELPERS";

//! Below so many atoms helpers are timed only if asked for: half of the fewest that were seen to gain
constexpr int c_fewestAtomsWithHelpers = 180000;

/*! \brief Reads a list of devices such as 1,2.
 *
 * \throws InvalidInputError  it is something else
 */
std::vector<int> devicesOf(const std::string& list)
{
    const auto isNumber = [](const std::string& text)
    {
        return !text.empty() && text.size() < 6
               && text.find_first_not_of("0123456789") == std::string::npos;
    };
    const std::vector<std::string> entries = splitDelimitedString(list, ',');
    if (entries.empty() || !std::all_of(entries.begin(), entries.end(), isNumber))
    {
        GMX_THROW(InvalidInputError(formatString(
                "The environment variable %s is '%s', set it to auto, none or CUDA devices such as "
                "1,2, or unset it.",
                c_helpersVariable,
                list.c_str())));
    }
    std::vector<int> devices;
    std::transform(entries.begin(),
                   entries.end(),
                   std::back_inserter(devices),
                   [](const std::string& text) { return std::stoi(text); });
    return devices;
}

//! Those of \p devices that are the turn of a rank.
std::vector<int> turnOf(const FarfieldNode& node, const std::vector<int>& devices)
{
    std::vector<int> own;
    for (size_t k = node.rank; k < devices.size(); k += node.numRanks)
    {
        own.push_back(devices[k]);
    }
    return own;
}

/*! \brief Returns the device that the user asks for, and sets the name of what says so.
 *
 * \param[in]  options  the mdp options
 * \param[out] source   the mdp option or the environment variable
 * \throws InvalidInputError  the environment variable has another value
 */
farfield::Device requestedDevice(const FarfieldOptions& options, std::string* source)
{
    const char* value = std::getenv(c_deviceVariable);
    if (value == nullptr)
    {
        *source = farfieldSetting("device");
        return options.values.device;
    }
    *source = c_deviceVariable;
    for (const farfield::DeviceDescription& device : farfield::c_devices)
    {
        if (equalCaseInsensitive(value, device.name))
        {
            return device.value;
        }
    }
    GMX_THROW(InvalidInputError(formatString(
            "The environment variable %s is '%s', set it to cpu, gpu or auto, or unset it.",
            c_deviceVariable,
            value)));
}

} // namespace

std::string obstacleToDevice(const SimulationWorkload* simulationWork)
{
    if (simulationWork == nullptr || !simulationWork->useGpuNonbonded)
    {
        return "non-bonded interactions run on the CPU";
    }
    if (!simulationWork->useGpuXBufferOpsWhenAllowed || !simulationWork->useGpuFBufferOpsWhenAllowed)
    {
        return "GROMACS has its coordinates and forces on the host";
    }
    if (simulationWork->haveFillerParticlesInLocalState)
    {
        return "there are filler particles";
    }
    if (std::getenv(c_disableVariable) != nullptr)
    {
        return formatString("the environment variable %s is set", c_disableVariable);
    }
    return {};
}

FarfieldDeviceChoice chooseDevice(const FarfieldOptions& options,
                                  const int              assignedDevice,
                                  ArrayRef<const int>    availableDevices,
                                  const int              rankOnNode)
{
    FarfieldDeviceChoice choice;
    choice.device = requestedDevice(options, &choice.option);
    choice.reason = formatString("%s = %s", choice.option.c_str(), farfield::nameOf(choice.device));
    if (choice.device == farfield::Device::Cpu)
    {
        return choice;
    }
    if (assignedDevice >= 0)
    {
        choice.id = assignedDevice;
        choice.reason += formatString("; mdrun has assigned GPU %d to this rank", choice.id);
    }
    else if (choice.device == farfield::Device::Auto)
    {
        choice.device = farfield::Device::Cpu;
        choice.reason += "; mdrun has assigned no GPU to this rank";
    }
    else if (!availableDevices.empty())
    {
        choice.id = availableDevices[rankOnNode % availableDevices.ssize()];
        choice.reason += formatString("; GPU %d, in turn, of those that mdrun may use", choice.id);
    }
    else if (GMX_GPU_CUDA)
    {
        GMX_THROW(InconsistentInputError(formatString(
                "%s = gpu, but mdrun has detected no GPU that it may use. Set it to cpu to run "
                "without a GPU.",
                choice.option.c_str())));
    }
    return choice;
}

FarfieldHelpers chooseHelpers(const FarfieldDeviceChoice& device,
                              const FarfieldNode&         node,
                              const int                   numAtoms,
                              const bool                  isDistributed)
{
    const char*       value  = std::getenv(c_helpersVariable);
    const std::string asked  = value == nullptr ? "auto" : value;
    const bool        isAuto = equalCaseInsensitive(asked, "auto");
    FarfieldHelpers   helpers;
    const auto        because = [&](const std::string& reason)
    {
        helpers.reason = reason;
        return helpers;
    };
    if (equalCaseInsensitive(asked, "none"))
    {
        return because(formatString("%s = none", c_helpersVariable));
    }
    const std::vector<int> named = isAuto ? std::vector<int>() : devicesOf(asked);
    if (device.device == farfield::Device::Cpu || device.id < 0)
    {
        return because("the FMM has no GPU that mdrun chose");
    }
    if (isDistributed)
    {
        return because("several ranks share the system");
    }
    if (!isAuto)
    {
        helpers.ids          = turnOf(node, named);
        helpers.mayBeLeftOut = false;
        return because(formatString("%s = %s", c_helpersVariable, asked.c_str()));
    }
    const auto isAssigned = [&](const int id)
    {
        return std::find(node.assignedDevices.begin(), node.assignedDevices.end(), id)
               != node.assignedDevices.end();
    };
    if (!isAssigned(device.id))
    {
        // Other ranks of the node may have GPUs in the same way, also those of other simulations
        return because("the FMM has no GPU that mdrun chose");
    }
    if (value == nullptr && !node.devicesAreSelected)
    {
        return because("-gpu_id did not select any");
    }
    if (value == nullptr && numAtoms < c_fewestAtomsWithHelpers)
    {
        return because(formatString("the system has fewer than %d atoms", c_fewestAtomsWithHelpers));
    }
    std::vector<int> unused;
    std::copy_if(node.availableDevices.begin(),
                 node.availableDevices.end(),
                 std::back_inserter(unused),
                 [&](const int id) { return !isAssigned(id); });
    helpers.ids = turnOf(node, unused);
    if (helpers.ids.empty())
    {
        return because("no GPU is free");
    }
    helpers.ids.resize(std::min<size_t>(helpers.ids.size(), farfield::c_maxHelperDevices));
    return because("no rank has them");
}

std::string reasonForUpdateOnHost(const SimulationWorkload* simulationWork, const gmx_mtop_t& mtop)
{
    if (simulationWork != nullptr && simulationWork->useGpuUpdate)
    {
        return {};
    }
    if (gmx_mtop_interaction_count(mtop, IF_VSITE) > 0)
    {
        return "virtual sites need the update on the CPU";
    }
    if (gmx_mtop_particletype_count(mtop)[ParticleType::Shell] > 0)
    {
        return "shells need the update on the CPU";
    }
    return "the update runs on the CPU";
}

} // namespace gmx
