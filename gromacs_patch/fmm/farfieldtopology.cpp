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
 * \brief Implements the collection of charges and exclusions.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldtopology.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/vec.h"

#include "farfieldchecks.h"
#include "farfieldrun.h"

namespace gmx
{

namespace
{

//! Returns a value of each atom of the whole system.
template<class Value>
std::vector<real> collect(const gmx_mtop_t& mtop, const Value& valueOf)
{
    std::vector<real> values;
    values.reserve(mtop.natoms);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int molecule = 0; molecule < molblock.nmol; molecule++)
        {
            std::transform(atoms.atom, atoms.atom + atoms.nr, std::back_inserter(values), valueOf);
        }
    }
    return values;
}

//! Returns the charges of a state, t_atom::q or t_atom::qB, of the whole system.
std::vector<real> collectCharges(const gmx_mtop_t& mtop, real t_atom::*charge)
{
    return collect(mtop, [charge](const t_atom& atom) { return atom.*charge; });
}

/*! \brief Returns the charged atoms of the intermolecular exclusion group, ascending.
 *
 * All pairs of that group are excluded, without being named. QM/MM, which uses it, takes the
 * charges of its atoms away; of uncharged atoms there is nothing to exclude.
 */
std::vector<int> collectExclusionGroup(const gmx_mtop_t&        mtop,
                                       const std::vector<real>& charges,
                                       const std::vector<real>& chargesB)
{
    std::vector<int> group;
    std::copy_if(mtop.intermolecularExclusionGroup.begin(),
                 mtop.intermolecularExclusionGroup.end(),
                 std::back_inserter(group),
                 [&](const int atom)
                 { return charges[atom] != 0 || (!chargesB.empty() && chargesB[atom] != 0); });
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
    return group;
}

//! Returns the number of pairs of \p number atoms.
size_t numPairsOf(const size_t number)
{
    return number == 0 ? 0 : number * (number - 1) / 2;
}

/*! \brief Returns all excluded pairs at both of their atoms.
 *
 * \param[in] exclusions  pairs at either of their atoms
 * \param[in] group       atoms of which all pairs are excluded as well
 */
FarfieldExclusions atBothAtoms(const FarfieldExclusions& exclusions, const std::vector<int>& group)
{
    const int  numAtoms = static_cast<int>(exclusions.offsets.size()) - 1;
    const auto forPairs = [&](const auto& visit)
    {
        for (int i = 0; i < numAtoms; i++)
        {
            for (int k = exclusions.offsets[i]; k < exclusions.offsets[i + 1]; k++)
            {
                visit(i, exclusions.partners[k]);
            }
        }
        for (size_t i = 0; i < group.size(); i++)
        {
            for (size_t j = i + 1; j < group.size(); j++)
            {
                visit(group[i], group[j]);
            }
        }
    };
    FarfieldExclusions result;
    result.offsets.resize(exclusions.offsets.size());
    forPairs(
            [&](const int i, const int j)
            {
                result.offsets[i + 1]++;
                result.offsets[j + 1]++;
            });
    std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
    result.partners.resize(result.offsets.back());
    std::vector<int> next(result.offsets.begin(), result.offsets.end() - 1);
    forPairs(
            [&](const int i, const int j)
            {
                result.partners[next[i]++] = j;
                result.partners[next[j]++] = i;
            });
    return result;
}

} // namespace

FarfieldExclusions collectExclusions(const gmx_mtop_t& mtop, const std::vector<int>& group)
{
    const auto isOfGroup = [&group](const int atom)
    { return std::binary_search(group.begin(), group.end(), atom); };

    size_t numListed = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        numListed += molblock.nmol * mtop.moltype[molblock.type].excls.numElements();
    }
    FarfieldExclusions result;
    // Molecules list their pairs in both directions
    result.partners.reserve(numListed / 2);

    int moleculeOffset = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
        for (int molecule = 0; molecule < molblock.nmol; molecule++)
        {
            for (int i = 0; i < moltype.atoms.nr; i++)
            {
                const bool iIsOfGroup = isOfGroup(moleculeOffset + i);
                for (const int j : moltype.excls[i])
                {
                    if (j > i && !(iIsOfGroup && isOfGroup(moleculeOffset + j)))
                    {
                        result.partners.push_back(moleculeOffset + j);
                    }
                }
                result.offsets.push_back(static_cast<int>(result.partners.size()));
            }
            moleculeOffset += moltype.atoms.nr;
        }
    }
    return result;
}

double netCharge(const gmx_mtop_t& mtop, real t_atom::*charge)
{
    const std::vector<real> charges = collectCharges(mtop, charge);
    return std::accumulate(charges.begin(), charges.end(), 0.0);
}

bool haveEnergyGroups(const gmx_mtop_t& mtop)
{
    return !mtop.groups.groupNumbers[SimulationAtomGroupType::EnergyOutput].empty();
}

FarfieldParticles::FarfieldParticles(const gmx_mtop_t& mtop, const FarfieldRun& run) :
    mtop_(mtop),
    arePerturbed_(run.hasTwoStates),
    areDivided_(run.ranks != nullptr),
    perturbedChargeWidth_(run.perturbedChargeWidth),
    numEnergyGroups_(haveEnergyGroups(mtop) ? static_cast<int>(
                             mtop.groups.groups[SimulationAtomGroupType::EnergyOutput].size())
                                            : 1)
{
}

bool FarfieldParticles::follow(const MDModulesAtomsRedistributedSignal& signal)
{
    // Collected only now, as a run may still extend the exclusions when it starts (MiMiC)
    const bool isFirst = globalCharges_.empty();
    if (isFirst)
    {
        globalCharges_ = collectCharges(mtop_, &t_atom::q);
        if (arePerturbed_)
        {
            globalChargesB_ = collectCharges(mtop_, &t_atom::qB);
        }
        if (perturbedChargeWidth_ > 0)
        {
            globalWidths_ = collect(mtop_,
                                    [this](const t_atom& atom)
                                    { return PERTURBED(atom) ? perturbedChargeWidth_ : 0; });
        }
        globalGroup_      = collectExclusionGroup(mtop_, globalCharges_, globalChargesB_);
        globalExclusions_ = collectExclusions(mtop_, globalGroup_);
        numExcludedPairs_ =
                static_cast<int>(globalExclusions_.partners.size() + numPairsOf(globalGroup_.size()));
        if (areDivided_)
        {
            globalExclusions_ = atBothAtoms(globalExclusions_, globalGroup_);
        }
    }

    numHome_ = static_cast<int>(signal.x_.size());
    if (signal.globalAtomIndices_.has_value())
    {
        setOrder(signal.globalAtomIndices_.value());
    }
    else
    {
        // The local order is the global order, always
        GMX_RELEASE_ASSERT(numHome_ == mtop_.natoms, "All atoms are local without reordering");
        if (!isFirst)
        {
            return false;
        }
        globalAtom_.resize(mtop_.natoms);
        std::iota(globalAtom_.begin(), globalAtom_.end(), 0);
        homeAtom_.clear();
    }
    GMX_RELEASE_ASSERT(areDivided_ || static_cast<int>(globalAtom_.size()) == mtop_.natoms,
                       "With a single rank all atoms of the system are home atoms");
    if (!areDivided_)
    {
        reorder();
    }
    return true;
}

void FarfieldParticles::setOrder(ArrayRef<const int> globalAtomIndices)
{
    homeAtom_.clear();
    globalAtom_.assign(globalAtomIndices.begin(), globalAtomIndices.begin() + numHome_);
    // Filler particles, which pad clusters, have no global atom
    if (std::all_of(
                globalAtom_.begin(), globalAtom_.end(), [](const int global) { return global >= 0; }))
    {
        return;
    }
    globalAtom_.clear();
    for (int i = 0; i < numHome_; i++)
    {
        if (const int global = globalAtomIndices[i]; global >= 0)
        {
            homeAtom_.push_back(i);
            globalAtom_.push_back(global);
        }
    }
}

void FarfieldParticles::reorder()
{
    const int            numParticles = static_cast<int>(globalAtom_.size());
    const int gmx_unused numThreads   = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    particleOfGlobalAtom_.resize(numParticles);
    charges_.resize(numParticles);
    chargesB_.resize(arePerturbed_ ? numParticles : 0);
    widths_.resize(globalWidths_.empty() ? 0 : numParticles);
    energyGroups_.resize(numEnergyGroups_ > 1 ? numParticles : 0);
#pragma omp parallel for num_threads(numThreads) schedule(static)
    for (int i = 0; i < numParticles; i++)
    {
        charges_[i]                           = globalCharges_[globalAtom_[i]];
        particleOfGlobalAtom_[globalAtom_[i]] = i;
        if (arePerturbed_)
        {
            chargesB_[i] = globalChargesB_[globalAtom_[i]];
        }
        if (!globalWidths_.empty())
        {
            widths_[i] = globalWidths_[globalAtom_[i]];
        }
        if (numEnergyGroups_ > 1)
        {
            energyGroups_[i] =
                    getGroupType(mtop_.groups, SimulationAtomGroupType::EnergyOutput, globalAtom_[i]);
        }
    }
    reorderExclusions();
}

void FarfieldParticles::reorderExclusions()
{
    std::vector<int> group;
    group.reserve(globalGroup_.size());
    for (const int globalAtom : globalGroup_)
    {
        group.push_back(particleOfGlobalAtom_[globalAtom]);
    }
    std::sort(group.begin(), group.end());

    // A large group has so many pairs that there should be no room for more
    exclusions_.partners.clear();
    exclusions_.partners.reserve(globalExclusions_.partners.size() + numPairsOf(group.size()));
    exclusions_.offsets.resize(1);
    auto next = group.begin();
    for (size_t i = 0; i < globalAtom_.size(); i++)
    {
        const int globalI = globalAtom_[i];
        for (int k = globalExclusions_.offsets[globalI]; k < globalExclusions_.offsets[globalI + 1]; k++)
        {
            exclusions_.partners.push_back(particleOfGlobalAtom_[globalExclusions_.partners[k]]);
        }
        if (next != group.end() && *next == static_cast<int>(i))
        {
            ++next;
            exclusions_.partners.insert(exclusions_.partners.end(), next, group.end());
        }
        exclusions_.offsets.push_back(static_cast<int>(exclusions_.partners.size()));
    }
}

const RVec* FarfieldParticles::positions(ArrayRef<const RVec> x)
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

int FarfieldParticles::findBadPosition(ArrayRef<const RVec> x) const
{
    int    first  = -1;
    size_t numBad = 0;
    for (size_t i = 0; i < globalAtom_.size(); i++)
    {
        if (isBadPosition(x[homeAtom_.empty() ? i : homeAtom_[i]]))
        {
            first = numBad == 0 ? globalAtom_[i] : first;
            numBad++;
        }
    }
    // After forces that were not numbers all positions are bad, and the first was not the cause
    return numBad > 1 && numBad == globalAtom_.size() ? -1 : first;
}

} // namespace gmx
