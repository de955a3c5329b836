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
 * \brief Implements farfieldranks.h.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldranks.h"

#include "gromacs/utility/stringutil.h"

namespace gmx
{

namespace
{

//! With fewer atoms a rank, messages and halos take what threads lose without them.
constexpr int c_leastAtomsOfARank = 10000;
//! More GROMACS does not allow where there are several ranks.
constexpr int c_mostThreadsOfARank = 8;
//! With fewer, ranks get so many that their messages count.
constexpr int c_leastThreadsOfARank = 4;

} // namespace

FarfieldRanks chooseFarfieldRanks(const FarfieldMachine& machine, const int atoms)
{
    const std::string more = "; -ntmpi asks for more ranks.";
    if (machine.gpus > 0)
    {
        return { 1,
                 "With FMM electrostatics mdrun chooses one rank, which has one GPU, as several are "
                 "faster from about a million atoms on"
                         + more };
    }
    const std::string one = "With FMM electrostatics mdrun chooses one rank with all threads";
    if (machine.threadsOfRanksAreGiven)
    {
        return { 1, "With FMM electrostatics mdrun chooses one rank where -ntomp is given" + more };
    }
    if (machine.threads <= machine.threadsOfOneRank)
    {
        return { 1, one + formatString(", as these are no more than %d", machine.threadsOfOneRank) + more };
    }
    for (int threads = c_mostThreadsOfARank; threads >= c_leastThreadsOfARank; threads--)
    {
        const int ranks = machine.threads / threads;
        if (ranks * threads == machine.threads && ranks * c_leastAtomsOfARank <= atoms)
        {
            return { ranks,
                     formatString("With FMM electrostatics mdrun chooses %d ranks of %d threads each, as one "
                                  "rank is slower with more than %d threads; -ntmpi and -ntomp ask for others.",
                                  ranks,
                                  threads,
                                  machine.threadsOfOneRank) };
        }
    }
    return { 1,
             one
                     + formatString(", as there are too few atoms for ranks of %d threads with %d atoms each",
                                    c_mostThreadsOfARank,
                                    c_leastAtomsOfARank)
                     + more };
}

} // namespace gmx
