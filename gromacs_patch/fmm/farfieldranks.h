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
 * \brief How many thread-MPI ranks mdrun starts by itself with the backend "farfield".
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDRANKS_H
#define GMX_FMM_FARFIELDRANKS_H

#include <string>

namespace gmx
{

//! What decides about the number of ranks.
struct FarfieldMachine
{
    //! Threads of all ranks together
    int threads;
    //! Up to so many threads GROMACS takes one rank for the fastest on these processors
    int threadsOfOneRank;
    //! Whether the user has chosen the threads of a rank
    bool threadsOfRanksAreGiven;
    //! GPUs that compute non-bonded interactions
    int gpus;
};

//! A number of ranks, and why it is that, as a sentence for the log.
struct FarfieldRanks
{
    int         number;
    std::string reason;
};

/*! \brief Chooses the number of ranks where the user has not.
 *
 * \param[in] machine  what there is
 * \param[in] atoms    of the whole system
 */
FarfieldRanks chooseFarfieldRanks(const FarfieldMachine& machine, int atoms);

} // namespace gmx

#endif
