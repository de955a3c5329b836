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
 * \brief What of free-energy calculations goes with FMM.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDPERTURBATION_H
#define GMX_FMM_FARFIELDPERTURBATION_H

#include "gromacs/utility/real.h"

struct gmx_mtop_t;
struct t_inputrec;
class WarningHandler;

namespace gmx
{

//! Whether a charge differs between the states of \p mtop.
bool hasPerturbedCharges(const gmx_mtop_t& mtop);

/*! \brief Returns the width of the Gaussian charges of pairs with a perturbed atom, nm; 0: points.
 *
 * With a soft core of Coulomb interactions FMM takes erf(r/width)/r for these pairs. The kernels of
 * perturbed pairs subtract it, and add the soft-core interaction.
 */
real perturbedChargeWidth(const t_inputrec& ir, const gmx_mtop_t& mtop);

/*! \brief Reports states in which a charge has no repulsion to keep others away.
 *
 * Without a soft core two opposite charges fall into each other where the Lennard-Jones
 * interactions of one of them are gone, or soft. Looks at all states that the run or its foreign
 * energies visit, and reports the first atom of each molecule type.
 *
 * \param[in]     mtop  the global topology
 * \param[in]     ir    with free-energy perturbation
 * \param[in,out] wi    gets the errors
 */
void checkPerturbation(const gmx_mtop_t& mtop, const t_inputrec& ir, WarningHandler* wi);

} // namespace gmx

#endif
