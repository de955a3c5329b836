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
 * \brief Implements the comparison of GPUs for the FMM.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldmove.h"

#include <algorithm>

#include "gromacs/utility/stringutil.h"

namespace gmx
{

namespace
{

//! Steps of a turn
constexpr int c_fewestSteps = 100;
//! Turns that do not count, and all turns
constexpr int c_warmUpTurns = 2, c_numTurns = 6;
//! A move has to make steps faster by this
constexpr double c_leastGain = 0.05;

} // namespace

bool FarfieldMoveTrial::isDone() const
{
    return turns_ == c_numTurns;
}

void FarfieldMoveTrial::noteSearch(const int64_t step, const double time)
{
    const int64_t numSteps = step - beginStep_;
    if (isDone() || (beginStep_ >= 0 && numSteps >= 0 && numSteps < c_fewestSteps))
    {
        return;
    }
    // Steps that are counted anew are no turn
    if (beginStep_ >= 0 && numSteps > 0)
    {
        const double perStep = (time - beginTime_) / static_cast<double>(numSteps);
        double&      fastest = fastest_[isMoved_ ? 1 : 0];
        if (turns_ >= c_warmUpTurns)
        {
            fastest = fastest == 0 ? perStep : std::min(fastest, perStep);
        }
        turns_++;
        isMoved_ = isDone() ? fastest_[1] < (1 - c_leastGain) * fastest_[0] : !isMoved_;
    }
    beginStep_ = step;
    beginTime_ = time;
}

std::string FarfieldMoveTrial::result() const
{
    return formatString("a step took %.0f us with the FMM moved and %.0f us without%s",
                        1e6 * fastest_[1],
                        1e6 * fastest_[0],
                        isMoved_ ? "" : ", and a move has to gain 5 %");
}

} // namespace gmx
