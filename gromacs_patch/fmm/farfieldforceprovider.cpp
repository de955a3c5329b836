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
 * \brief Implements the force provider that calls libfarfield.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldforceprovider.h"

#include <cstdint>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include <farfield/farfield.h>

#include "gromacs/domdec/dlbtiming.h"
#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/timing/cyclecounter.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "farfielddispersion.h"
#include "farfieldondevice.h"
#include "farfieldreference.h"
#include "farfieldreport.h"
#include "farfieldsolver.h"

namespace gmx
{

namespace
{

//! The coupling parameter that charges have, of all of a step.
real lambdaOfCharges(const ArrayRef<const real> lambda)
{
    GMX_RELEASE_ASSERT(!lambda.empty(), "mdrun tells lambda");
    return lambda[static_cast<int>(FreeEnergyPerturbationCouplingType::Coul)];
}

//! Adds the energy, its derivative with respect to lambda, and the virial to the output of a step that computes them.
void addTotals(const farfield::Totals& totals,
               const StepWorkload&     stepWork,
               ForceWithVirial*        forceWithVirial,
               gmx_enerdata_t*         enerd)
{
    if (stepWork.computeEnergy)
    {
        // Added, as the charge correction and LJ-PME assign this term before
        enerd->term[InteractionFunction::CoulombReciprocalSpace] += totals.energy;
    }
    // Zero where it was not computed; linear, so that energies at other lambdas follow from it
    enerd->dvdl_lin[FreeEnergyPerturbationCouplingType::Coul] += totals.dEnergyDLambda;
    if (stepWork.computeVirial)
    {
        addVirial(totals, forceWithVirial);
    }
}

} // namespace

class FarfieldForceProvider::Impl
{
public:
    Impl(const FarfieldOptions& options, const gmx_mtop_t& mtop, const MDLogger& logger, const FarfieldRun& run) :
        logger_(logger), bondedOnHost_(run.bondedOnHost), fmm_(options, mtop, logger, run)
    {
        if (farfieldReferenceIsWanted())
        {
            reference_ = std::make_unique<FarfieldReference>(run, logger);
        }
    }

    //! Evaluates on the host; throws farfield::Error
    farfield::Totals evaluate(const RVec* x, const BoxRows& box, RVec* f, const farfield::Request& request, int64_t step)
    {
        return reference_ ? reference_->evaluate(x, box, f, request, step)
                          : fmm_.evaluate(x, box, f, request);
    }

    //! Adds the energies of groups to their terms, and returns the sum
    double addGroupEnergies(const RVec*              x,
                            const BoxRows&           box,
                            const farfield::Request& request,
                            gmx_enerdata_t*          enerd);

    //! Waits for the device, and throws what it has met
    farfield::Totals wait();
    //! Throws the GROMACS exception for an \p error of a launch
    [[noreturn]] void rethrowOnDevice(const farfield::Error& error);
    //! Says what bonded interactions on the CPU cost beside an evaluation of so many seconds
    std::string noteOnBonded(double evaluation) const;

    const MDLogger& logger_;
    //! See FarfieldRun
    const gmx_wallcycle* bondedOnHost_;
    //! The same moment in cycles and as a time
    const gmx_cycles_t                          startCycles_ = gmx_cycles_read();
    const std::chrono::steady_clock::time_point start_       = std::chrono::steady_clock::now();
    FarfieldSolver                              fmm_;
    //! Evaluates in place of the solver, where the environment asks for it
    std::unique_ptr<FarfieldReference> reference_;

    //! Set when coordinates and forces stay on the device
    std::unique_ptr<FarfieldOnDevice> device_;
    //! Set when dispersion is computed there, too
    FarfieldDispersion* dispersion_ = nullptr;
    //! Where coordinates and forces are, for the log
    std::string dataPath_;
    //! Box, step and lambda of the last launch on the device, and the step also of replays known of
    BoxRows launchedBox_    = BoxRows([](int, int) { return 0.0; });
    int64_t launchedStep_   = -1;
    real    launchedLambda_ = 0;

    //! Forces without filler particles
    std::vector<RVec> f_;
};

double FarfieldForceProvider::Impl::addGroupEnergies(const RVec*              x,
                                                     const BoxRows&           box,
                                                     const farfield::Request& request,
                                                     gmx_enerdata_t*          enerd)
{
    const FarfieldParticles&  particles = fmm_.particles();
    const std::vector<double> energies  = fmm_.ranks().solverOfOneRank()->groupEnergies(
            x->as_vec(), box.rows, particles.energyGroups().data(), particles.numEnergyGroups(), request);
    auto& terms = enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::CoulombSR];
    GMX_RELEASE_ASSERT(terms.size() == energies.size(), "The groups are those of the topology");
    double sum = 0;
    for (size_t i = 0; i < energies.size(); i++)
    {
        const real energy = energies[i];
        terms[i] += energy;
        sum += energy;
    }
    return sum;
}

farfield::Totals FarfieldForceProvider::Impl::wait()
{
    try
    {
        return device_->wait();
    }
    catch (const farfield::Error& error)
    {
        rethrowOnDevice(error);
    }
}

void FarfieldForceProvider::Impl::rethrowOnDevice(const farfield::Error& error)
{
    // The device may have met it at an earlier step, since it was last waited for
    const std::string when = "stopped at or before step " + std::to_string(launchedStep_);
    std::vector<RVec> x;
    if (error.code() == farfield::ErrorCode::InvalidArgument)
    {
        try
        {
            x = device_->coordinates();
        }
        catch (const farfield::Error&)
        {
            // What went wrong first is to be told
        }
    }
    if (static_cast<int>(x.size()) == fmm_.particles().numHome())
    {
        fmm_.rethrowFor(error, x, when);
    }
    fmm_.rethrow(error, when);
}

std::string FarfieldForceProvider::Impl::noteOnBonded(const double evaluation) const
{
    int    steps = 0, calls = 0;
    double cyclesOfSteps = 0, cyclesOfForces = 0;
    if (bondedOnHost_ != nullptr)
    {
        wallcycle_get(bondedOnHost_, WallCycleCounter::Step, &steps, &cyclesOfSteps);
        wallcycle_get(bondedOnHost_, WallCycleCounter::Force, &calls, &cyclesOfForces);
    }
    if (steps == 0)
    {
        return {};
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
    const double perStep = time.count() / static_cast<double>(gmx_cycles_read() - startCycles_) / steps;
    return noteOnBondedInteractions(cyclesOfForces * perStep, evaluation, cyclesOfSteps * perStep);
}

FarfieldForceProvider::FarfieldForceProvider(const FarfieldOptions& options,
                                             const gmx_mtop_t&      mtop,
                                             const MDLogger&        logger,
                                             const FarfieldRun&     run) :
    impl_(std::make_unique<Impl>(options, mtop, logger, run))
{
}

FarfieldForceProvider::~FarfieldForceProvider() = default;

farfield::Device FarfieldForceProvider::device() const
{
    return impl_->fmm_.solver().setup().device;
}

void FarfieldForceProvider::addDispersion(FarfieldDispersion* dispersion)
{
    impl_->dispersion_ = dispersion;
    impl_->device_->addDispersion(dispersion);
}

bool FarfieldForceProvider::useDevice(const DeviceContext* deviceContext,
                                      const std::string&   obstacle,
                                      const std::string&   updateOnHost)
{
    if (device() != farfield::Device::Gpu || impl_->reference_)
    {
        return false;
    }
    std::string reason = obstacle;
    if (reason.empty() && !FarfieldOnDevice::isCompiled())
    {
        reason = "GROMACS and the library were not both built with CUDA";
    }
    if (!reason.empty())
    {
        impl_->dataPath_ = "pass through the host: " + reason;
        return false;
    }
    GMX_RELEASE_ASSERT(deviceContext != nullptr, "Without a device there is an obstacle");
    impl_->device_   = std::make_unique<FarfieldOnDevice>(&impl_->fmm_.ranks(), *deviceContext);
    impl_->dataPath_ = updateOnHost.empty() ? "stay on the GPU"
                                            : "on the GPU, copied at every step: " + updateOnHost;
    return true;
}

void FarfieldForceProvider::atomsRedistributed(const MDModulesAtomsRedistributedSignal& signal)
{
    impl_->fmm_.follow(signal, impl_->dataPath_);
    if (impl_->reference_)
    {
        impl_->reference_->setParticles(impl_->fmm_.particles());
    }
}

void FarfieldForceProvider::calculateForces(const ForceProviderInput& forceProviderInput,
                                            ForceProviderOutput*      forceProviderOutput)
{
    GMX_RELEASE_ASSERT(impl_->fmm_.isPrepared()
                               && forceProviderInput.homenr_ == impl_->fmm_.particles().numHome(),
                       "The local atoms must be known before forces are computed");

    ForceWithVirial& forceWithVirial = forceProviderOutput->forceWithVirial_;
    GMX_RELEASE_ASSERT(forceProviderInput.stepWork_ != nullptr, "mdrun tells what a step computes");
    const StepWorkload& stepWork = *forceProviderInput.stepWork_;
    auto                request  = impl_->fmm_.request(
            forceProviderInput.step_, stepWork, lambdaOfCharges(forceProviderInput.lambda_));

    const BoxRows box = BoxRows::fromMatrix(forceProviderInput.box_);
    const RVec*   x   = impl_->fmm_.particles().positions(forceProviderInput.x_);
    RVec*         f   = forceWithVirial.force_.data();
    // Without the filler particles, unless there are none
    const ArrayRef<const int> homeAtoms = impl_->fmm_.particles().homeAtoms();
    if (!homeAtoms.empty())
    {
        impl_->f_.resize(homeAtoms.size());
        f                     = impl_->f_.data();
        request.replaceForces = true;
    }

    const gmx_cycles_t begin          = gmx_cycles_read();
    const gmx_cycles_t messagesBefore = impl_->fmm_.ranks().cyclesOfMessages();
    farfield::Totals   totals;
    try
    {
        totals = impl_->evaluate(x, box, f, request, forceProviderInput.step_);
        if (stepWork.computeEnergy && !impl_->reference_ && impl_->fmm_.particles().numEnergyGroups() > 1)
        {
            // What the term of the whole energy has is the rounding of the others
            totals.energy -= impl_->addGroupEnergies(x, box, request, &forceProviderOutput->enerd_);
        }
    }
    catch (const farfield::Error& error)
    {
        impl_->fmm_.rethrowFor(error,
                               forceProviderInput.x_,
                               "stopped at step " + std::to_string(forceProviderInput.step_));
    }

    for (size_t i = 0; i < homeAtoms.size(); i++)
    {
        forceWithVirial.force_[homeAtoms[i]] += impl_->f_[i];
    }
    addTotals(totals, stepWork, &forceWithVirial, &forceProviderOutput->enerd_);

    if (impl_->fmm_.ranks().solverOfOneRank() == nullptr)
    {
        // Dynamic load balancing sees what this rank has done, but not that it has waited for others
        const gmx_cycles_t waited = impl_->fmm_.ranks().cyclesOfMessages() - messagesBefore;
        ddAddToBalanceRegionCpu(forceProviderInput.dd_, gmx_cycles_read() - begin - waited, waited);
    }
}

void FarfieldForceProvider::reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction)
{
    GMX_RELEASE_ASSERT(impl_->fmm_.isPrepared() && impl_->fmm_.particles().homeAtoms().empty(),
                       "The local atoms must be known, without filler particles");
    try
    {
        impl_->device_->reinit(stateGpu, forceReduction);
    }
    catch (const farfield::Error& error)
    {
        impl_->fmm_.rethrow(error, "cannot be set up on the GPU");
    }
}

bool FarfieldForceProvider::mustBeRecordedAgain(const matrix box, const ArrayRef<const real> lambda) const
{
    if (!obstacleToGraphs().empty())
    {
        return true;
    }
    // The first step with another lambda or box sets up the FMM for it, which a graph can not hold
    if (impl_->fmm_.particles().arePerturbed() && lambdaOfCharges(lambda) != impl_->launchedLambda_)
    {
        return true;
    }
    for (int i = 0; i < DIM; i++)
    {
        for (int j = 0; j < DIM; j++)
        {
            if (impl_->launchedBox_.rows[i][j] != box[i][j])
            {
                return true;
            }
        }
    }
    return impl_->device_->mustBeRecordedAgain();
}

std::string FarfieldForceProvider::obstacleToGraphs() const
{
    return impl_->fmm_.ranks().obstacleToGraphs();
}

bool FarfieldForceProvider::recordingsMayBeUpdated() const
{
    return impl_->device_->recordingsMayBeUpdated();
}

void FarfieldForceProvider::waitForLaunches(const int64_t step)
{
    impl_->launchedStep_ = step - 1;
    impl_->wait();
}

void FarfieldForceProvider::launch(const matrix               box,
                                   const int64_t              step,
                                   const StepWorkload&        stepWork,
                                   const ArrayRef<const real> lambda,
                                   GpuEventSynchronizer*      xReadyOnDevice)
{
    impl_->launchedBox_    = BoxRows::fromMatrix(box);
    impl_->launchedStep_   = step;
    impl_->launchedLambda_ = lambdaOfCharges(lambda);
    try
    {
        impl_->device_->launch(impl_->launchedBox_.rows,
                               impl_->fmm_.request(step, stepWork, impl_->launchedLambda_),
                               step,
                               !stepWork.useGpuFBufferOps,
                               xReadyOnDevice);
    }
    catch (const farfield::Error& error)
    {
        impl_->rethrowOnDevice(error);
    }
}

void FarfieldForceProvider::waitAndReduce(const StepWorkload& stepWork,
                                          ForceWithVirial*    forceWithVirial,
                                          gmx_enerdata_t*     enerd)
{
    const farfield::Totals totals = impl_->wait();
    if (!stepWork.useGpuFBufferOps)
    {
        const ArrayRef<const RVec> forces     = impl_->device_->forces();
        const ArrayRef<RVec>       sums       = forceWithVirial->force_;
        const int gmx_unused       numThreads = gmx_omp_nthreads_get(ModuleMultiThread::Default);
#pragma omp parallel for num_threads(numThreads) schedule(static)
        for (Index i = 0; i < forces.ssize(); i++)
        {
            sums[i] += forces[i];
        }
    }
    addTotals(totals, stepWork, forceWithVirial, enerd);
    if (impl_->dispersion_ != nullptr)
    {
        impl_->dispersion_->addTotals(impl_->device_->dispersionTotals(), stepWork, forceWithVirial, enerd);
    }
}

std::vector<double> FarfieldForceProvider::state() const
{
    return impl_->fmm_.solver().state();
}

void FarfieldForceProvider::logTimings() const
{
    if (impl_->reference_)
    {
        return;
    }
    // Forces may have changed since the last pair search
    impl_->fmm_.logSetup(impl_->dataPath_);
    std::string text, note;
    if (!impl_->device_ || impl_->fmm_.ranks().solverOfOneRank() == nullptr)
    {
        text = impl_->fmm_.ranks().timings();
    }
    else if (impl_->launchedStep_ >= 0)
    {
        try
        {
            const std::vector<farfield::StageTime> stages =
                    impl_->device_->measureStages(impl_->launchedBox_.rows, impl_->launchedLambda_);
            text = stageTable(
                    "FMM (farfield) GPU time per stage, measured after the last step, "
                    "without overlap",
                    stages);
            note = impl_->noteOnBonded(std::accumulate(stages.begin(),
                                                       stages.end(),
                                                       0.0,
                                                       [](const double sum, const auto& stage)
                                                       { return sum + stage.seconds; }));

            const farfield::Setup setup  = impl_->fmm_.solver().setup();
            const std::string     shares = sharesOfNearField(setup);
            if (!shares.empty())
            {
                text += "\n  near field shared at last with " + shares;
            }
            else if (!setup.helpersLost.empty())
            {
                text += "\n  near field shared at last with no other GPU: " + setup.helpersLost;
            }
        }
        catch (const farfield::Error& error)
        {
            text = std::string("FMM (farfield) could not measure its stages: ") + error.what();
        }
    }
    GMX_LOG(impl_->logger_.info).asParagraph().appendText(text);
    if (!note.empty())
    {
        GMX_LOG(impl_->logger_.warning).asParagraph().appendText(note);
    }
}

} // namespace gmx
