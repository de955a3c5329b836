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
 * \brief Whether steps are faster with the FMM on another GPU than that of the rank.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDMOVE_H
#define GMX_FMM_FARFIELDMOVE_H

#include <cstdint>

#include <string>

namespace gmx
{

/*! \brief Times steps with the FMM on the GPU of the rank and on another one, in turn.
 *
 * What an evaluation takes does not tell: the GPU of the rank has other work, which a move sets it
 * free for. A turn is one interval between pair searches or more. The first turn of either does not
 * count. Of the others the fastest does, as only other things make a turn slower.
 */
class FarfieldMoveTrial
{
public:
    /*! \brief Notes a pair search, at which no earlier step is being computed any more.
     *
     * \param[in] step  after the search
     * \param[in] time  seconds since any moment
     */
    void noteSearch(int64_t step, double time);
    //! Whether the FMM is to be on the other GPU until the next search
    bool isMoved() const { return isMoved_; }
    //! Whether isMoved() stays
    bool isDone() const;
    //! What the trial has found, for the log, once it is done
    std::string result() const;

private:
    //! When the turn began; -1: none has begun
    int64_t beginStep_ = -1;
    double  beginTime_ = 0;
    //! Turns that are over
    int  turns_   = 0;
    bool isMoved_ = false;
    //! Least time of a step, seconds: at home, and moved
    double fastest_[2] = { 0, 0 };
};

} // namespace gmx

#endif
