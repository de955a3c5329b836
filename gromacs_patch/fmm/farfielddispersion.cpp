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
 * \brief Implements the force provider that computes dispersion with libfarfield.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfielddispersion.h"

#include <cmath>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <farfield/farfield_kernels.h>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "dispersioncharges.h"
#include "farfielderrors.h"
#include "farfieldoptions.h"
#include "farfieldrun.h"
#include "farfieldsolver.h"
#include "farfieldtopology.h"

namespace gmx
{

namespace
{

/*! \brief The options of the library
 *
 * Errors are no larger than those of Lennard-Jones PME with its usual options, 7e-5 to 1.3e-4,
 * where the accuracy is the usual one; it costs little.
 */
farfield::KernelOptions kernelOptions(const FarfieldOptions& options, const FarfieldRun& run)
{
    constexpr double        c_part = 0.2, c_finest = 1e-5;
    const double            asked = options.values.accuracy;
    farfield::KernelOptions kernel;
    kernel.accuracy   = std::max(c_part * asked, std::min(asked, c_finest));
    kernel.ofForces   = true;
    kernel.bestEffort = true;
    kernel.boundary   = run.boundary;
    kernel.device     = run.device.device;
    kernel.deviceId   = run.device.id;
    kernel.threads    = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    return kernel;
}

} // namespace

class FarfieldDispersion::Impl
{
public:
    Impl(const FarfieldOptions& options, const gmx_mtop_t& mtop, const MDLogger& logger, const FarfieldRun& run) :
        mtop_(mtop),
        logger_(logger),
        run_(run),
        options_(kernelOptions(options, run)),
        ofTypes_(mtop, run.dispersionRule.value())
    {
        for (int set = 0; set < ofTypes_.numSets(); set++)
        {
            // Dispersion attracts: its energy has the other sign than that of charges
            factors_.push_back(-ofTypes_.sign(set));
        }
        try
        {
            sum_.emplace(farfield::Kernel::inversePower(6), options_);
            sum_->resume(run.dispersionState);
        }
        catch (const farfield::Error& error)
        {
            rethrow(error, "cannot compute dispersion");
        }
    }

    int numSites() const { return static_cast<int>(sites_.size()); }
    //! Collects atoms with dispersion, and which of their pairs are excluded
    void collectSites();
    //! Local atoms of the sites
    const std::vector<int>& atoms() const { return local_.empty() ? sites_ : local_; }
    //! The force on a site: of each set, its factor times its charge times the field
    RVec force(int site) const
    {
        RVec sum = { 0, 0, 0 };
        for (int set = 0; set < ofTypes_.numSets(); set++)
        {
            const int  k = site * ofTypes_.numSets() + set;
            const real c = static_cast<real>(factors_[set]) * charges_[k];
            sum += c * RVec(fields_[DIM * k], fields_[DIM * k + 1], fields_[DIM * k + 2]);
        }
        return sum;
    }
    //! Energy and virial of what was computed last, at the steps that compute them
    farfield::Totals  totals(const StepWorkload& stepWork) const;
    [[noreturn]] void rethrow(const farfield::Error& error, const std::string& when) const
    {
        rethrowFarfieldError(error, when, run_.device.option);
    }

    const gmx_mtop_t& mtop_;
    const MDLogger&   logger_;
    const FarfieldRun run_;

    const farfield::KernelOptions options_;
    const DispersionCharges       ofTypes_;
    //! Of energies, forces and virials of the sets
    std::vector<double> factors_;

    //! Global atoms with dispersion
    std::vector<int> sites_;
    //! Their charges, [sites][sets]
    std::vector<real> charges_;
    //! Of pairs of sites
    FarfieldExclusions exclusions_;
    //! Local atoms of the sites; empty if they are the global ones
    std::vector<int> local_;

    std::optional<farfield::KernelSum<real>> sum_;
    farfield::KernelSetup                    loggedSetup_;

    //! \name What an evaluation takes and gives
    //!@{
    std::vector<double> x_;
    std::vector<real>   potentials_, fields_;
    //! Of each set
    std::unique_ptr<double[][DIM][DIM]> virials_;
    //!@}
};

void FarfieldDispersion::Impl::collectSites()
{
    std::vector<int> siteOfAtom(mtop_.natoms, -1);
    int              atom = 0;
    for (const gmx_molblock_t& molblock : mtop_.molblock)
    {
        const t_atoms& atoms = mtop_.moltype[molblock.type].atoms;
        for (int i = 0; i < molblock.nmol * atoms.nr; i++, atom++)
        {
            const int type = atoms.atom[i % atoms.nr].type;
            if (ofTypes_.isCharged(type))
            {
                siteOfAtom[atom] = numSites();
                sites_.push_back(atom);
                for (int set = 0; set < ofTypes_.numSets(); set++)
                {
                    charges_.push_back(ofTypes_.charge(type, set));
                }
            }
        }
    }
    // All pairs of this group are excluded, without being named
    std::vector<int> group(mtop_.intermolecularExclusionGroup.begin(),
                           mtop_.intermolecularExclusionGroup.end());
    std::sort(group.begin(), group.end());
    const FarfieldExclusions ofAtoms = collectExclusions(mtop_, {});
    for (const int site : sites_)
    {
        const bool isOfGroup = std::binary_search(group.begin(), group.end(), site);
        for (const int partner : isOfGroup ? group : std::vector<int>())
        {
            if (partner > site && siteOfAtom[partner] >= 0)
            {
                exclusions_.partners.push_back(siteOfAtom[partner]);
            }
        }
        for (int k = ofAtoms.offsets[site]; k < ofAtoms.offsets[site + 1]; k++)
        {
            if (const int partner = siteOfAtom[ofAtoms.partners[k]]; partner >= 0)
            {
                exclusions_.partners.push_back(partner);
            }
        }
        exclusions_.offsets.push_back(static_cast<int>(exclusions_.partners.size()));
    }
    try
    {
        sum_->setExclusions(exclusions_.offsets.data(), exclusions_.partners.data(), numSites());
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, "cannot compute dispersion");
    }
    x_.resize(DIM * sites_.size());
    potentials_.resize(charges_.size());
    fields_.resize(DIM * charges_.size());
    virials_ = std::make_unique<double[][DIM][DIM]>(ofTypes_.numSets());
}

farfield::Totals FarfieldDispersion::Impl::totals(const StepWorkload& stepWork) const
{
    farfield::Totals totals;
    const int        numSets = ofTypes_.numSets();
    for (size_t k = 0; k < charges_.size() && stepWork.computeEnergy; k++)
    {
        totals.energy += 0.5 * factors_[k % numSets] * charges_[k] * static_cast<double>(potentials_[k]);
    }
    for (int set = 0; set < numSets && stepWork.computeVirial; set++)
    {
        for (int i = 0; i < DIM; i++)
        {
            for (int k = 0; k < DIM; k++)
            {
                totals.virial[i][k] += factors_[set] * virials_[set][i][k];
            }
        }
    }
    return totals;
}

bool FarfieldDispersion::hasNewSetup() const
{
    const farfield::KernelSetup setup   = impl_->sum_->setup();
    const farfield::KernelSetup logged  = impl_->loggedSetup_;
    const bool                  isWorse = setup.measuredError > impl_->options_.accuracy
                         && setup.measuredError != logged.measuredError;
    return isWorse || setup.degree != logged.degree || setup.directRange != logged.directRange
           || setup.levels != logged.levels || !(std::abs(setup.cell / logged.cell - 1) < 0.1);
}

void FarfieldDispersion::logSetup(const ArrayRef<const RVec> forces)
{
    const farfield::KernelSetup setup = impl_->sum_->setup();
    impl_->loggedSetup_               = setup;
    double squares                    = 0;
    for (const RVec& force : forces)
    {
        squares += force.norm2();
    }
    GMX_LOG(impl_->logger_.info)
            .asParagraph()
            .appendTextFormatted(
                    "FMM dispersion (farfield): %d sites on the %s, polynomials of degree %d\n"
                    "  C6 beyond rvdw        %s, %.1g off the topology\n"
                    "  leaf cells            %.3f nm, direct range %d\n"
                    "  error of the forces   %.1e of their RMS value, %.4g kJ/mol/nm (wanted %.1e)",
                    impl_->numSites(),
                    setup.device == farfield::Device::Gpu ? "GPU" : "CPU",
                    setup.degree,
                    impl_->run_.dispersionRule == LongRangeVdW::Geom
                            ? "of the geometric rule"
                            : formatString("by %d sets of charges", impl_->ofTypes_.numSets()).c_str(),
                    impl_->ofTypes_.largestDifference(),
                    setup.cell,
                    setup.directRange,
                    setup.measuredError,
                    std::sqrt(squares / std::max(impl_->numSites(), 1)),
                    impl_->options_.accuracy);
}

FarfieldDispersion::FarfieldDispersion(const FarfieldOptions& options,
                                       const gmx_mtop_t&      mtop,
                                       const MDLogger&        logger,
                                       const FarfieldRun&     run) :
    impl_(std::make_unique<Impl>(options, mtop, logger, run))
{
}

FarfieldDispersion::~FarfieldDispersion() = default;

void FarfieldDispersion::atomsRedistributed(const MDModulesAtomsRedistributedSignal& signal)
{
    if (impl_->exclusions_.offsets.size() == 1)
    {
        // Collected only now, as a run may still extend the exclusions when it starts (MiMiC)
        impl_->collectSites();
    }
    impl_->local_.clear();
    if (!signal.globalAtomIndices_.has_value())
    {
        return;
    }
    const ArrayRef<const int> global = signal.globalAtomIndices_.value();
    std::vector<int>          localOfGlobal(impl_->mtop_.natoms, -1);
    for (int i = 0; i < signal.x_.ssize(); i++)
    {
        // Filler particles have none
        if (global[i] >= 0)
        {
            localOfGlobal[global[i]] = i;
        }
    }
    for (const int site : impl_->sites_)
    {
        GMX_RELEASE_ASSERT(localOfGlobal[site] >= 0, "With a single rank all atoms are home atoms");
        impl_->local_.push_back(localOfGlobal[site]);
    }
}

void FarfieldDispersion::calculateForces(const ForceProviderInput& forceProviderInput,
                                         ForceProviderOutput*      forceProviderOutput)
{
    GMX_RELEASE_ASSERT(forceProviderInput.stepWork_ != nullptr, "mdrun tells what a step computes");
    const StepWorkload&     stepWork   = *forceProviderInput.stepWork_;
    const std::vector<int>& local      = impl_->atoms();
    const int               numSites   = impl_->numSites();
    const int gmx_unused    numThreads = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    if (numSites == 0)
    {
        return;
    }
#pragma omp parallel for num_threads(numThreads) schedule(static)
    for (int i = 0; i < numSites; i++)
    {
        for (int k = 0; k < DIM; k++)
        {
            impl_->x_[DIM * i + k] = forceProviderInput.x_[local[i]][k];
        }
    }

    const BoxRows                box = BoxRows::fromMatrix(forceProviderInput.box_);
    farfield::KernelInput<real>  input;
    farfield::KernelOutput<real> output;
    input.x           = impl_->x_.data();
    input.q           = impl_->charges_.data();
    input.n           = numSites;
    input.sets        = impl_->ofTypes_.numSets();
    input.box         = isPeriodic() ? box.rows : nullptr;
    output.potentials = impl_->potentials_.data();
    output.fields     = impl_->fields_.data();
    output.virials    = stepWork.computeVirial ? impl_->virials_.get() : nullptr;
    try
    {
        impl_->sum_->evaluate(input, output);
    }
    catch (const farfield::Error& error)
    {
        rethrow(error, forceProviderInput.step_);
    }
    ForceWithVirial& forceWithVirial = forceProviderOutput->forceWithVirial_;
    for (int i = 0; i < numSites; i++)
    {
        forceWithVirial.force_[local[i]] += impl_->force(i);
    }
    if (hasNewSetup())
    {
        std::vector<RVec> forces;
        for (int i = 0; i < numSites; i++)
        {
            forces.push_back(impl_->force(i));
        }
        logSetup(forces);
    }
    addTotals(impl_->totals(stepWork), stepWork, &forceWithVirial, &forceProviderOutput->enerd_);
}

bool FarfieldDispersion::isOnGpu() const
{
    return impl_->sum_->setup().device == farfield::Device::Gpu;
}

bool FarfieldDispersion::isPeriodic() const
{
    return impl_->run_.boundary != farfield::Boundary::Open;
}

farfield::KernelSum<real>& FarfieldDispersion::sum()
{
    return *impl_->sum_;
}

farfield::KernelSites<real> FarfieldDispersion::sites() const
{
    farfield::KernelSites<real> sites;
    sites.atoms   = impl_->atoms().data();
    sites.q       = impl_->charges_.data();
    sites.factors = impl_->factors_.data();
    sites.n       = impl_->numSites();
    sites.sets    = impl_->ofTypes_.numSets();
    return sites;
}

void FarfieldDispersion::addTotals(const farfield::Totals& totals,
                                   const StepWorkload&     stepWork,
                                   ForceWithVirial*        forceWithVirial,
                                   gmx_enerdata_t*         enerd) const
{
    if (stepWork.computeEnergy)
    {
        enerd->term[InteractionFunction::LennardJonesReciprocalSpace] += totals.energy;
    }
    if (stepWork.computeVirial)
    {
        addVirial(totals, forceWithVirial);
    }
}

void FarfieldDispersion::rethrow(const farfield::Error& error, const int64_t step) const
{
    impl_->rethrow(error, "cannot compute dispersion at step " + std::to_string(step));
}

std::vector<double> FarfieldDispersion::state() const
{
    return impl_->sum_->state();
}

} // namespace gmx
