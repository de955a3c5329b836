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
 * \brief What the log says about the FMM.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDREPORT_H
#define GMX_FMM_FARFIELDREPORT_H

#include <string>
#include <vector>

namespace farfield
{
struct Setup;
struct StageTime;
struct Traffic;
} // namespace farfield

namespace gmx
{

struct FarfieldRun;

/*! \brief Describes the discretisation.
 *
 * \param[in] setup          the discretisation
 * \param[in] numExclusions  number of excluded pairs
 * \param[in] dataPath       how coordinates and forces get to the device and back
 * \param[in] run            the boundaries, and why the FMM is on this device
 */
std::string describeSetup(const farfield::Setup& setup,
                          int                    numExclusions,
                          const std::string&     dataPath,
                          const FarfieldRun&     run);

/*! \brief Says which GPUs share the near field, and how.
 *
 * \param[in] setup  the discretisation
 * \returns an empty string if none does
 */
std::string sharesOfNearField(const farfield::Setup& setup);

/*! \brief Says that the cells were chosen for another device than the one in use.
 *
 * \param[in] setup  the discretisation
 * \returns an empty string if they were not
 */
std::string noteOnOtherDevice(const farfield::Setup& setup);

/*! \brief Says that nothing meets the accuracy.
 *
 * \param[in] setup  the discretisation
 * \returns an empty string if the one in use does
 */
std::string accuracyMessage(const farfield::Setup& setup);

/*! \brief Makes a table of times per stage; that of a stage is the sum of all calls.
 *
 * \param[in] title  the line above it
 * \param[in] times  in the order of the pipeline
 */
std::string stageTable(const std::string& title, const std::vector<farfield::StageTime>& times);

/*! \brief Says that the GPU has waited for bonded interactions on the CPU.
 *
 * \param[in] bonded  time of a step with forces on the CPU, s
 * \param[in] fmm     time of an evaluation on the GPU, which runs meanwhile, s
 * \param[in] step    time of a step, s
 * \returns an empty string if it has waited for at most a tenth of a step
 */
std::string noteOnBondedInteractions(double bonded, double fmm, double step);

//! Returns a sentence on what a rank has sent to others.
std::string describeTraffic(const farfield::Traffic& traffic);

} // namespace gmx

#endif
