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
 * \brief What one rank and several ranks do differently with libfarfield.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDRANKS_H
#define GMX_FMM_FARFIELDRANKS_H

#include <memory>
#include <string>

#include <farfield/farfield.h>

#include "gromacs/timing/cyclecounter.h"
#include "gromacs/utility/real.h"

namespace gmx
{

class FarfieldOptions;
class FarfieldParticles;
struct FarfieldRun;

//! What pairs have in place of 1/r if one of their atoms is perturbed and there is a soft core
constexpr farfield::NearFunction c_perturbedPairs = { farfield::PairFunction::Gaussian,
                                                      farfield::WidthRule::Larger };

//! The solver of a run, on one rank or on several ranks.
class FarfieldRanks
{
public:
    virtual ~FarfieldRanks() = default;

    //! What evaluates the particles of this rank
    virtual farfield::CoulombSolver<real>& solver() = 0;
    //! The solver of one rank, for what several ranks do not have; nullptr with several ranks
    virtual farfield::Solver<real>* solverOfOneRank() { return nullptr; }
    /*! \brief Hands charges and exclusions over; throws farfield::Error.
     *
     * \param[in] particles  those of this rank
     */
    virtual void setParticles(const FarfieldParticles& particles) = 0;
    //! The times of the stages on this rank, and what it has sent, for the log
    virtual std::string timings() = 0;
    //! Cycles that this rank has spent on messages of the hosts, and on waiting for them
    virtual gmx_cycles_t cyclesOfMessages() const { return 0; }
    //! Why graphs of steps on the device can not hold what the solver does; empty if they can
    virtual std::string obstacleToGraphs() const { return {}; }
};

/*! \brief Creates the solver of a run; throws farfield::Error.
 *
 * \param[in]     options  of the mdp file
 * \param[in,out] run      what the run decides; gets how messages pass between GPUs
 */
std::unique_ptr<FarfieldRanks> makeFarfieldRanks(const FarfieldOptions& options, FarfieldRun* run);

} // namespace gmx

#endif
