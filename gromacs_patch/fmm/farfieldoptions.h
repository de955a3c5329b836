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
 * \brief The mdp options of the farfield FMM backend.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDOPTIONS_H
#define GMX_FMM_FARFIELDOPTIONS_H

#include "farfield/options.h"

#include "fmmoptions.h"

namespace gmx
{

class KeyValueTreeObject;

/*! \brief The options fmm-farfield-...
 *
 * Names, defaults and limits stand in options.h of the library, of which apply.sh puts a copy into
 * the folder farfield/ beside this file: grompp checks its input with them, in builds without the
 * library, too.
 */
struct FarfieldOptions : IFmmOptions
{
    //! The options of the library: those of the mdp file; the run decides on the others
    farfield::Options values = farfield::mdpDefaults();

    void initMdpOptionsFmm(OptionSectionHandle& section) override;
    void initMdpTransformFmm(IKeyValueTreeTransformRules* rules) override;
    void buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const override;
    //! Reports each option that is out of range to \p wi
    void validateMdpOptions(WarningHandler* wi) const override;
};

/*! \brief Returns the mdp option, or what else it is in GROMACS, that sets an option of the library.
 *
 * \param[in] name  the member of farfield::Options
 * \returns an empty string if there is none
 */
const char* farfieldSetting(const char* name);

/*! \brief Copies the parameters of a run without the options of this backend.
 *
 * A GROMACS without the backend does not read run input files with options that it does not know.
 *
 * \param[in] tree     the parameters
 * \param[in] builder  gets the copy
 */
void copyWithoutFarfield(const KeyValueTreeObject& tree, KeyValueTreeObjectBuilder builder);

} // namespace gmx

#endif
