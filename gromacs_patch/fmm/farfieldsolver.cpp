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
 * \brief Implements the set-up of the solver of libfarfield.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldsolver.h"

#include <cmath>

#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "farfielderrors.h"
#include "farfieldreport.h"

namespace gmx
{

namespace
{

//! An estimated error that has changed by this factor is logged again
constexpr double c_otherError = 1.4;

} // namespace

void addVirial(const farfield::Totals& totals, ForceWithVirial* forceWithVirial)
{
    matrix virial;
    for (int i = 0; i < DIM; i++)
    {
        for (int j = 0; j < DIM; j++)
        {
            virial[i][j] = totals.virial[i][j];
        }
    }
    forceWithVirial->addVirialContribution(virial);
}

FarfieldSolver::FarfieldSolver(const FarfieldOptions& options,
                               const gmx_mtop_t&      mtop,
                               const MDLogger&        logger,
                               const FarfieldRun&     run) :
    logger_(logger), run_(run), particles_(mtop, run)
{
    try
    {
        ranks_ = makeFarfieldRanks(options, &run_);
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, "cannot be set up");
    }
}

FarfieldSolver::~FarfieldSolver() = default;

farfield::Totals FarfieldSolver::evaluate(const RVec* x, const BoxRows& box, RVec* f, const farfield::Request& request)
{
    return solver().evaluate(x->as_vec(), box.rows, f->as_vec(), request);
}

void FarfieldSolver::follow(const MDModulesAtomsRedistributedSignal& signal, const std::string& dataPath)
{
    try
    {
        if (particles_.follow(signal))
        {
            ranks_->setParticles(particles_);
        }
        // Several ranks plan what they exchange at the first evaluation after atoms have changed domains
        if (!isPrepared_)
        {
            prepare(signal.x_, signal.box_);
        }
        logSetup(dataPath);
    }
    catch (const farfield::Error& error)
    {
        rethrowFor(error, signal.x_, "cannot be set up for this system");
    }
}

farfield::Request FarfieldSolver::request(const int64_t step, const StepWorkload& stepWork, const real lambda)
{
    // Trial configurations have a number of their own, which is that of no step
    if (!stepWork.isTrialConfiguration)
    {
        step_ = step;
    }
    farfield::Request result;
    result.energy = stepWork.computeEnergy;
    result.virial = stepWork.computeVirial;
    result.lambda = lambda;
    // The energy file has dV/dlambda at the steps with energies
    result.dEnergyDLambda = particles_.arePerturbed() && (stepWork.computeDhdl || stepWork.computeEnergy);
    if (run_.integratesMotion)
    {
        // What is compared is on one grid: the configurations of a minimiser, or the trials of a step
        result.step = step_;
    }
    return result;
}

void FarfieldSolver::prepare(ArrayRef<const RVec> x, const Matrix3x3& box)
{
    if (!isPrepared_ && !run_.checkpointState.empty())
    {
        try
        {
            solver().restore(run_.checkpointState);
        }
        catch (const farfield::Error& error)
        {
            // The user may continue with a tpr file that has other options
            GMX_LOG(logger_.warning)
                    .asParagraph()
                    .appendText(formatString(
                            "The FMM cells of the checkpoint are not used. %s New cells are "
                            "chosen. The forces have the requested accuracy, but the run is not "
                            "bitwise equal to an uninterrupted one.",
                            describeFarfieldError(error, run_.device.option).c_str()));
        }
    }
    // Of a rank without atoms there is no first one
    const real* positions =
            particles_.globalAtoms().empty() ? nullptr : particles_.positions(x)->as_vec();
    solver().prepare(positions, BoxRows(box).rows);
    isPrepared_ = true;
}

void FarfieldSolver::logSetup(const std::string& dataPath)
{
    const farfield::Setup setup = solver().setup();
    if (setup.cells != loggedSetup_.cells || setup.order != loggedSetup_.order
        || setup.directRange != loggedSetup_.directRange || setup.m2l != loggedSetup_.m2l)
    {
        const int numExclusions = particles_.numExcludedPairs();
        GMX_LOG(logger_.info).asParagraph().appendText(describeSetup(setup, numExclusions, dataPath, run_));
        if (const std::string note = noteOnOtherDevice(setup); !note.empty())
        {
            GMX_LOG(logger_.info).asParagraph().appendText(note);
        }
    }
    else if (std::abs(std::log(setup.estimatedError / loggedSetup_.estimatedError)) > std::log(c_otherError))
    {
        GMX_LOG(logger_.info)
                .asParagraph()
                .appendText(formatString(
                        "Forces have changed since FMM cells were chosen. With the same cells the "
                        "estimated error is now %.1e (relative RMS force error).",
                        setup.estimatedError));
    }
    else if (setup.isBestEffort == loggedSetup_.isBestEffort)
    {
        return;
    }
    if (setup.isBestEffort && !loggedSetup_.isBestEffort)
    {
        GMX_LOG(logger_.warning).asParagraph().appendText(accuracyMessage(setup));
    }
    loggedSetup_ = setup;
}

void FarfieldSolver::rethrow(const farfield::Error& error, const std::string& when) const
{
    rethrowFarfieldError(error, when, run_.device.option);
}

void FarfieldSolver::rethrowFor(const farfield::Error& error, ArrayRef<const RVec> x, const std::string& when) const
{
    // The library counts particles in local order, which means nothing to the user
    if (const int atom = particles_.findBadPosition(x); atom >= 0)
    {
        throwForFarfieldPosition(atom, when);
    }
    rethrow(error, when);
}

} // namespace gmx
