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
 * \brief Errors of libfarfield as exceptions of GROMACS.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDERRORS_H
#define GMX_FMM_FARFIELDERRORS_H

#include <string>

namespace farfield
{
class Error;
}

namespace gmx
{

/*! \brief Returns the library's text, and then the option at fault by the name that the user knows.
 *
 * \param[in] error         what the library has thrown
 * \param[in] deviceOption  the mdp option or the environment variable that decided on the device
 */
std::string describeFarfieldError(const farfield::Error& error, const std::string& deviceOption);

/*! \brief Throws the GROMACS exception that corresponds to \p error.
 *
 * \param[in] error         what the library has thrown
 * \param[in] when          what could not be done, to follow "FMM"
 * \param[in] deviceOption  as for describeFarfieldError()
 *
 * \throws InvalidInputError           a value is outside its range
 * \throws SimulationInstabilityError  positions are at fault, as after a blow-up
 * \throws NotImplementedError         the library has no such thing
 * \throws InconsistentInputError      the device or the memory does not suffice
 */
[[noreturn]] void rethrowFarfieldError(const farfield::Error& error,
                                       const std::string&     when,
                                       const std::string&     deviceOption);

/*! \brief Throws for a position that is not finite or far too large.
 *
 * \param[in] atom  the atom, from 0, in the order of the topology
 * \param[in] when  what could not be done, to follow "FMM"
 *
 * \throws SimulationInstabilityError  always
 */
[[noreturn]] void throwForFarfieldPosition(int atom, const std::string& when);

} // namespace gmx

#endif
