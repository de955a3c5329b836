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
 * \brief Implements the translation of errors of libfarfield.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfielderrors.h"

#include <farfield/farfield.h>

#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldoptions.h"

namespace gmx
{

namespace
{

//! How all messages begin.
std::string messageStart(const std::string& when)
{
    return formatString("FMM (fmm-backend = farfield) %s: ", when.c_str());
}

//! The option at fault by the name that the user knows; empty if the library names none.
std::string optionAtFault(const farfield::Error& error, const std::string& deviceOption)
{
    const std::string parameter = error.parameter();
    return parameter == "device"          ? deviceOption
           : parameter == "helperDevices" ? "GMX_FMM_HELPERS"
                                          : farfieldSetting(error.parameter());
}

//! What to do about an error for which the library names no option, to follow its text.
std::string adviceMessage(const farfield::ErrorCode code, const std::string& deviceOption)
{
    switch (code)
    {
        case farfield::ErrorCode::NotCompiled:
        case farfield::ErrorCode::DeviceFailure:
            return " Set " + deviceOption + " = cpu to run FMM without a GPU.";
        case farfield::ErrorCode::OutOfMemory:
            return formatString(" The options to change are %s and %s.",
                                farfieldSetting("cellSize"),
                                farfieldSetting("order"));
        default: return "";
    }
}

//! What follows where positions are at fault, and no option.
std::string instabilityMessage()
{
    return " The simulation has blown up, or its coordinates were bad from the start.";
}

} // namespace

std::string describeFarfieldError(const farfield::Error& error, const std::string& deviceOption)
{
    const std::string option = optionAtFault(error, deviceOption);
    return error.what() + (option.empty() ? "" : " The option to change is " + option + ".");
}

void rethrowFarfieldError(const farfield::Error& error, const std::string& when, const std::string& deviceOption)
{
    const std::string start   = messageStart(when);
    std::string       message = start + describeFarfieldError(error, deviceOption);
    if (std::string(error.parameter()) == "positions")
    {
        GMX_THROW(SimulationInstabilityError(start + error.what() + instabilityMessage()));
    }
    if (optionAtFault(error, deviceOption).empty())
    {
        message += adviceMessage(error.code(), deviceOption);
    }
    switch (error.code())
    {
        case farfield::ErrorCode::InvalidArgument: GMX_THROW(InvalidInputError(message));
        case farfield::ErrorCode::Unsupported: GMX_THROW(NotImplementedError(message));
        case farfield::ErrorCode::NotCompiled:
        case farfield::ErrorCode::DeviceFailure:
        case farfield::ErrorCode::OutOfMemory: GMX_THROW(InconsistentInputError(message));
    }
    GMX_THROW(InternalError(message));
}

void throwForFarfieldPosition(const int atom, const std::string& when)
{
    GMX_THROW(SimulationInstabilityError(
            messageStart(when)
            + formatString("the position of atom %d is not finite or far too large.", atom + 1)
            + instabilityMessage()));
}

} // namespace gmx
