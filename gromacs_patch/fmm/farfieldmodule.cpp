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
 * \brief Implements the farfield part of the FMM module.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldmodule.h"

#include "config.h"

#include <cstdlib>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/gmxlib/network.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/hardware/device_information.h"
#include "gromacs/listed_forces/listed_forces_gpu.h"
#include "gromacs/math/matrix.h"
#include "gromacs/math/units.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/imdoutputprovider.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/mdtypes/mdrunoptions.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/pleasecite.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldchecks.h"
#include "farfielddevice.h"
#include "farfielddispersion.h"
#include "farfieldforceprovider.h"
#include "farfieldmolecules.h"
#include "farfieldoptions.h"
#include "farfieldperturbation.h"
#include "farfieldreference.h"
#include "farfieldtopology.h"
#include "fmm_mdpoptions.h"
#include "fmmbackend.h"

namespace gmx
{

namespace
{

//! Keys of the states in the checkpoint file
constexpr const char* c_checkpointKey = "fmm-farfield-state";
constexpr const char* c_dispersionKey = "fmm-farfield-dispersion";

//! Name of the row of the cycle-counter table in the log
constexpr const char* c_cycleCounterName      = "FMM (farfield)";
constexpr const char* c_dispersionCounterName = "FMM dispersion";

//! What mdrun itself does at output steps, whatever the electrostatics
constexpr const char* c_graphNote =
        "With GMX_CUDA_GRAPH, GROMACS 2026.3 writes frames whose coordinates and forces belong to "
        "different steps, with PME as with FMM. To compare the two, run without GMX_CUDA_GRAPH, or "
        "use mdrun -rerun.";

//! What of a run this backend can do on a single rank only, to follow "on a single rank only"; empty if nothing
std::string whatNeedsOneRank(const PbcType     pbcType,
                             const bool        hasDispersion,
                             const bool        hasTwoStates,
                             const bool        hasSoftCore,
                             const gmx_mtop_t& mtop)
{
    if (hasDispersion)
    {
        return "with vdwtype = FMM";
    }
    if (pbcType != PbcType::Xyz)
    {
        return formatString("with pbc = %s", c_pbcTypeNames[pbcType].c_str());
    }
    if (hasTwoStates)
    {
        return "with perturbed charges";
    }
    if (hasSoftCore)
    {
        return "with a soft core of Coulomb interactions";
    }
    if (haveEnergyGroups(mtop))
    {
        return "with energy groups";
    }
    if (farfieldReferenceIsWanted())
    {
        return "as the reference that GMX_FMM_REFERENCE asks for";
    }
    return {};
}

//! What this backend can do, and what it does not support
class FarfieldBackend final : public FmmBackend
{
public:
    bool computesAllCoulomb() const override { return true; }

    bool computesDispersion() const override { return true; }

    bool excludesPairsAtAnyDistance() const override { return true; }

    bool allowsUnboundedAtoms(const PbcType pbcType) const override
    {
        return pbcType == PbcType::No || pbcType == PbcType::XY;
    }

    std::string featureForOneRank(const t_inputrec& ir, const gmx_mtop_t& mtop) const override
    {
        return whatNeedsOneRank(ir.pbcType,
                                ir.vdwtype == VanDerWaalsType::Fmm,
                                ir.efep != FreeEnergyPerturbationType::No && hasPerturbedCharges(mtop),
                                perturbedChargeWidth(ir, mtop) > 0,
                                mtop);
    }

    real perturbedChargeWidth(const t_inputrec& ir, const gmx_mtop_t& mtop) const override
    {
        return gmx::perturbedChargeWidth(ir, mtop);
    }

    void checkTopology(const t_inputrec& ir, const gmx_mtop_t& mtop, WarningHandler* wi) const override
    {
        gmx::checkTopology(mtop, ir, wi);
    }

    void checkStructure(const t_inputrec&          ir,
                        const gmx_mtop_t&          mtop,
                        const ArrayRef<const RVec> x,
                        const matrix               box,
                        WarningHandler*            wi) const override
    {
        // The message about a position that is not finite follows
        if (findBadPosition(x) < 0)
        {
            checkMolecules(mtop, ir, x, box, wi);
        }
    }
};

} // namespace

const FmmBackend& farfieldBackend()
{
    static const FarfieldBackend backend;

    return backend;
}

class FarfieldModule::Impl : public IMDOutputProvider
{
public:
    explicit Impl(const FmmMdpOptions& options) : options_(options) {}

    //! Whether this backend is active
    bool isActive() const { return options_.activeFmmBackend() == ActiveFmmBackend::Farfield; }

    //! Reports what can be told from the mdp file alone
    void checkMdp(const MdModulesCoulombTypeInfo& info)
    {
        // The unit tests of the other backends pass no input record
        if (info.inputrec == nullptr)
        {
            return;
        }
        GMX_RELEASE_ASSERT(wi_ != nullptr, "The warning handler is passed before the Coulomb type");
        inputrec_ = info.inputrec;
        if (isActive())
        {
            if (info.coulombInteractionType == CoulombInteractionType::Fmm)
            {
                checkInputRecord(*inputrec_, wi_);
            }
            return;
        }
        if (info.coulombInteractionType == CoulombInteractionType::Fmm
            && options_.activeFmmBackend() == ActiveFmmBackend::Inactive)
        {
            wi_->addError("coulombtype = FMM needs a backend, set fmm-backend = farfield.");
        }
        if (info.inputrec->params != nullptr)
        {
            KeyValueTreeBuilder builder;
            copyWithoutFarfield(*info.inputrec->params, builder.rootObject());
            *info.inputrec->params = builder.build();
        }
    }

    //! Refuses several ranks where one is needed
    void checkRanks() const
    {
        const std::string what = whatNeedsOneRank(pbcType_,
                                                  run_.dispersionRule.has_value(),
                                                  run_.hasTwoStates,
                                                  run_.perturbedChargeWidth > 0,
                                                  *mtop_);
        if (run_.ranks != nullptr && !what.empty())
        {
            GMX_THROW(NotImplementedError(
                    formatString("coulombtype = FMM runs on a single rank only %s, start gmx mdrun "
                                 "with -ntmpi 1, or an MPI build with one rank.",
                                 what.c_str())));
        }
    }

    //! Writes and reads what was chosen at run time
    void subscribeToCheckpoints(MDModulesNotifiers* notifiers)
    {
        notifiers->checkpointingNotifier_.subscribe(
                [this](MDModulesWriteCheckpointData checkpoint)
                {
                    const auto write = [&checkpoint](const char* key, const std::vector<double>& state)
                    {
                        auto array = checkpoint.builder_.addUniformArray<double>(key);
                        for (const double value : state)
                        {
                            array.addValue(value);
                        }
                    };
                    write(c_checkpointKey, provider_->state());
                    if (dispersion_)
                    {
                        write(c_dispersionKey, dispersion_->state());
                    }
                });
        notifiers->checkpointingNotifier_.subscribe(
                [this](MDModulesCheckpointReadingBroadcast checkpoint)
                {
                    if (checkpoint.isParallelRun_)
                    {
                        std::vector<double>& state = run_.checkpointState;
                        int                  size  = static_cast<int>(state.size());
                        gmx_bcast(sizeof(size), &size, checkpoint.communicator_);
                        state.resize(size);
                        gmx_bcast(size * sizeof(double), state.data(), checkpoint.communicator_);
                    }
                });
        notifiers->checkpointingNotifier_.subscribe(
                [this](MDModulesCheckpointReadingDataOnMain checkpoint)
                {
                    const KeyValueTreeObject& tree = checkpoint.checkpointedData_;
                    const auto read = [&tree](const char* key, std::vector<double>* state)
                    {
                        // The key is absent when the run was started with another coulombtype or vdwtype
                        if (tree.keyExists(key))
                        {
                            for (const auto& value : tree[key].asArray().values())
                            {
                                state->push_back(value.cast<double>());
                            }
                        }
                    };
                    read(c_checkpointKey, &run_.checkpointState);
                    read(c_dispersionKey, &run_.dispersionState);
                });
    }

    //! Follows the local atoms of \p signal
    void follow(const MDModulesAtomsRedistributedSignal& signal)
    {
        const bool isFirst       = std::exchange(isStart_, false);
        const bool haveAllInTurn = !signal.globalAtomIndices_.has_value();
        if (run_.isRerun && isFirst && !haveAllInTurn)
        {
            // These are domains of the structure in the run input file, which is not evaluated
            return;
        }
        if (run_.isRerun && haveAllInTurn)
        {
            matrix box;
            fillLegacyMatrix(signal.box_, box);
            throwIfBroken(*mtop_, pbcType_, signal.x_, box);
        }
        if (decoupled_)
        {
            decoupled_->throwIfTooLong(pbcType_, signal, run_.ranks);
        }
        provider_->atomsRedistributed(signal);
        if (dispersion_)
        {
            dispersion_->atomsRedistributed(signal);
        }
    }

    // From IMDOutputProvider
    void initOutput(FILE* fplog,
                    int /* nfile */,
                    const t_filenm /* fnm */[],
                    bool /* bAppendFiles */,
                    const gmx_output_env_t* /* oenv */) override
    {
        for (const char* method : { "Greengard1987", "Kohnke2020", "Kohnke2021" })
        {
            please_cite(fplog, method);
        }
    }
    void finishOutput() override { provider_->logTimings(); }

    //! The options of the FMM module
    const FmmMdpOptions& options_;
    //! grompp's messages
    WarningHandler* wi_ = nullptr;
    //! grompp's input record
    const t_inputrec* inputrec_ = nullptr;
    //! The global topology of mdrun
    const gmx_mtop_t* mtop_ = nullptr;
    //! The log of mdrun
    const MDLogger* logger_ = nullptr;
    //! What the run decides
    FarfieldRun run_;
    //! The periodicity of mdrun
    PbcType pbcType_ = PbcType::Xyz;
    //! The molecules to look at in the run; not if molecules are periodic
    std::optional<DecoupledMolecules> decoupled_;
    //! Until the local atoms are known
    bool isStart_ = true;
    //! What runs where
    const SimulationWorkload* simulationWork_ = nullptr;
    //! The device of this rank, if there is one
    const DeviceStreamManager* deviceStreamManager_ = nullptr;
    //! The force provider, when this backend is active
    std::unique_ptr<FarfieldForceProvider> provider_;
    //! The provider of dispersion, with vdwtype = FMM
    std::unique_ptr<FarfieldDispersion> dispersion_;
};

FarfieldModule::FarfieldModule(const FmmMdpOptions& options) :
    impl_(std::make_unique<Impl>(options))
{
}

FarfieldModule::~FarfieldModule() = default;

void FarfieldModule::subscribeToPreProcessingNotifications(MDModulesNotifiers* notifiers)
{
    Impl* impl     = impl_.get();
    auto& notifier = notifiers->preProcessingNotifier_;

    notifier.subscribe([impl](WarningHandler* wi) { impl->wi_ = wi; });
    notifier.subscribe([impl](const MdModulesCoulombTypeInfo& info) { impl->checkMdp(info); });
    if (!impl->isActive())
    {
        return;
    }
    notifier.subscribe(
            [impl](gmx_mtop_t* mtop)
            {
                if (impl->inputrec_ != nullptr)
                {
                    checkTopology(*mtop, *impl->inputrec_, impl->wi_);
                }
            });
    notifier.subscribe(
            [impl](const CoordinatesAndBoxPreprocessed& input)
            {
                checkCellSize(impl->options_.farfieldOptions(), input.pbc_, input.box_, impl->wi_);
                const auto x = input.coordinates_.unpaddedConstArrayRef();
                if (const int atom = findBadPosition(x); atom >= 0)
                {
                    impl->wi_->addError(badPositionMessage(atom));
                }
            });
}

void FarfieldModule::subscribeToSimulationSetupNotifications(MDModulesNotifiers* notifiers)
{
    Impl* impl = impl_.get();
    if (!impl->isActive())
    {
        return;
    }
    if (std::getenv("GMX_EMULATE_GPU") != nullptr)
    {
        GMX_THROW(NotImplementedError(
                "coulombtype = FMM does not run with emulated GPU kernels, unset the environment "
                "variable GMX_EMULATE_GPU."));
    }

    auto& setupNotifier = notifiers->simulationSetupNotifier_;
    setupNotifier.subscribe([impl](const gmx_mtop_t& mtop) { impl->mtop_ = &mtop; });
    setupNotifier.subscribe([impl](const MDLogger& logger) { impl->logger_ = &logger; });
    setupNotifier.subscribe(
            [impl](const PbcType& pbcType)
            {
                impl->pbcType_      = pbcType;
                impl->run_.boundary = pbcType == PbcType::No   ? farfield::Boundary::Open
                                      : pbcType == PbcType::XY ? farfield::Boundary::Slab
                                                               : farfield::Boundary::Periodic;
            });
    setupNotifier.subscribe([impl](const MpiComm& mpiComm)
                            { impl->run_.ranks = mpiComm.isParallel() ? &mpiComm : nullptr; });
    setupNotifier.subscribe(
            [impl](const MDModulesRunSetup& setup)
            {
                const t_inputrec& ir       = setup.inputrec;
                impl->simulationWork_      = &setup.simulationWork;
                impl->deviceStreamManager_ = setup.deviceStreamManager;

                impl->run_.coulombConstant  = c_one4PiEps0 / ir.epsilon_r;
                impl->run_.integratesMotion = EI_DYNAMICS(ir.eI);
                if (ir.vdwtype == VanDerWaalsType::Fmm)
                {
                    impl->run_.dispersionRule = ir.ljpme_combination_rule;
                }
                impl->run_.reproducible = setup.mdrunOptions.reproducible;
                impl->run_.isRerun = setup.mdrunOptions.rerun || ir.eI == IntegrationAlgorithm::Mimic;
                impl->run_.hasTwoStates = ir.efep != FreeEnergyPerturbationType::No
                                          && hasPerturbedCharges(*impl->mtop_);
                impl->run_.perturbedChargeWidth = gmx::perturbedChargeWidth(ir, *impl->mtop_);
                if (impl->run_.perturbedChargeWidth > 0 && setup.simulationWork.useGpuNonbondedFE)
                {
                    GMX_THROW(InconsistentInputError(
                            "With coulombtype = FMM a soft core of Coulomb interactions is "
                            "computed on the CPU, run gmx mdrun without -nbfe gpu."));
                }
                impl->run_.device = chooseDevice(impl->options_.farfieldOptions(),
                                                 GMX_GPU_CUDA && setup.deviceStreamManager != nullptr
                                                         ? setup.deviceStreamManager->deviceInfo().id
                                                         : -1,
                                                 setup.availableDevices,
                                                 setup.rankOnNode);
                if (setup.simulationWork.useGpuNonbonded && !setup.simulationWork.useGpuBonded
                    && buildSupportsListedForcesGpu(nullptr)
                    && inputSupportsListedForcesGpu(ir, *impl->mtop_, nullptr))
                {
                    impl->run_.bondedOnHost = setup.wallCycle;
                }
                impl->run_.helpers = chooseHelpers(impl->run_.device,
                                                   { setup.availableDevices,
                                                     setup.assignedDevices,
                                                     setup.devicesAreSelected,
                                                     setup.rankOnNode,
                                                     setup.ranksOnNode },
                                                   impl->mtop_->natoms,
                                                   impl->run_.ranks != nullptr);
                impl->checkRanks();
                if (!ir.bPeriodicMols)
                {
                    impl->decoupled_.emplace(*impl->mtop_);
                }
            });

    impl->subscribeToCheckpoints(notifiers);
}

void FarfieldModule::subscribeToSimulationRunNotifications(MDModulesNotifiers* notifiers)
{
    if (impl_->provider_)
    {
        notifiers->simulationRunNotifier_.subscribe(
                [impl = impl_.get()](const MDModulesAtomsRedistributedSignal& signal)
                { impl->follow(signal); });
    }
}

bool FarfieldModule::initForceProviders(ForceProviders* forceProviders)
{
    if (!impl_->isActive())
    {
        return false;
    }
    GMX_RELEASE_ASSERT(impl_->mtop_ && impl_->logger_ && impl_->run_.coulombConstant > 0,
                       "Force providers are built after all notifications of the set-up");
    const SimulationWorkload* simulationWork = impl_->simulationWork_;
    impl_->provider_                         = std::make_unique<FarfieldForceProvider>(
            impl_->options_.farfieldOptions(), *impl_->mtop_, *impl_->logger_, impl_->run_);
    if (impl_->run_.dispersionRule.has_value())
    {
        FarfieldRun run    = impl_->run_;
        run.device.device  = impl_->provider_->device();
        impl_->dispersion_ = std::make_unique<FarfieldDispersion>(
                impl_->options_.farfieldOptions(), *impl_->mtop_, *impl_->logger_, run);
    }
    bool isDispersionOnDevice = false;
    if (impl_->provider_->useDevice(
                impl_->deviceStreamManager_ ? &impl_->deviceStreamManager_->context() : nullptr,
                obstacleToDevice(simulationWork),
                reasonForUpdateOnHost(simulationWork, *impl_->mtop_)))
    {
        forceProviders->deviceForceProvider = impl_->provider_.get();
        isDispersionOnDevice                = impl_->dispersion_ && impl_->dispersion_->isOnGpu();
        if (isDispersionOnDevice)
        {
            impl_->provider_->addDispersion(impl_->dispersion_.get());
        }
        std::string obstacle = impl_->provider_->obstacleToGraphs();
        if (obstacle.empty() && !simulationWork->useMdGpuGraph)
        {
            obstacle =
                    "GROMACS makes graphs of steps only for threads of one gmx that update on GPUs";
        }
        if (obstacle.empty())
        {
            GMX_LOG(impl_->logger_->info).asParagraph().appendText(c_graphNote);
        }
        else if (impl_->run_.ranks != nullptr && std::getenv("GMX_CUDA_GRAPH") != nullptr)
        {
            GMX_LOG(impl_->logger_->warning)
                    .asParagraph()
                    .appendTextFormatted(
                            "GMX_CUDA_GRAPH has no effect: with coulombtype = FMM on several ranks "
                            "%s.",
                            obstacle.c_str());
        }
    }
    else
    {
        forceProviders->addForceProvider(impl_->provider_.get(), c_cycleCounterName);
    }
    if (impl_->dispersion_ && !isDispersionOnDevice)
    {
        forceProviders->addForceProvider(impl_->dispersion_.get(), c_dispersionCounterName);
    }
    return true;
}

IMDOutputProvider* FarfieldModule::outputProvider()
{
    return impl_->provider_ ? impl_.get() : nullptr;
}

} // namespace gmx
