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
 * \brief Implements the checks of molecules.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldmolecules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/math/matrix.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/idef.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/stringutil.h"
#include "gromacs/utility/vec.h"

#include "farfieldtopology.h"

namespace gmx
{

namespace
{

//! Two atoms of a molecule with a bond between them.
struct Bond
{
    int first;
    int second;
    //! In nm; 0 where it is not known
    real length;
};

//! Returns the length of a bond in nm, the longer one of two states; 0 if it is not known.
real bondLength(const InteractionFunction type, const t_iparams& parameters)
{
    switch (type)
    {
        case InteractionFunction::Bonds:
        case InteractionFunction::GROMOS96Bonds:
            return std::max(parameters.harmonic.rA, parameters.harmonic.rB);
        case InteractionFunction::MorsePotential:
            return std::max(parameters.morse.b0A, parameters.morse.b0B);
        case InteractionFunction::CubicBonds: return parameters.cubic.b0;
        case InteractionFunction::FENEBonds: return parameters.fene.bm;
        case InteractionFunction::Constraints:
            return std::max(parameters.constr.dA, parameters.constr.dB);
        case InteractionFunction::SETTLE: return parameters.settle.doh;
        default: return 0;
    }
}

//! Returns the bonds, constraints and rigid water of a molecule.
std::vector<Bond> collectBonds(const gmx_moltype_t& moltype, ArrayRef<const t_iparams> parameters)
{
    std::vector<Bond> bonds;
    for (const InteractionFunction type : EnumerationWrapper<InteractionFunction>{})
    {
        if ((interaction_function[type].flags & IF_CHEMBOND) == 0)
        {
            continue;
        }
        const InteractionList& list = moltype.ilist[type];
        for (int i = 0; i < list.size(); i += 1 + NRAL(type))
        {
            // Rigid water has two bonds, at its first atom
            for (int k = 2; k <= NRAL(type); k++)
            {
                bonds.push_back({ list.iatoms[i + 1],
                                  list.iatoms[i + k],
                                  bondLength(type, parameters[list.iatoms[i]]) });
            }
        }
    }
    return bonds;
}

//! Returns \p dx to the nearest image along the first \p numDims vectors of the box that are not empty.
RVec nearestImage(RVec dx, const matrix box, const int numDims)
{
    for (int d = numDims - 1; d >= 0; d--)
    {
        if (box[d][d] > 0)
        {
            dx -= std::round(dx[d] / box[d][d]) * RVec(box[d]);
        }
    }
    return dx;
}

//! A bond of a molecule in a structure, between atoms of the system.
struct BondInStructure : Bond
{
    //! In nm, by the images that there are
    real distance;
    //! In nm, also by images across the box that there are not
    real distanceAcrossBox;
};

/*! \brief Whether a bond leads to an image that there is not.
 *
 * A bond that is strained is hardly shorter across the box, and without strain no bond is twice as
 * long as it should be, whatever the box.
 */
bool isBrokenAcrossBox(const BondInStructure& bond)
{
    return bond.distance > 2 * bond.length && bond.distance > 2 * bond.distanceAcrossBox;
}

/*! \brief Copies \p box without what means nothing.
 *
 * That are edges without images that are shorter than half of what \p x spans.
 */
void copyMeantBox(const PbcType pbcType, const ArrayRef<const RVec> x, const matrix box, matrix meant)
{
    copy_mat(box, meant);
    for (int d = numPbcDimensions(pbcType); d < DIM; d++)
    {
        const auto isBelow           = [d](const RVec& a, const RVec& b) { return a[d] < b[d]; };
        const auto [lowest, highest] = std::minmax_element(x.begin(), x.end(), isBelow);
        if (2 * box[d][d] < (*highest)[d] - (*lowest)[d])
        {
            clear_rvec(meant[d]);
        }
    }
}

//! Returns the bond that is farthest beyond its length, a broken one if there is one.
BondInStructure findLongestBond(const gmx_mtop_t&          mtop,
                                const PbcType              pbcType,
                                const ArrayRef<const RVec> x,
                                const matrix               box)
{
    matrix meant;
    copyMeantBox(pbcType, x, box, meant);
    const int             numPeriodic = numPbcDimensions(pbcType);
    BondInStructure       longest     = {};
    std::pair<bool, real> worst       = { false, 0 };
    int                   offset      = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t&    moltype = mtop.moltype[molblock.type];
        const std::vector<Bond> bonds   = collectBonds(moltype, mtop.ffparams.iparams);
        for (int molecule = 0; molecule < molblock.nmol; molecule++)
        {
            for (const Bond& bond : bonds)
            {
                const int                   i       = offset + bond.first;
                const int                   j       = offset + bond.second;
                const RVec                  dx      = x[j] - x[i];
                const BondInStructure       found   = { { i, j, bond.length },
                                                        norm(nearestImage(dx, meant, numPeriodic)),
                                                        norm(nearestImage(dx, meant, DIM)) };
                const std::pair<bool, real> badness = { isBrokenAcrossBox(found),
                                                        found.distance - bond.length };
                if (badness > worst)
                {
                    worst   = badness;
                    longest = found;
                }
            }
            offset += moltype.atoms.nr;
        }
    }
    return longest;
}

//! What to do about molecules that are broken.
constexpr const char* c_makeWhole =
        "make molecules whole by gmx trjconv -pbc whole, with a run input file that has pbc = xyz.";

std::string brokenMessage(const PbcType pbcType, const BondInStructure& bond)
{
    return formatString(
            "The bond between atoms %d and %d is %.3f nm long, and %.3f nm across the box: the "
            "molecule is broken, but with pbc = %s there are no images %s; %s",
            bond.first + 1,
            bond.second + 1,
            bond.distance,
            bond.distanceAcrossBox,
            c_pbcTypeNames[pbcType].c_str(),
            pbcType == PbcType::XY ? "along z" : "that would join it",
            c_makeWhole);
}

/*! \brief Returns the positions \p x of a molecule, whole along its bonds.
 *
 * Returns none if the bonds do not join all of its atoms.
 *
 * \param[in] bonds    the bonds of the molecule
 * \param[in] x        its positions
 * \param[in] box      the box
 * \param[in] numDims  along so many of its vectors there are images
 */
std::vector<RVec> makeWhole(const std::vector<Bond>&   bonds,
                            const ArrayRef<const RVec> x,
                            const matrix               box,
                            const int                  numDims)
{
    std::vector<RVec> whole(x.begin(), x.end());
    std::vector<bool> isPlaced(x.size(), false);
    isPlaced[0]        = true;
    bool hasPlacedSome = true;
    while (hasPlacedSome)
    {
        hasPlacedSome = false;
        for (const Bond& bond : bonds)
        {
            if (isPlaced[bond.first] != isPlaced[bond.second])
            {
                const int from = isPlaced[bond.first] ? bond.first : bond.second;
                const int to   = isPlaced[bond.first] ? bond.second : bond.first;
                whole[to]      = whole[from] + nearestImage(x[to] - x[from], box, numDims);
                isPlaced[to]   = true;
                hasPlacedSome  = true;
            }
        }
    }
    const bool areAllPlaced = std::find(isPlaced.begin(), isPlaced.end(), false) == isPlaced.end();
    return areAllPlaced ? whole : std::vector<RVec>();
}

//! Whether an atom has a charge in either state.
bool isCharged(const t_atom& atom)
{
    return atom.q != 0 || atom.qB != 0;
}

//! Whether \p moltype was decoupled by couple-intramol = no, which lists its pairs and excludes all.
bool isDecoupled(const gmx_moltype_t& moltype)
{
    return !moltype.ilist[InteractionFunction::LennardJonesCoulombNonBondedPairs].empty()
           && moltype.excls[0].ssize() == moltype.atoms.nr;
}

//! An excluded pair of atoms of the system with an image that is nearer.
struct NearerImage
{
    int  first;
    int  second;
    real distance;
    real distanceOfImage;
};

//! The first sentence about such a pair of a molecule of type \p moltype.
std::string excludedPairMessage(const NearerImage& pair, const gmx_moltype_t& moltype)
{
    return formatString(
            "Atoms %d and %d of molecule type %s are excluded from each other and %.3f nm apart, "
            "but an image is nearer, at %.3f nm: the molecule is longer than half of the box.",
            pair.first + 1,
            pair.second + 1,
            *moltype.name,
            pair.distance,
            pair.distanceOfImage);
}

//! The message about a pair of a molecule that is decoupled.
std::string decoupledPairMessage(const NearerImage& pair, const gmx_moltype_t& moltype)
{
    return excludedPairMessage(pair, moltype)
           + " With couple-intramol = no the interaction with that image would be computed. Use a "
             "larger box, or set couple-intramol = yes.";
}

/*! \brief Looks for an excluded pair of a molecule whose atoms are not their own nearest images.
 *
 * It is nearest images that the FMM leaves out, and between which the pairs of a decoupled molecule
 * are computed instead.
 *
 * \param[in] moltype  the type of the molecule
 * \param[in] bonds    its bonds
 * \param[in] x        its positions
 * \param[in] first    its first atom in the system
 * \param[in] pbc      the images
 */
std::optional<NearerImage> findNearerImage(const gmx_moltype_t&       moltype,
                                           const std::vector<Bond>&   bonds,
                                           const ArrayRef<const RVec> x,
                                           const int                  first,
                                           const t_pbc&               pbc)
{
    const bool              ofDecoupled = isDecoupled(moltype);
    const std::vector<RVec> whole = makeWhole(bonds, x, pbc.box, numPbcDimensions(pbc.pbcType));
    const ArrayRef<const t_atom> atoms(moltype.atoms.atom, moltype.atoms.atom + moltype.atoms.nr);
    for (int i = 0; i < gmx::ssize(whole); i++)
    {
        for (const int j : moltype.excls[i])
        {
            const RVec apart = whole[j] - whole[i];
            if (j <= i || norm2(apart) <= pbc.max_cutoff2
                || !(ofDecoupled || (isCharged(atoms[i]) && isCharged(atoms[j]))))
            {
                continue;
            }
            RVec nearest;
            pbc_dx_aiuc(&pbc, whole[j], whole[i], nearest);
            // By more than rounding
            if (norm(nearest) < 0.999_real * norm(apart))
            {
                return NearerImage{ first + i, first + j, norm(apart), norm(nearest) };
            }
        }
    }
    return std::nullopt;
}

//! Reports molecules of which excluded pairs are not their own nearest images.
void checkExcludedPairs(const gmx_mtop_t&          mtop,
                        const PbcType              pbcType,
                        const ArrayRef<const RVec> x,
                        const matrix               box,
                        WarningHandler*            wi)
{
    t_pbc pbc;
    set_pbc(&pbc, pbcType, box);
    int first = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t&    moltype = mtop.moltype[molblock.type];
        const std::vector<Bond> bonds   = collectBonds(moltype, mtop.ffparams.iparams);
        const int               size    = moltype.atoms.nr;
        for (int molecule = 0; molecule < molblock.nmol; molecule++, first += size)
        {
            const auto found = findNearerImage(moltype, bonds, x.subArray(first, size), first, pbc);
            if (found && isDecoupled(moltype))
            {
                wi->addError(decoupledPairMessage(*found, moltype));
                return;
            }
            if (found)
            {
                wi->addWarning(excludedPairMessage(*found, moltype)
                               + " With coulombtype = FMM the interaction with that image is left "
                                 "out instead. Use a larger box, or hold these atoms in place.");
                return;
            }
        }
    }
}

} // namespace

void checkMolecules(const gmx_mtop_t&          mtop,
                    const t_inputrec&          ir,
                    const ArrayRef<const RVec> x,
                    const matrix               box,
                    WarningHandler*            wi)
{
    if (ir.pbcType != PbcType::No && !ir.bPeriodicMols)
    {
        checkExcludedPairs(mtop, ir.pbcType, x, box, wi);
    }
    if (ir.pbcType == PbcType::Xyz)
    {
        return;
    }
    // Longer than any strain. Molecules may have been broken in another box than that in the file
    constexpr real        c_tooLong = 1;
    const BondInStructure bond      = findLongestBond(mtop, ir.pbcType, x, box);
    if (isBrokenAcrossBox(bond))
    {
        wi->addError(brokenMessage(ir.pbcType, bond));
    }
    else if (bond.length > 0 && bond.distance > 2 * bond.length + c_tooLong)
    {
        wi->addWarning(formatString(
                "Atoms %d and %d are %.3f nm apart, but the bond between them should be "
                "%.3f nm long. If a molecule is broken, %s",
                bond.first + 1,
                bond.second + 1,
                bond.distance,
                bond.length,
                c_makeWhole));
    }
}

void throwIfBroken(const gmx_mtop_t& mtop, const PbcType pbcType, const ArrayRef<const RVec> x, const matrix box)
{
    if (pbcType != PbcType::Xyz)
    {
        if (const auto bond = findLongestBond(mtop, pbcType, x, box); isBrokenAcrossBox(bond))
        {
            GMX_THROW(InvalidInputError(brokenMessage(pbcType, bond)));
        }
    }
}

DecoupledMolecules::DecoupledMolecules(const gmx_mtop_t& mtop) : mtop_(mtop)
{
    int first = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const int numAtoms = molblock.nmol * mtop.moltype[molblock.type].atoms.nr;
        if (isDecoupled(mtop.moltype[molblock.type]))
        {
            blocks_.push_back({ molblock.type, first, numAtoms });
        }
        first += numAtoms;
    }
}

void DecoupledMolecules::collect(const MDModulesAtomsRedistributedSignal& signal, const MpiComm* ranks)
{
    x_.clear();
    for (const Block& block : blocks_)
    {
        if (!signal.globalAtomIndices_)
        {
            const auto all = signal.x_.subArray(block.first, block.numAtoms);
            x_.insert(x_.end(), all.begin(), all.end());
            continue;
        }
        const auto begin = x_.size();
        x_.resize(begin + block.numAtoms, { 0, 0, 0 });
        for (int i = 0; i < signal.x_.ssize(); i++)
        {
            const int atom = (*signal.globalAtomIndices_)[i];
            if (atom >= block.first && atom < block.first + block.numAtoms)
            {
                x_[begin + atom - block.first] = signal.x_[i];
            }
        }
    }
    // Each atom is at home on one rank, and zero on all others
    if (ranks != nullptr)
    {
        ranks->sumReduce(arrayRefFromArray(x_.data()->as_vec(), DIM * x_.size()));
    }
}

void DecoupledMolecules::throwIfTooLong(const PbcType                            pbcType,
                                        const MDModulesAtomsRedistributedSignal& signal,
                                        const MpiComm*                           ranks)
{
    if (blocks_.empty() || pbcType == PbcType::No)
    {
        return;
    }
    collect(signal, ranks);
    matrix box;
    fillLegacyMatrix(signal.box_, box);
    t_pbc pbc;
    set_pbc(&pbc, pbcType, box);
    int begin = 0;
    for (const Block& block : blocks_)
    {
        const gmx_moltype_t&    moltype = mtop_.moltype[block.type];
        const std::vector<Bond> bonds   = collectBonds(moltype, mtop_.ffparams.iparams);
        const int               size    = moltype.atoms.nr;
        for (int i = 0; i < block.numAtoms; i += size)
        {
            const auto x = constArrayRefFromArray(x_.data() + begin + i, size);
            if (const auto found = findNearerImage(moltype, bonds, x, block.first + i, pbc))
            {
                GMX_THROW(InvalidInputError(decoupledPairMessage(*found, moltype)));
            }
        }
        begin += block.numAtoms;
    }
}

} // namespace gmx
