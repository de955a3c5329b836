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
 * \brief Implements what one rank and several ranks do differently with libfarfield.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldranks.h"

#include "config.h"

#include <memory>
#include <string>
#include <utility>

#include <farfield/farfield_parallel.h>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/gmxmpi.h"
#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldondevice.h"
#include "farfieldoptions.h"
#include "farfieldreport.h"
#include "farfieldrun.h"
#include "farfieldtopology.h"

#if GMX_MPI
#    include <farfield/farfield_mpi.h>
#endif

namespace gmx
{

namespace
{

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

/*! \brief Adds the helpers of one rank to the options of its solver.
 *
 * \param[in,out] run      whose helpers they are; without them, and with the reason, if they are
 *                         to be timed and nothing is
 * \param[in,out] options  of the solver
 */
void addHelpers(FarfieldRun* run, farfield::Options* options)
{
    FarfieldHelpers& helpers = run->helpers;
    if (!helpers.ids.empty() && helpers.mayBeLeftOut && !options->tune)
    {
        helpers.ids.clear();
        // Not -reprod: it refuses what mdrun computes on a GPU, and others are free only beside such a one
        helpers.reason = run->integratesMotion
                                 ? formatString("nothing is timed with %s = no", farfieldSetting("tune"))
                                 : "nothing is timed without motion";
    }
    for (const int id : helpers.ids)
    {
        options->helperDevices.add(id);
    }
    options->helpersIfFaster = helpers.mayBeLeftOut;
}

//! All particles are on this rank.
class OneRank final : public FarfieldRanks
{
public:
    explicit OneRank(const farfield::Options& options) : solver_(options) {}

    farfield::CoulombSolver<real>& solver() override { return solver_; }
    farfield::Solver<real>*        solverOfOneRank() override { return &solver_; }
    std::string                    timings() override
    {
        return stageTable("FMM (farfield) wall-clock time per stage", solver_.timings());
    }
    void setParticles(const FarfieldParticles& particles) override
    {
        const ArrayRef<const real> charges    = particles.charges();
        const ArrayRef<const real> widths     = particles.widths();
        const FarfieldExclusions&  exclusions = particles.exclusions();
        const int                  number     = static_cast<int>(charges.size());
        if (particles.arePerturbed())
        {
            solver_.setPerturbedCharges(charges.data(), particles.chargesB().data(), number);
        }
        else
        {
            solver_.setCharges(charges.data(), number);
        }
        solver_.setExclusions(exclusions.offsets.data(), exclusions.partners.data(), number);
        if (!widths.empty())
        {
            solver_.setNearFunction(c_perturbedPairs, widths.data(), number);
        }
    }

private:
    farfield::Solver<real> solver_;
};

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

//! How GPUs of the ranks talk to each other; nullptr: messages pass through the host
std::unique_ptr<farfield::DeviceCommunicator> connectDevices(const farfield::Options& options,
                                                             farfield::Communicator*  host,
                                                             FarfieldRun*             run)
{
    // Auto is the GPU that mdrun has assigned, if there is one
    return options.device != farfield::Device::Cpu && options.deviceId >= 0
                   ? makeDeviceCommunicator(host, options.deviceId, &run->deviceMessages)
                   : nullptr;
}

//! Particles are divided among ranks.
class SeveralRanks final : public FarfieldRanks
{
public:
    SeveralRanks(const farfield::Options&                options,
                 std::unique_ptr<farfield::Communicator> communicator,
                 FarfieldRun*                            run) :
        communicator_(std::move(communicator)),
        messages_(communicator_.get()),
        deviceCommunicator_(connectDevices(options, communicator_.get(), run)),
        deviceMessages_(run->deviceMessages),
        solver_(options, &messages_, deviceCommunicator_.get())
    {
    }

    farfield::CoulombSolver<real>& solver() override { return solver_; }
    std::string                    timings() override
    {
        return stageTable(
                       "FMM (farfield) wall-clock time per stage on the first rank, waiting for "
                       "other ranks included",
                       solver_.timings())
               + "\n" + describeTraffic(solver_.traffic());
    }
    void setParticles(const FarfieldParticles& particles) override
    {
        if (!hasSystem_)
        {
            farfield::SystemOfRanks<real> system;
            system.count             = static_cast<int>(particles.globalCharges().size());
            system.charges           = particles.globalCharges().data();
            system.exclusionOffsets  = particles.globalExclusions().offsets.data();
            system.exclusionPartners = particles.globalExclusions().partners.data();
            solver_.setSystem(system);
            hasSystem_ = true;
        }
        solver_.setLocal(particles.globalAtoms().data(), static_cast<int>(particles.globalAtoms().size()));
    }
    gmx_cycles_t cyclesOfMessages() const override { return messages_.cycles(); }
    std::string  obstacleToGraphs() const override
    {
        return deviceMessages_.mayBeInGraphs ? "" : "messages between GPUs pass " + deviceMessages_.way;
    }

private:
    std::unique_ptr<farfield::Communicator> communicator_;
    //! The same, timed
    FarfieldMessages messages_;
    //! How their GPUs talk to each other; null if messages pass through the host
    std::unique_ptr<farfield::DeviceCommunicator> deviceCommunicator_;
    FarfieldDeviceMessages                        deviceMessages_;
    farfield::DistributedSolver<real>             solver_;
    //! Whether the solver has charges and exclusions, which stay the same
    bool hasSystem_ = false;
};

} // namespace

std::unique_ptr<FarfieldRanks> makeFarfieldRanks(const FarfieldOptions& options, FarfieldRun* run)
{
    farfield::Options ofSolver = solverOptions(options, *run);
    if (auto communicator = makeCommunicator(*run))
    {
        return std::make_unique<SeveralRanks>(ofSolver, std::move(communicator), run);
    }
    addHelpers(run, &ofSolver);
    return std::make_unique<OneRank>(ofSolver);
}

} // namespace gmx
