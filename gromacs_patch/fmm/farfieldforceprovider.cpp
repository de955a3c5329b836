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

#include <cmath>
#include <cstdint>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include <farfield/farfield.h>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"
#include "gromacs/utility/vec.h"

#include "farfieldondevice.h"
#include "farfieldoptions.h"

namespace gmx
{

namespace
{

//! Translates the mdp options, and what the run decides, to the options of the library.
farfield::Options translate(const FarfieldOptions& mdp, const FarfieldRun& run)
{
    farfield::Options options;
    options.coulombConstant = run.coulombConstant;
    options.accuracy        = mdp.accuracy;
    options.order           = mdp.order;
    options.directRange     = mdp.directRange;
    options.cellSize        = mdp.cellSize;
    options.threads         = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    options.deviceId        = run.device.id;
    options.reproducible    = run.reproducible;
    // What evaluates a few configurations only would spend more time on timing than it gains
    options.tune = mdp.tune && run.integratesMotion && !run.reproducible;
    switch (mdp.m2l)
    {
        case FarfieldM2l::Hierarchy: options.m2l = farfield::M2lEngine::Hierarchy; break;
        case FarfieldM2l::Fft: options.m2l = farfield::M2lEngine::Fft; break;
        case FarfieldM2l::Naive: options.m2l = farfield::M2lEngine::Naive; break;
        case FarfieldM2l::Dynamic: options.m2l = farfield::M2lEngine::Dynamic; break;
        case FarfieldM2l::Symmetric: options.m2l = farfield::M2lEngine::Symmetric; break;
        case FarfieldM2l::Gemm: options.m2l = farfield::M2lEngine::Gemm; break;
        default: options.m2l = farfield::M2lEngine::Auto;
    }
    switch (run.device.device)
    {
        case FarfieldDevice::Cpu: options.device = farfield::Device::Cpu; break;
        case FarfieldDevice::Gpu: options.device = farfield::Device::Gpu; break;
        default: options.device = farfield::Device::Auto;
    }
    return options;
}

/*! \brief Returns what the user has to change for a parameter of the library, or an empty string.
 *
 * \param[in] parameter     farfield::Error::parameter()
 * \param[in] deviceOption  what decided on the device, see FarfieldDeviceChoice
 */
std::string userOption(const std::string& parameter, const std::string& deviceOption)
{
    const std::map<std::string, std::string> options = {
        { "accuracy", "fmm-farfield-accuracy" },
        { "order", "fmm-farfield-order" },
        { "directRange", "fmm-farfield-direct-range" },
        { "cellSize", "fmm-farfield-cell-size" },
        { "m2l", "fmm-farfield-m2l" },
        { "device", deviceOption },
        { "deviceId", "mdrun -gpu_id" },
        { "threads", "mdrun -ntomp" },
        { "coulombConstant", "epsilon-r" },
    };
    const auto found = options.find(parameter);
    return found == options.end() ? "" : found->second;
}

//! Returns the library's text, and then the option at fault by the name that the user knows.
std::string describeError(const farfield::Error& error, const std::string& deviceOption)
{
    const std::string option = userOption(error.parameter(), deviceOption);
    return error.what() + (option.empty() ? "" : " The option to change is " + option + ".");
}

//! Throws the GROMACS exception that corresponds to \p error.
[[noreturn]] void rethrow(const farfield::Error& error, const std::string& when, const std::string& deviceOption)
{
    const std::string start   = formatString("FMM (fmm-backend = farfield) %s: ", when.c_str());
    const std::string message = start + describeError(error, deviceOption);
    switch (error.code())
    {
        case farfield::ErrorCode::InvalidArgument: GMX_THROW(InvalidInputError(message));
        case farfield::ErrorCode::Unsupported: GMX_THROW(NotImplementedError(message));
        case farfield::ErrorCode::NotCompiled:
        case farfield::ErrorCode::DeviceFailure:
            GMX_THROW(InconsistentInputError(start + error.what() + " Set " + deviceOption
                                             + " = cpu to run FMM without a GPU."));
        case farfield::ErrorCode::OutOfMemory:
            GMX_THROW(InconsistentInputError(
                    start + error.what()
                    + " Use a larger fmm-farfield-cell-size or a lower fmm-farfield-order."));
    }
    GMX_THROW(InternalError(message));
}

//! Compressed rows of the atoms that are excluded from interacting with an atom.
struct Exclusions
{
    std::vector<int> offsets = { 0 };
    std::vector<int> partners;
};

/*! \brief Collects the exclusions of the whole system, in both directions and without self.
 *
 * A pair appears once even when it is excluded by its molecule type as well as by the
 * intermolecular exclusion group. That group lists all pairs of its atoms without naming them, and
 * QM/MM, which uses it, takes the charges of its atoms away: only charged atoms have to be paired.
 *
 * \param[in] mtop     the global topology
 * \param[in] charges  the charges of the whole system
 */
Exclusions collectExclusions(const gmx_mtop_t& mtop, const std::vector<real>& charges)
{
    std::vector<int> group;
    std::copy_if(mtop.intermolecularExclusionGroup.begin(),
                 mtop.intermolecularExclusionGroup.end(),
                 std::back_inserter(group),
                 [&charges](const int atom) { return charges[atom] != 0; });
    std::sort(group.begin(), group.end());

    Exclusions       result;
    std::vector<int> row;
    int              moleculeOffset = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
        for (int molecule = 0; molecule < molblock.nmol; molecule++)
        {
            for (int i = 0; i < moltype.atoms.nr; i++)
            {
                const int globalI = moleculeOffset + i;
                row.clear();
                for (const int j : moltype.excls[i])
                {
                    row.push_back(moleculeOffset + j);
                }
                if (std::binary_search(group.begin(), group.end(), globalI))
                {
                    row.insert(row.end(), group.begin(), group.end());
                }
                std::sort(row.begin(), row.end());
                row.erase(std::unique(row.begin(), row.end()), row.end());
                std::copy_if(row.begin(),
                             row.end(),
                             std::back_inserter(result.partners),
                             [globalI](const int j) { return j != globalI; });
                result.offsets.push_back(static_cast<int>(result.partners.size()));
            }
            moleculeOffset += moltype.atoms.nr;
        }
    }
    return result;
}

//! Returns the charges of state A of the whole system.
std::vector<real> collectCharges(const gmx_mtop_t& mtop)
{
    std::vector<real> charges;
    charges.reserve(mtop.natoms);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int molecule = 0; molecule < molblock.nmol; molecule++)
        {
            for (int i = 0; i < atoms.nr; i++)
            {
                charges.push_back(atoms.atom[i].q);
            }
        }
    }
    return charges;
}

//! Returns the name of an engine in the mdp file.
const char* engineName(const farfield::M2lEngine engine)
{
    switch (engine)
    {
        case farfield::M2lEngine::Fft: return "fft";
        case farfield::M2lEngine::Naive: return "naive";
        case farfield::M2lEngine::Dynamic: return "dynamic";
        case farfield::M2lEngine::Symmetric: return "symmetric";
        case farfield::M2lEngine::Gemm: return "gemm";
        default: return "hierarchy";
    }
}

/*! \brief Describes the discretisation for the log.
 *
 * \param[in] setup          the discretisation
 * \param[in] numExclusions  number of excluded pairs
 * \param[in] dataPath       how coordinates and forces get to the device and back
 * \param[in] deviceChoice   why the FMM is on this device
 */
std::string describe(const farfield::Setup&      setup,
                     const int                   numExclusions,
                     const std::string&          dataPath,
                     const FarfieldDeviceChoice& deviceChoice)
{
    const char* device = (setup.device == farfield::Device::Gpu ? "GPU" : "CPU");
    const auto& h      = setup.cells;

    std::string text = formatString("FMM electrostatics with farfield %s\n", farfield::version());
    text += formatString("  multipole order          %d\n", setup.order);
    text += formatString("  direct range (ws)        %d\n", setup.directRange);
    text += formatString(
            "  leaf cells               %lld, H = (%d 0 0 / %d %d 0 / %d %d %d), cell size %.3f "
            "nm\n",
            setup.leafCells,
            h[0][0],
            h[1][0],
            h[1][1],
            h[2][0],
            h[2][1],
            h[2][2],
            setup.cellSize);
    text += formatString("  levels                   %d\n", setup.levels);
    text += formatString("  M2L engine               %s, %s operators\n",
                         engineName(setup.m2l),
                         setup.leastSquares ? "least-squares" : "truncated");
    text += formatString("  estimated error          %.1e (relative RMS force error)\n",
                         setup.estimatedError);
    text += formatString("  device                   %s (%s), %d OpenMP thread%s\n",
                         device,
                         setup.deviceName.c_str(),
                         setup.threads,
                         setup.threads == 1 ? "" : "s");
    text += formatString("  device chosen by         %s%s\n",
                         deviceChoice.reason.c_str(),
                         deviceChoice.id >= 0 && setup.device == farfield::Device::Cpu
                                 ? ", which the library can not use"
                                 : "");
    if (setup.device == farfield::Device::Gpu)
    {
        text += formatString("  coordinates and forces   %s\n", dataPath.c_str());
    }
    text += formatString("  excluded pairs           %d\n", numExclusions);
    if (!setup.timed.empty())
    {
        text += "  settings that were timed (fmm-farfield-tune), forces alone:\n";
    }
    for (const farfield::TimedSetting& timed : setup.timed)
    {
        text += formatString(
                "    order %2d, direct range %d, cell size %.3f nm, levels %d, %-9s %10.1f us%s\n",
                timed.order,
                timed.directRange,
                timed.cellSize,
                timed.levels,
                engineName(timed.m2l),
                1e6 * timed.seconds,
                timed.isInUse ? ", in use" : "");
    }
    return text;
}

//! The box as the library takes it.
struct BoxRows
{
    template<typename Box>
    explicit BoxRows(const Box& element)
    {
        for (int i = 0; i < DIM; i++)
        {
            for (int j = 0; j < DIM; j++)
            {
                rows[i][j] = element(i, j);
            }
        }
    }
    static BoxRows fromMatrix(const matrix box)
    {
        return BoxRows([box](const int i, const int j) { return box[i][j]; });
    }
    double rows[DIM][DIM];
};

//! Adds the energy and the virial to the output of a step that computes them.
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
    if (stepWork.computeVirial)
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
}

//! Makes a table for the log; a stage time is that of all calls.
std::string stageTable(const std::string& title, const std::vector<farfield::StageTime>& times)
{
    double    total    = 0;
    long long maxCalls = 0;
    for (const auto& stage : times)
    {
        total += stage.seconds;
        maxCalls = std::max(maxCalls, stage.calls);
    }
    const auto row = [total](const std::string& name, const long long calls, const double seconds)
    {
        return formatString("  %-24s %10lld %12.3f %12.4f %8.1f\n",
                            name.c_str(),
                            calls,
                            seconds,
                            calls > 0 ? 1000 * seconds / static_cast<double>(calls) : 0.0,
                            total > 0 ? 100 * seconds / total : 0.0);
    };
    std::string text = title + "\n";
    text += formatString(
            "  %-24s %10s %12s %12s %8s\n", "Stage", "Calls", "Seconds", "ms/call", "Share %");
    for (const auto& stage : times)
    {
        text += row(stage.name, stage.calls, stage.seconds);
    }
    text += row("Total", maxCalls, total);
    return stripString(text);
}

} // namespace

class FarfieldForceProvider::Impl
{
public:
    Impl(const FarfieldOptions& options, const gmx_mtop_t& mtop, const MDLogger& logger, const FarfieldRun& run) :
        mtop_(mtop), logger_(logger), run_(run), solver_(translate(options, run))
    {
    }

    //! What to ask of the solver at \p step
    farfield::Request request(int64_t step, const StepWorkload& stepWork);
    //! Sets up the solver for the local atoms; throws farfield::Error
    void setAtoms(const MDModulesAtomsRedistributedSignal& signal);
    //! Chooses the discretisation, or takes it over from the checkpoint; throws farfield::Error
    void prepare(ArrayRef<const RVec> x, const Matrix3x3& box);
    //! Writes the discretisation to the log when it has changed
    void logSetup();
    //! Returns the positions of the particles: \p x itself unless there are filler particles
    const RVec* particlePositions(ArrayRef<const RVec> x);
    //! Throws the GROMACS exception for an \p error that was thrown for positions \p x
    [[noreturn]] void rethrowFor(const farfield::Error& error,
                                 ArrayRef<const RVec>   x,
                                 const std::string&     when) const;
    //! The same for coordinates on the device
    [[noreturn]] void rethrowOnDevice(const farfield::Error& error) const;

    const gmx_mtop_t& mtop_;
    const MDLogger&   logger_;
    const FarfieldRun run_;

    farfield::Solver<real> solver_;
    //! Set when coordinates and forces stay on the device
    std::unique_ptr<FarfieldOnDevice> device_;
    //! Where coordinates and forces are, for the log
    std::string dataPath_;
    //! The last step that was not a trial configuration
    int64_t step_ = 0;
    //! Box and step of the last launch on the device
    BoxRows launchedBox_  = BoxRows([](int, int) { return 0.0; });
    int64_t launchedStep_ = -1;

    //! Whether the operators have been set up
    bool isPrepared_ = false;
    //! What was last reported
    farfield::Setup loggedSetup_;

    //! Charges of the whole system
    std::vector<real> charges_;
    //! Exclusions of the whole system
    Exclusions exclusions_;

    //! Number of home atoms, filler particles included
    int numHome_ = 0;
    //! Home atom of each particle, empty when they are the same
    std::vector<int> homeAtom_;
    //! Global atom of each particle, empty when they are the same
    std::vector<int> globalAtom_;

    //! Particle of each global atom
    std::vector<int> particleOfGlobalAtom_;
    //! Charges in the order of the particles
    std::vector<real> particleCharges_;
    //! Exclusions in the order of the particles, j > i only
    Exclusions particleExclusions_;
    //! Positions and forces without filler particles
    std::vector<RVec> x_, f_;
};

farfield::Request FarfieldForceProvider::Impl::request(const int64_t step, const StepWorkload& stepWork)
{
    // Trial configurations have a number of their own, which is that of no step
    if (!stepWork.isTrialConfiguration)
    {
        step_ = step;
    }
    farfield::Request result;
    result.energy = stepWork.computeEnergy;
    result.virial = stepWork.computeVirial;
    if (run_.integratesMotion)
    {
        // What is compared is on one grid: the configurations of a minimiser, or the trials of a step
        result.step = step_;
    }
    return result;
}

void FarfieldForceProvider::Impl::setAtoms(const MDModulesAtomsRedistributedSignal& signal)
{
    // Collected only now, as a run may still extend the exclusions when it starts (MiMiC)
    const bool isFirst = charges_.empty();
    if (isFirst)
    {
        charges_    = collectCharges(mtop_);
        exclusions_ = collectExclusions(mtop_, charges_);
    }

    const int numGlobal = mtop_.natoms;
    numHome_            = static_cast<int>(signal.x_.size());
    if (!signal.globalAtomIndices_.has_value())
    {
        // The local order is the global order, always
        GMX_RELEASE_ASSERT(numHome_ == numGlobal, "All atoms are local without reordering");
        if (!isFirst)
        {
            return;
        }
        globalAtom_.resize(numGlobal);
        for (int i = 0; i < numGlobal; i++)
        {
            globalAtom_[i] = i;
        }
        homeAtom_.clear();
    }
    else
    {
        homeAtom_.clear();
        globalAtom_.clear();
        for (int i = 0; i < numHome_; i++)
        {
            // Filler particles, which pad clusters, have no global atom
            if (const int global = signal.globalAtomIndices_.value()[i]; global >= 0)
            {
                homeAtom_.push_back(i);
                globalAtom_.push_back(global);
            }
        }
        if (static_cast<int>(globalAtom_.size()) == numHome_)
        {
            homeAtom_.clear();
        }
    }
    GMX_RELEASE_ASSERT(static_cast<int>(globalAtom_.size()) == numGlobal,
                       "With a single rank all atoms of the system are home atoms");

    particleOfGlobalAtom_.resize(numGlobal);
    particleCharges_.resize(numGlobal);
    for (int i = 0; i < numGlobal; i++)
    {
        particleOfGlobalAtom_[globalAtom_[i]] = i;
        particleCharges_[i]                   = charges_[globalAtom_[i]];
    }
    particleExclusions_.offsets.resize(1);
    particleExclusions_.partners.clear();
    for (int i = 0; i < numGlobal; i++)
    {
        const int globalI = globalAtom_[i];
        for (int k = exclusions_.offsets[globalI]; k < exclusions_.offsets[globalI + 1]; k++)
        {
            if (const int j = particleOfGlobalAtom_[exclusions_.partners[k]]; j > i)
            {
                particleExclusions_.partners.push_back(j);
            }
        }
        particleExclusions_.offsets.push_back(static_cast<int>(particleExclusions_.partners.size()));
    }

    solver_.setCharges(particleCharges_.data(), numGlobal);
    solver_.setExclusions(particleExclusions_.offsets.data(), particleExclusions_.partners.data(), numGlobal);
}

const RVec* FarfieldForceProvider::Impl::particlePositions(ArrayRef<const RVec> x)
{
    if (homeAtom_.empty())
    {
        return x.data();
    }
    x_.clear();
    for (const int i : homeAtom_)
    {
        x_.push_back(x[i]);
    }
    return x_.data();
}

void FarfieldForceProvider::Impl::prepare(ArrayRef<const RVec> x, const Matrix3x3& box)
{
    if (!run_.checkpointState.empty())
    {
        try
        {
            solver_.restore(run_.checkpointState);
        }
        catch (const farfield::Error& error)
        {
            // The user may continue with a tpr file that has other options
            GMX_LOG(logger_.warning)
                    .asParagraph()
                    .appendText(formatString(
                            "The FMM discretisation in the checkpoint is not used (%s). A new one "
                            "is chosen, so this continuation is not exact.",
                            describeError(error, run_.device.option).c_str()));
        }
    }
    solver_.prepare(particlePositions(x)->as_vec(), BoxRows(box).rows);
    isPrepared_ = true;
}

void FarfieldForceProvider::Impl::logSetup()
{
    const farfield::Setup setup = solver_.setup();
    if (setup.cells != loggedSetup_.cells || setup.order != loggedSetup_.order
        || setup.directRange != loggedSetup_.directRange || setup.m2l != loggedSetup_.m2l)
    {
        GMX_LOG(logger_.info)
                .asParagraph()
                .appendText(describe(
                        setup, static_cast<int>(particleExclusions_.partners.size()), dataPath_, run_.device));
        loggedSetup_ = setup;
    }
}

void FarfieldForceProvider::Impl::rethrowFor(const farfield::Error& error,
                                             ArrayRef<const RVec>   x,
                                             const std::string&     when) const
{
    for (size_t i = 0; i < globalAtom_.size(); i++)
    {
        const RVec& xi = x[homeAtom_.empty() ? i : homeAtom_[i]];
        if (!(std::isfinite(xi[XX]) && std::isfinite(xi[YY]) && std::isfinite(xi[ZZ])))
        {
            // The library counts particles in local order, which means nothing to the user
            GMX_THROW(SimulationInstabilityError(formatString(
                    "FMM (fmm-backend = farfield) %s: the position of atom %d is not finite. The "
                    "system has become unstable, or its coordinates were bad from the start.",
                    when.c_str(),
                    globalAtom_[i] + 1)));
        }
    }
    rethrow(error, when, run_.device.option);
}

void FarfieldForceProvider::Impl::rethrowOnDevice(const farfield::Error& error) const
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
    if (static_cast<int>(x.size()) == numHome_)
    {
        rethrowFor(error, x, when);
    }
    rethrow(error, when, run_.device.option);
}

FarfieldForceProvider::FarfieldForceProvider(const FarfieldOptions& options,
                                             const gmx_mtop_t&      mtop,
                                             const MDLogger&        logger,
                                             const FarfieldRun&     run)
{
    try
    {
        impl_ = std::make_unique<Impl>(options, mtop, logger, run);
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, "cannot be set up", run.device.option);
    }
}

FarfieldForceProvider::~FarfieldForceProvider() = default;

bool FarfieldForceProvider::useDevice(const DeviceContext* deviceContext,
                                      const std::string&   obstacle,
                                      const std::string&   updateOnHost)
{
    if (impl_->solver_.setup().device != farfield::Device::Gpu)
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
    impl_->device_   = std::make_unique<FarfieldOnDevice>(&impl_->solver_, *deviceContext);
    impl_->dataPath_ = updateOnHost.empty() ? "stay on the GPU"
                                            : "on the GPU, copied at every step: " + updateOnHost;
    return true;
}

void FarfieldForceProvider::atomsRedistributed(const MDModulesAtomsRedistributedSignal& signal)
{
    try
    {
        impl_->setAtoms(signal);
        if (!impl_->isPrepared_)
        {
            impl_->prepare(signal.x_, signal.box_);
        }
        impl_->logSetup();
    }
    catch (const farfield::Error& error)
    {
        impl_->rethrowFor(error, signal.x_, "cannot be set up for this system");
    }
}

void FarfieldForceProvider::calculateForces(const ForceProviderInput& forceProviderInput,
                                            ForceProviderOutput*      forceProviderOutput)
{
    GMX_RELEASE_ASSERT(impl_->isPrepared_ && forceProviderInput.homenr_ == impl_->numHome_,
                       "The local atoms must be known before forces are computed");

    ForceWithVirial& forceWithVirial = forceProviderOutput->forceWithVirial_;
    const auto&      homeAtom        = impl_->homeAtom_;
    GMX_RELEASE_ASSERT(forceProviderInput.stepWork_ != nullptr, "mdrun tells what a step computes");
    const StepWorkload& stepWork = *forceProviderInput.stepWork_;
    auto                request  = impl_->request(forceProviderInput.step_, stepWork);

    const RVec* x = impl_->particlePositions(forceProviderInput.x_);
    RVec*       f = forceWithVirial.force_.data();
    if (!homeAtom.empty())
    {
        impl_->f_.resize(homeAtom.size());
        f                     = impl_->f_.data();
        request.replaceForces = true;
    }

    farfield::Totals totals;
    try
    {
        totals = impl_->solver_.evaluate(
                x->as_vec(), BoxRows::fromMatrix(forceProviderInput.box_).rows, f->as_vec(), request);
    }
    catch (const farfield::Error& error)
    {
        impl_->rethrowFor(error,
                          forceProviderInput.x_,
                          "stopped at step " + std::to_string(forceProviderInput.step_));
    }

    for (size_t i = 0; i < homeAtom.size(); i++)
    {
        forceWithVirial.force_[homeAtom[i]] += impl_->f_[i];
    }
    addTotals(totals, stepWork, &forceWithVirial, &forceProviderOutput->enerd_);
}

void FarfieldForceProvider::reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction)
{
    GMX_RELEASE_ASSERT(impl_->isPrepared_ && impl_->homeAtom_.empty(),
                       "The local atoms must be known, without filler particles");
    try
    {
        impl_->device_->reinit(stateGpu, forceReduction);
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, "cannot be set up on the GPU", impl_->run_.device.option);
    }
}

bool FarfieldForceProvider::mustBeRecordedAgain(const matrix box) const
{
    // The first step with another box sets up the FMM for it, which a graph can not hold
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

void FarfieldForceProvider::launch(const matrix          box,
                                   const int64_t         step,
                                   const StepWorkload&   stepWork,
                                   GpuEventSynchronizer* xReadyOnDevice)
{
    impl_->launchedBox_  = BoxRows::fromMatrix(box);
    impl_->launchedStep_ = step;
    try
    {
        impl_->device_->launch(impl_->launchedBox_.rows,
                               impl_->request(step, stepWork),
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
    farfield::Totals totals;
    try
    {
        totals = impl_->device_->wait();
    }
    catch (const farfield::Error& error)
    {
        impl_->rethrowOnDevice(error);
    }
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
}

std::vector<double> FarfieldForceProvider::state() const
{
    return impl_->solver_.state();
}

void FarfieldForceProvider::logTimings() const
{
    std::string text;
    if (!impl_->device_)
    {
        text = stageTable("FMM (farfield) wall-clock time per stage", impl_->solver_.timings());
    }
    else if (impl_->launchedStep_ >= 0)
    {
        try
        {
            text = stageTable(
                    "FMM (farfield) GPU time per stage, measured after the last step, "
                    "without overlap",
                    impl_->device_->measureStages(impl_->launchedBox_.rows));
        }
        catch (const farfield::Error& error)
        {
            text = std::string("FMM (farfield) could not measure its stages: ") + error.what();
        }
    }
    GMX_LOG(impl_->logger_.info).asParagraph().appendText(text);
}

} // namespace gmx
