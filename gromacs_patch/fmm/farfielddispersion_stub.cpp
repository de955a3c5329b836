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
 * \brief The provider of dispersion in builds without external FMM: it cannot be created.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/exceptions.h"

#include "farfielddispersion.h"

namespace gmx
{

class FarfieldDispersion::Impl
{
};

FarfieldDispersion::FarfieldDispersion(const FarfieldOptions& /* options */,
                                       const gmx_mtop_t& /* mtop */,
                                       const MDLogger& /* logger */,
                                       const FarfieldRun& /* run */)
{
    GMX_THROW(NotImplementedError(
            "This GROMACS was built without FMM, configure it with -DGMX_USE_EXT_FMM=ON to run "
            "with fmm-backend = farfield."));
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
