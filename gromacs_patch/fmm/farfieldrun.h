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
 * \brief What a run decides about the FMM, beside the mdp options.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDRUN_H
#define GMX_FMM_FARFIELDRUN_H

#include <optional>
#include <string>
#include <vector>

#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/utility/real.h"

#include "farfieldoptions.h"

struct gmx_wallcycle;

namespace gmx
{

class MpiComm;

//! Where the FMM of this rank runs.
struct FarfieldDeviceChoice
{
    //! The backend
    farfield::Device device = farfield::Device::Cpu;
    //! CUDA device; -1 leaves it to the library
    int id = -1;
    //! The mdp option or the environment variable that decided
    std::string option;
    //! Why, for the log
    std::string reason;
};

//! Which GPUs compute a part of the near field for that of this rank.
struct FarfieldHelpers
{
    //! CUDA devices
    std::vector<int> ids;
    //! Whether the run goes on without those that turn out not to be usable
    bool mayBeLeftOut = true;
    //! Why there are these or none, for the log
    std::string reason;
};

//! How messages pass between the GPUs of several ranks.
struct FarfieldDeviceMessages
{
    //! For the log; empty with one rank, and on the CPU
    std::string way;
    //! Whether the graph of a step, which is one for all ranks, can hold them
    bool mayBeInGraphs = false;
};

//! What a run decides about the force provider, beside the mdp options.
struct FarfieldRun
{
    //! 1/(4 pi eps0 eps_r), kJ mol^-1 nm e^-2
    double coulombConstant = 0;
    //! Whether the steps follow the equations of motion
    bool integratesMotion = false;
    //! Whether frames of a trajectory are evaluated, and not the structure of the run input file
    bool isRerun = false;
    //! Whether results must be bitwise equal in every run
    bool reproducible = false;
    //! Whether particles have periodic images
    farfield::Boundary boundary = farfield::Boundary::Periodic;
    //! Whether charges differ between two states, mixed by lambda
    bool hasTwoStates = false;
    //! Width of the Gaussian charges of pairs with a perturbed atom, nm, see perturbedChargeWidth()
    real perturbedChargeWidth = 0;
    //! Which C6 dispersion has beyond the cut-off, with vdwtype = FMM
    std::optional<LongRangeVdW> dispersionRule;
    //! Where the FMM runs
    FarfieldDeviceChoice device;
    //! Who helps
    FarfieldHelpers helpers;
    //! The ranks that have atoms; nullptr for one
    const MpiComm* ranks = nullptr;
    //! How messages pass between the GPUs of several ranks
    FarfieldDeviceMessages deviceMessages;
    //! What mdrun spends its time with, if the user has bonded interactions on the CPU that the GPU could compute
    const gmx_wallcycle* bondedOnHost = nullptr;
    //! What state() returned when the checkpoint was written, or empty
    std::vector<double> checkpointState;
    //! The same of dispersion
    std::vector<double> dispersionState;
};

} // namespace gmx

#endif
