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

#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <string>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/hardware/device_information.h"
#include "gromacs/math/units.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/imdoutputprovider.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/pleasecite.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldforceprovider.h"
#include "fmm_mdmodule.h"
#include "fmm_mdpoptions.h"

namespace gmx
{

namespace
{

//! Key of the solver's state in the checkpoint file
constexpr const char* c_checkpointKey = "fmm-farfield-state";

//! Name of the row of the cycle-counter table in the log
constexpr const char* c_cycleCounterName = "FMM (farfield)";

//! Environment variable that takes coordinates and forces through the host
constexpr const char* c_disableVariable = "GMX_FMM_DISABLE_GPU_BUFFERS";

//! Environment variable that overrides fmm-farfield-device at run time
constexpr const char* c_deviceVariable = "GMX_FMM_DEVICE";

//! Where the module's options are among those of all modules
constexpr const char* c_optionsSection = "fast-multipole-method";

//! What mdrun itself does at output steps, whatever the electrostatics
constexpr const char* c_graphNote =
        "With GMX_CUDA_GRAPH, GROMACS 2026.3 writes at output steps coordinates of another moment "
        "than the forces, with PME as with FMM. Where the two are to be compared, run without "
        "GMX_CUDA_GRAPH, or use mdrun -rerun.";

/*! \brief Returns the options of the FMM module in \p params, or nullptr.
 *
 * \param[in] params  the options of all modules, as in the run input file; can be nullptr
 */
const KeyValueTreeObject* fmmOptions(const KeyValueTreeObject* params)
{
    if (params == nullptr || !params->keyExists(c_optionsSection))
    {
        return nullptr;
    }
    const KeyValueTreeObject& section = (*params)[c_optionsSection].asObject();
    const std::string         name    = std::string(FmmModuleInfo::sc_name);
    return section.keyExists(name) ? &section[name].asObject() : nullptr;
}

/*! \brief Returns a copy of \p tree without the options of this backend.
 *
 * A GROMACS without the backend does not read run input files with options that it does not know.
 */
void copyWithoutFarfield(const KeyValueTreeObject& tree, KeyValueTreeObjectBuilder builder)
{
    for (const KeyValueTreeProperty& property : tree.properties())
    {
        if (property.value().isObject())
        {
            copyWithoutFarfield(property.value().asObject(), builder.addObject(property.key()));
        }
        else if (!startsWith(property.key(), "farfield-"))
        {
            builder.addRawValue(property.key(), KeyValueTreeValue(property.value()));
        }
    }
}

//! Reports all of \p ir that FMM does not support; \p ir has coulombtype = FMM.
void checkInputRecord(const t_inputrec& ir, WarningHandler* wi)
{
    if (ir.pbcType != PbcType::Xyz)
    {
        wi->addError("coulombtype = FMM needs three-dimensional periodicity, set pbc = xyz.");
    }
    if (ir.nwall > 0)
    {
        wi->addError("coulombtype = FMM does not support walls, set nwall = 0.");
    }
    if (ir.ewald_geometry != EwaldGeometry::ThreeD)
    {
        wi->addError(
                "coulombtype = FMM has no slab correction, set ewald-geometry = 3d or use "
                "coulombtype = PME.");
    }
    if (ir.epsilon_surface != 0)
    {
        wi->addError(
                "coulombtype = FMM always has conducting surroundings, set epsilon-surface = 0 or "
                "use coulombtype = PME.");
    }
    if (ir.rcoulomb != ir.rvdw)
    {
        wi->addError(
                "coulombtype = FMM needs equal cut-offs, set rcoulomb to the value of rvdw: it has "
                "no effect on the Coulomb interactions.");
    }
    if (ir.useMts)
    {
        wi->addError("coulombtype = FMM does not support multiple time stepping, set mts = no.");
    }
}

//! Reports all of \p mtop that FMM does not support.
void checkTopology(const gmx_mtop_t& mtop, const t_inputrec& ir, WarningHandler* wi)
{
    // Reports the first atom of each molecule type that has a property
    const auto refuse = [&mtop, wi](const auto& hasProperty, const char* message)
    {
        for (const gmx_moltype_t& moltype : mtop.moltype)
        {
            const t_atom* begin = moltype.atoms.atom;
            const t_atom* end   = begin + moltype.atoms.nr;
            const t_atom* found = std::find_if(begin, end, hasProperty);
            if (found != end)
            {
                wi->addError(formatString("%s (atom %d of molecule type %s).",
                                          message,
                                          static_cast<int>(found - begin) + 1,
                                          *moltype.name));
            }
        }
    };
    refuse([](const t_atom& atom) { return !std::isfinite(atom.q); },
           "A charge is not finite, correct the topology");
    if (ir.efep != FreeEnergyPerturbationType::No)
    {
        // Pairs of perturbed atoms go through the free-energy kernel, which would add a cut-off
        // Coulomb term, so perturbing only the LJ type of an atom is no better.
        refuse(PERTURBED,
               "coulombtype = FMM does not support perturbed charges or atom types, use "
               "coulombtype = PME for free energies");
    }
    if (mtop.groups.groups[SimulationAtomGroupType::EnergyOutput].size() > 1)
    {
        wi->addWarning(
                "With coulombtype = FMM the short-range Coulomb energies of energy groups are "
                "zero, remove energygrps or compute these energies with coulombtype = PME and "
                "mdrun -rerun.");
    }
}

//! Positions beyond this are meaningless in single precision, which resolves 0.06 nm there; in nm
constexpr real c_maxCoordinate = 1e6;

//! Returns the index of the first position that is not finite or far too large, or -1.
int findBadPosition(ArrayRef<const RVec> x)
{
    // The comparisons are false for NaN
    const auto isBad = [](const RVec& xi)
    {
        return !(std::abs(xi[XX]) < c_maxCoordinate && std::abs(xi[YY]) < c_maxCoordinate
                 && std::abs(xi[ZZ]) < c_maxCoordinate);
    };
    const auto found = std::find_if(x.begin(), x.end(), isBad);
    return found == x.end() ? -1 : static_cast<int>(found - x.begin());
}

//! The message for an atom with such a position; \p atom counts from 0.
std::string badPositionMessage(const int atom)
{
    return formatString(
            "The position of atom %d is not finite or far too large, correct the starting "
            "structure.",
            atom + 1);
}

//! Reports a cell that does not fit into the box.
void checkCellSize(const FarfieldOptions& options, const matrix box, WarningHandler* wi)
{
    const double smallest = std::min({ box[XX][XX], box[YY][YY], box[ZZ][ZZ] });
    if (options.values.cellSize > smallest * (1 + farfield::c_cellSizeRounding))
    {
        wi->addError(
                formatString("%s is %g nm, set it to at most the smallest box edge of %g nm, or to "
                             "0 to let the cost decide.",
                             farfieldSetting("cellSize"),
                             options.values.cellSize,
                             smallest));
    }
}

/*! \brief Tells why the force provider can not use GROMACS's coordinates and forces on the device.
 *
 * \param[in] simulationWork  what runs where; nullptr when not known
 * \returns an empty string if it can
 */
std::string obstacleToDevice(const SimulationWorkload* simulationWork)
{
    if (simulationWork == nullptr || !simulationWork->useGpuNonbonded)
    {
        return "non-bonded interactions run on the CPU";
    }
    if (!simulationWork->useGpuXBufferOpsWhenAllowed || !simulationWork->useGpuFBufferOpsWhenAllowed)
    {
        return "GROMACS has its coordinates and forces on the host";
    }
    if (simulationWork->haveFillerParticlesInLocalState)
    {
        return "there are filler particles";
    }
    if (std::getenv(c_disableVariable) != nullptr)
    {
        return formatString("the environment variable %s is set", c_disableVariable);
    }
    return {};
}

/*! \brief Returns the device that the user asks for, and sets the name of what says so.
 *
 * \param[in]  options  the mdp options
 * \param[out] source   the mdp option or the environment variable
 * \throws InvalidInputError  the environment variable has another value
 */
farfield::Device requestedDevice(const FarfieldOptions& options, std::string* source)
{
    const char* value = std::getenv(c_deviceVariable);
    if (value == nullptr)
    {
        *source = farfieldSetting("device");
        return options.values.device;
    }
    *source = c_deviceVariable;
    for (const farfield::DeviceDescription& device : farfield::c_devices)
    {
        if (equalCaseInsensitive(value, device.name))
        {
            return device.value;
        }
    }
    GMX_THROW(InvalidInputError(formatString(
            "The environment variable %s is '%s', set it to cpu, gpu or auto, or unset it.",
            c_deviceVariable,
            value)));
}

/*! \brief Decides where the FMM runs.
 *
 * mdrun's assignment of devices to ranks holds, and with it -gpu_id. Without one, the FMM is on the
 * CPU unless the user wants it on a GPU: then the ranks of a node take turns on the devices that
 * mdrun may use.
 *
 * \param[in] options           the mdp options
 * \param[in] assignedDevice    CUDA device that mdrun has assigned to this rank, or -1
 * \param[in] availableDevices  CUDA devices that were detected and that the user allows
 * \param[in] rankOnNode        number of this rank among those on its node
 */
FarfieldDeviceChoice chooseDevice(const FarfieldOptions& options,
                                  const int              assignedDevice,
                                  ArrayRef<const int>    availableDevices,
                                  const int              rankOnNode)
{
    FarfieldDeviceChoice choice;
    choice.device = requestedDevice(options, &choice.option);
    choice.reason = formatString("%s = %s", choice.option.c_str(), farfield::nameOf(choice.device));
    if (choice.device == farfield::Device::Cpu)
    {
        return choice;
    }
    if (assignedDevice >= 0)
    {
        choice.id = assignedDevice;
        choice.reason += formatString("; mdrun has assigned GPU %d to this rank", choice.id);
    }
    else if (choice.device == farfield::Device::Auto)
    {
        choice.device = farfield::Device::Cpu;
        choice.reason += "; mdrun has assigned no GPU to this rank";
    }
    else if (!availableDevices.empty())
    {
        choice.id = availableDevices[rankOnNode % availableDevices.ssize()];
        choice.reason += formatString("; GPU %d, in turn, of those that mdrun may use", choice.id);
    }
    else if (GMX_GPU_CUDA)
    {
        GMX_THROW(InconsistentInputError(formatString(
                "%s = gpu, but mdrun has detected no GPU that it may use. Set it to cpu to run "
                "without a GPU.",
                choice.option.c_str())));
    }
    return choice;
}

/*! \brief Tells why mdrun copies coordinates and forces from and to the host at every step.
 *
 * \param[in] simulationWork  what runs where; nullptr when not known
 * \param[in] mtop            the global topology
 * \returns an empty string if it does not
 */
std::string reasonForUpdateOnHost(const SimulationWorkload* simulationWork, const gmx_mtop_t& mtop)
{
    if (simulationWork != nullptr && simulationWork->useGpuUpdate)
    {
        return {};
    }
    if (gmx_mtop_interaction_count(mtop, IF_VSITE) > 0)
    {
        return "virtual sites need the update on the CPU";
    }
    if (gmx_mtop_particletype_count(mtop)[ParticleType::Shell] > 0)
    {
        return "shells need the update on the CPU";
    }
    return "the update runs on the CPU";
}

} // namespace

bool usesFarfield(const t_inputrec& ir)
{
    const KeyValueTreeObject* options = fmmOptions(ir.params);
    if (ir.coulombtype != CoulombInteractionType::Fmm || options == nullptr
        || !options->keyExists(c_fmmActiveOptionName))
    {
        return false;
    }
    const KeyValueTreeValue& backend = (*options)[c_fmmActiveOptionName];
    return backend.isType<std::string>()
           && backend.cast<std::string>() == c_activeFmmBackendNames[ActiveFmmBackend::Farfield];
}

void checkStartForFarfield(const t_inputrec& ir, ArrayRef<const RVec> x)
{
    if (usesFarfield(ir))
    {
        if (const int atom = findBadPosition(x); atom >= 0)
        {
            GMX_THROW(InvalidInputError(badPositionMessage(atom)));
        }
    }
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
    //! What runs where
    const SimulationWorkload* simulationWork_ = nullptr;
    //! The device of this rank, if there is one
    const DeviceStreamManager* deviceStreamManager_ = nullptr;
    //! The force provider, when this backend is active
    std::unique_ptr<FarfieldForceProvider> provider_;
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
                checkCellSize(impl->options_.farfieldOptions(), input.box_, impl->wi_);
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
            [](const MpiComm& mpiComm)
            {
                if (mpiComm.size() > 1)
                {
                    GMX_THROW(NotImplementedError(
                            "coulombtype = FMM runs on a single rank only, start gmx mdrun with "
                            "-ntmpi 1, or an MPI build with one rank."));
                }
            });
    setupNotifier.subscribe(
            [impl](MDModulesDirectProvider* directProvider)
            {
                const DeviceStreamManager* manager = directProvider->deviceStreamManager;
                impl->simulationWork_              = directProvider->simulationWork;
                impl->deviceStreamManager_         = manager;

                impl->run_.coulombConstant  = c_one4PiEps0 / directProvider->relativePermittivity;
                impl->run_.integratesMotion = directProvider->integratesMotion;
                impl->run_.reproducible     = directProvider->reproducible;
                impl->run_.device =
                        chooseDevice(impl->options_.farfieldOptions(),
                                     GMX_GPU_CUDA && manager != nullptr ? manager->deviceInfo().id : -1,
                                     directProvider->availableDevices,
                                     directProvider->rankOnNode);
            });

    auto& checkpointNotifier = notifiers->checkpointingNotifier_;
    checkpointNotifier.subscribe(
            [impl](MDModulesWriteCheckpointData checkpoint)
            {
                auto array = checkpoint.builder_.addUniformArray<double>(c_checkpointKey);
                for (const double value : impl->provider_->state())
                {
                    array.addValue(value);
                }
            });
    checkpointNotifier.subscribe(
            [impl](MDModulesCheckpointReadingDataOnMain checkpoint)
            {
                const KeyValueTreeObject& tree = checkpoint.checkpointedData_;
                // The key is absent when the run was started with another coulombtype
                if (tree.keyExists(c_checkpointKey))
                {
                    for (const auto& value : tree[c_checkpointKey].asArray().values())
                    {
                        impl->run_.checkpointState.push_back(value.cast<double>());
                    }
                }
            });
}

void FarfieldModule::subscribeToSimulationRunNotifications(MDModulesNotifiers* notifiers)
{
    if (impl_->provider_)
    {
        FarfieldForceProvider* provider = impl_->provider_.get();
        notifiers->simulationRunNotifier_.subscribe([provider](const MDModulesAtomsRedistributedSignal& signal)
                                                    { provider->atomsRedistributed(signal); });
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
    if (impl_->provider_->useDevice(
                impl_->deviceStreamManager_ ? &impl_->deviceStreamManager_->context() : nullptr,
                obstacleToDevice(simulationWork),
                reasonForUpdateOnHost(simulationWork, *impl_->mtop_)))
    {
        forceProviders->deviceForceProvider = impl_->provider_.get();
        if (simulationWork->useMdGpuGraph)
        {
            GMX_LOG(impl_->logger_->info).asParagraph().appendText(c_graphNote);
        }
    }
    else
    {
        forceProviders->addForceProvider(impl_->provider_.get(), c_cycleCounterName);
    }
    return true;
}

IMDOutputProvider* FarfieldModule::outputProvider()
{
    return impl_->provider_ ? impl_.get() : nullptr;
}

} // namespace gmx
