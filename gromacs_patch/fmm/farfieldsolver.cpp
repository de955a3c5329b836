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

#include "config.h"

#include <cmath>

#include <algorithm>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/gmxmpi.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/stringutil.h"

#include "farfielderrors.h"
#include "farfieldondevice.h"
#include "farfieldoptions.h"
#include "farfieldreport.h"

#if GMX_MPI
#    include <farfield/farfield_mpi.h>
#endif

namespace gmx
{

namespace
{

//! An estimated error that has changed by this factor is logged again
constexpr double c_otherError = 1.4;

//! The options of the library: those of the mdp file, and what the run decides.
farfield::Options solverOptions(const FarfieldOptions& mdp, const FarfieldRun& run)
{
    farfield::Options options = mdp.values;
    options.coulombConstant   = run.coulombConstant;
    options.boundary          = run.boundary;
    options.threads           = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    options.device            = run.device.device;
    options.deviceId          = run.device.id;
    options.reproducible      = run.reproducible;
    // What evaluates a few configurations only would spend more time on timing than it gains
    options.tune = options.tune && run.integratesMotion && !run.reproducible;
    return options;
}

} // namespace

//! Passes messages on, and counts what that takes.
class FarfieldMessages final : public farfield::Communicator
{
public:
    explicit FarfieldMessages(farfield::Communicator* passOn) : passOn_(*passOn) {}
    int  rank() const override { return passOn_.rank(); }
    int  size() const override { return passOn_.size(); }
    void exchange(const char* send, const size_t* sendOffsets, char* receive, const size_t* receiveOffsets) override
    {
        const gmx_cycles_t begin = gmx_cycles_read();
        passOn_.exchange(send, sendOffsets, receive, receiveOffsets);
        cycles_ += gmx_cycles_read() - begin;
    }
    //! Cycles of all exchanges
    gmx_cycles_t cycles() const { return cycles_; }

private:
    farfield::Communicator& passOn_;
    gmx_cycles_t            cycles_ = 0;
};

namespace
{

//! The communicator of several ranks, nullptr for one
std::unique_ptr<farfield::Communicator> makeCommunicator(const FarfieldRun& run)
{
#if GMX_MPI
    if (run.ranks != nullptr)
    {
        return std::make_unique<farfield::MpiCommunicator>(run.ranks->comm());
    }
#endif
    GMX_RELEASE_ASSERT(run.ranks == nullptr, "Several ranks need MPI");
    return nullptr;
}

/*! \brief Makes the solver of one rank.
 *
 * \param[in]     options  of the solver
 * \param[in,out] helpers  to be had; empty, with the reason, if the solver has to do without
 */
std::unique_ptr<farfield::Solver<real>> makeSolver(farfield::Options options, FarfieldHelpers* helpers)
{
    for (const int id : helpers->ids)
    {
        options.helperDevices.add(id);
    }
    try
    {
        return std::make_unique<farfield::Solver<real>>(options);
    }
    catch (const farfield::Error& error)
    {
        if (std::string(error.parameter()) != "helperDevices" || !helpers->mayBeLeftOut)
        {
            throw;
        }
        helpers->ids.clear();
        helpers->reason       = error.what();
        options.helperDevices = {};
        return std::make_unique<farfield::Solver<real>>(options);
    }
}

} // namespace

FarfieldSolver::FarfieldSolver(const FarfieldOptions& options,
                               const gmx_mtop_t&      mtop,
                               const MDLogger&        logger,
                               const FarfieldRun&     run) :
    logger_(logger),
    run_(run),
    particles_(mtop, run.hasTwoStates, run.ranks != nullptr),
    communicator_(makeCommunicator(run))
{
    try
    {
        const farfield::Options ofSolver = solverOptions(options, run);
        if (communicator_)
        {
            // Auto is the GPU that mdrun has assigned, if there is one
            if (ofSolver.device != farfield::Device::Cpu && ofSolver.deviceId >= 0)
            {
                deviceCommunicator_ = makeDeviceCommunicator(
                        communicator_.get(), ofSolver.deviceId, &run_.deviceMessages);
            }
            messages_    = std::make_unique<FarfieldMessages>(communicator_.get());
            distributed_ = std::make_unique<farfield::DistributedSolver<real>>(
                    ofSolver, messages_.get(), deviceCommunicator_.get());
        }
        else
        {
            solver_ = makeSolver(ofSolver, &run_.helpers);
        }
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, "cannot be set up");
    }
}

FarfieldSolver::~FarfieldSolver() = default;

std::string FarfieldSolver::obstacleToGraphs() const
{
    return isDistributed() && !run_.deviceMessages.mayBeInGraphs
                   ? "messages between GPUs pass " + run_.deviceMessages.way
                   : "";
}

gmx_cycles_t FarfieldSolver::cyclesOfMessages() const
{
    return messages_ ? messages_->cycles() : 0;
}

farfield::Totals FarfieldSolver::evaluate(const RVec* x, const BoxRows& box, RVec* f, const farfield::Request& request)
{
    return solver_ ? solver_->evaluate(x->as_vec(), box.rows, f->as_vec(), request)
                   : distributed_->evaluate(x->as_vec(), box.rows, f->as_vec(), request);
}

farfield::Setup FarfieldSolver::setup() const
{
    return solver_ ? solver_->setup() : distributed_->setup();
}

std::vector<double> FarfieldSolver::state() const
{
    return solver_ ? solver_->state() : distributed_->state();
}

std::string FarfieldSolver::timings() const
{
    if (solver_)
    {
        return stageTable("FMM (farfield) wall-clock time per stage", solver_->timings());
    }
    return stageTable(
                   "FMM (farfield) wall-clock time per stage on the first rank, waiting for other "
                   "ranks included",
                   distributed_->timings())
           + "\n" + describeTraffic(distributed_->traffic());
}

void FarfieldSolver::setParticles()
{
    if (distributed_)
    {
        setParticlesOfRank();
        return;
    }
    const ArrayRef<const real> charges    = particles_.charges();
    const FarfieldExclusions&  exclusions = particles_.exclusions();
    const int                  number     = static_cast<int>(charges.size());
    if (particles_.arePerturbed())
    {
        solver_->setPerturbedCharges(charges.data(), particles_.chargesB().data(), number);
    }
    else
    {
        solver_->setCharges(charges.data(), number);
    }
    solver_->setExclusions(exclusions.offsets.data(), exclusions.partners.data(), number);
}

void FarfieldSolver::setParticlesOfRank()
{
    if (!isPrepared_)
    {
        farfield::SystemOfRanks<real> system;
        system.count             = static_cast<int>(particles_.globalCharges().size());
        system.charges           = particles_.globalCharges().data();
        system.exclusionOffsets  = particles_.globalExclusions().offsets.data();
        system.exclusionPartners = particles_.globalExclusions().partners.data();
        distributed_->setSystem(system);
    }
    distributed_->setLocal(particles_.globalAtoms().data(),
                           static_cast<int>(particles_.globalAtoms().size()));
}

void FarfieldSolver::follow(const MDModulesAtomsRedistributedSignal& signal, const std::string& dataPath)
{
    try
    {
        if (particles_.follow(signal))
        {
            setParticles();
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
            if (solver_)
            {
                solver_->restore(run_.checkpointState);
            }
            else
            {
                distributed_->restore(run_.checkpointState);
            }
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
    if (solver_)
    {
        solver_->prepare(positions, BoxRows(box).rows);
    }
    else
    {
        distributed_->prepare(positions, BoxRows(box).rows);
    }
    isPrepared_ = true;
}

void FarfieldSolver::logSetup(const std::string& dataPath)
{
    const farfield::Setup setup = this->setup();
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
