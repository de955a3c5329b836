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
 * \brief Reference forces of a run, for measuring the error of settings.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDREFERENCE_H
#define GMX_FMM_FARFIELDREFERENCE_H

#include <cstdint>

#include <vector>

#include <farfield/farfield.h>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/vectypes.h"

#include "farfieldtopology.h"

namespace gmx
{

class MDLogger;
struct BoxRows;
struct FarfieldRun;

//! Whether the environment asks for reference forces.
bool farfieldReferenceIsWanted();

/*! \brief Evaluates in double precision at the highest order, on the CPU, whatever the options say.
 *
 * Slow: it is there to measure the error of other settings against, of any electrostatics.
 */
class FarfieldReference
{
public:
    /*! \brief Says in the log that it is used.
     *
     * \param[in] run     what the run decides
     * \param[in] logger  must outlive this object
     * \throws farfield::Error
     */
    FarfieldReference(const FarfieldRun& run, const MDLogger& logger);

    //! Takes over charges and exclusions; throws farfield::Error.
    void setParticles(const FarfieldParticles& particles);

    /*! \brief As farfield::Solver::evaluate(); the log gets the RMS of the Coulomb forces.
     *
     * \param[in]     x        positions, nm, [particles]
     * \param[in]     box      the box, nm
     * \param[in,out] f        forces, kJ/mol/nm, [particles]
     * \param[in]     request  what to compute
     * \param[in]     step     for the log
     * \throws farfield::Error
     */
    farfield::Totals
    evaluate(const RVec* x, const BoxRows& box, RVec* f, const farfield::Request& request, int64_t step);

private:
    const MDLogger&          logger_;
    farfield::Solver<double> solver_;
    //! Number of particles
    int number_ = 0;
    //! Positions and forces, [3 * particles]
    std::vector<double> x_, f_;
};

} // namespace gmx

#endif
