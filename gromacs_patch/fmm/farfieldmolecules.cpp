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
#include <string>
#include <utility>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/idef.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/exceptions.h"
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

//! The first sentence about an excluded pair of atoms of the system, of which an image is nearer.
std::string excludedPairMessage(const std::pair<int, int>& pair,
                                const gmx_moltype_t&       moltype,
                                const real                 distance,
                                const real                 distanceOfImage)
{
    return formatString(
            "Atoms %d and %d of molecule type %s are excluded from each other and %.3f nm apart, "
            "but an image is nearer, at %.3f nm: the molecule is longer than half of the box.",
            pair.first + 1,
            pair.second + 1,
            *moltype.name,
            distance,
            distanceOfImage);
}

/*! \brief Reports molecules of which excluded pairs are not their own nearest images.
 *
 * It is nearest images that the FMM leaves out, and between which the pairs of a decoupled molecule
 * are computed instead.
 */
void checkExcludedPairs(const gmx_mtop_t&          mtop,
                        const PbcType              pbcType,
                        const ArrayRef<const RVec> x,
                        const matrix               box,
                        WarningHandler*            wi)
{
    t_pbc pbc;
    set_pbc(&pbc, pbcType, box);
    int offset = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t&   moltype = mtop.moltype[molblock.type];
        const int              size    = moltype.atoms.nr;
        const InteractionList& pairs =
                moltype.ilist[InteractionFunction::LennardJonesCoulombNonBondedPairs];
        // couple-intramol = no lists the pairs of a molecule and excludes all
        const bool isDecoupled = !pairs.empty() && moltype.excls[0].ssize() == size;
        const auto bonds       = collectBonds(moltype, mtop.ffparams.iparams);
        const auto hasCharge   = [&atoms = moltype.atoms](const int i)
        { return atoms.atom[i].q != 0 || atoms.atom[i].qB != 0; };

        RVec nearest;
        for (int molecule = 0; molecule < molblock.nmol; molecule++, offset += size)
        {
            const auto whole = makeWhole(bonds, x.subArray(offset, size), box, numPbcDimensions(pbcType));
            // By more than rounding
            const auto isOther = [&](const int i, const int j)
            {
                pbc_dx_aiuc(&pbc, whole[j], whole[i], nearest);
                return norm(nearest) < 0.999_real * norm(whole[j] - whole[i]);
            };
            for (int i = 0; i < gmx::ssize(whole); i++)
            {
                for (const int j : moltype.excls[i])
                {
                    if (j <= i || !(isDecoupled || (hasCharge(i) && hasCharge(j))) || !isOther(i, j))
                    {
                        continue;
                    }
                    const std::string text = excludedPairMessage(
                            { offset + i, offset + j }, moltype, norm(whole[j] - whole[i]), norm(nearest));
                    if (isDecoupled)
                    {
                        wi->addError(text
                                     + " With couple-intramol = no the interaction with that image "
                                       "would be computed. Use a larger box, or set "
                                       "couple-intramol = yes.");
                    }
                    else
                    {
                        wi->addWarning(text
                                       + " With coulombtype = FMM the interaction with that image "
                                         "is left out instead. Use a larger box, or hold these "
                                         "atoms in place.");
                    }
                    return;
                }
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

} // namespace gmx
