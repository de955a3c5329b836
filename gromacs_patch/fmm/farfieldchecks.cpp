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
 * \brief Implements the checks of farfield's input.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldchecks.h"

#include <cmath>

#include <algorithm>
#include <string>
#include <utility>

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/stringutil.h"

#include "dispersioncharges.h"
#include "farfieldoptions.h"
#include "farfieldperturbation.h"
#include "farfieldtopology.h"

namespace gmx
{

namespace
{

//! Positions beyond this are meaningless in single precision, which resolves 0.06 nm there; in nm
constexpr real c_maxCoordinate = 1e6;

//! Reports what needs a box, where there is none, or one without a height.
void checkWithoutBox(const t_inputrec& ir, WarningHandler* wi)
{
    const auto refuse = [wi, &ir](const std::string& option)
    {
        wi->addError(formatString("%s needs a box, it cannot be used with pbc = %s%s.",
                                  option.c_str(),
                                  c_pbcTypeNames[ir.pbcType].c_str(),
                                  ir.pbcType == PbcType::XY ? " and less than two walls" : ""));
    };
    const std::pair<bool, const char*> features[] = {
        { ir.cos_accel != 0, "cos-acceleration" },
        { ir_haveBoxDeformation(ir), "deform" },
        { ir.bRot, "rotation" },
        { ir.eSwapCoords != SwapType::No, "swapcoords" },
        { ir.bIMD, "IMD-group" },
    };
    for (const auto& [isUsed, option] : features)
    {
        if (isUsed)
        {
            refuse(option);
        }
    }
    if (ir.params == nullptr || !ir.params->keyExists("applied-forces"))
    {
        return;
    }
    const KeyValueTreeObject& forces = (*ir.params)["applied-forces"].asObject();
    for (const char* module : { "colvars", "density-guided-simulation", "qmmm-cp2k", "nnpot" })
    {
        if (forces.keyExists(module) && forces[module].asObject().keyExists("active")
            && forces[module].asObject()["active"].cast<bool>())
        {
            refuse(formatString("%s-active", module));
        }
    }
}

//! Reports what cannot be used with vdwtype = FMM.
void checkDispersion(const t_inputrec& ir, WarningHandler* wi)
{
    const std::pair<bool, const char*> features[] = {
        { ir.pbcType == PbcType::XY, "pbc = xyz or pbc = no" },
        { ir.nwall > 0, "nwall = 0" },
        { ir.vdw_modifier != InteractionModifiers::None && ir.vdw_modifier != InteractionModifiers::PotShift
                  && ir.vdw_modifier != InteractionModifiers::Default,
          "vdw-modifier = Potential-shift or None" },
        { ir.eDispCorr != DispersionCorrectionType::No,
          "DispCorr = no: there is no cut-off to correct for" },
    };
    for (const auto& [isUsed, demand] : features)
    {
        if (isUsed)
        {
            wi->addError(formatString("vdwtype = FMM needs %s.", demand));
        }
    }
}

//! Whether options of a mesh are not those that GROMACS sets by itself.
bool hasOptionsOfMesh(const t_inputrec& ir)
{
    const auto isOther = [](const real value, const double usual)
    { return value != static_cast<real>(usual); };
    return ir.nkx > 0 || ir.nky > 0 || ir.nkz > 0 || ir.pme_order != 4
           || isOther(ir.fourier_spacing, 0.12) || isOther(ir.ewald_rtol, 1e-5);
}

} // namespace

void checkInputRecord(const t_inputrec& ir, WarningHandler* wi)
{
    if (ir.pbcType == PbcType::Screw)
    {
        wi->addError(
                "coulombtype = FMM does not support screw periodicity, set pbc = xyz, pbc = xy or "
                "pbc = no.");
    }
    else if (inputrec2nboundeddim(&ir) < DIM)
    {
        checkWithoutBox(ir, wi);
    }
    if (ir.pbcType == PbcType::XY && usingLJPme(ir.vdwtype))
    {
        wi->addError(
                "vdwtype = PME has images along z, but pbc = xy has none: set vdwtype = Cut-off.");
    }
    if (ir.vdwtype == VanDerWaalsType::Fmm)
    {
        checkDispersion(ir, wi);
    }
    if (ir.ewald_geometry != EwaldGeometry::ThreeD)
    {
        wi->addError(
                "coulombtype = FMM needs no slab correction, set ewald-geometry = 3d. With "
                "pbc = xy there are no images along z.");
    }
    if (ir.epsilon_surface != 0)
    {
        wi->addError(
                "coulombtype = FMM always has conducting surroundings, set epsilon-surface = 0 or "
                "use coulombtype = PME.");
    }
    if (ir.useMts)
    {
        wi->addError("coulombtype = FMM does not support multiple time stepping, set mts = no.");
    }
    if (!usingLJPme(ir.vdwtype) && hasOptionsOfMesh(ir))
    {
        wi->addNote(
                "With coulombtype = FMM there is no mesh: fourierspacing, fourier-nx, fourier-ny, "
                "fourier-nz, pme-order and ewald-rtol have no effect. Remove them to avoid this "
                "note. fmm-farfield-accuracy sets the error of the forces.");
    }
}

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
        checkPerturbation(mtop, ir, wi);
    }
    if (ir.vdwtype == VanDerWaalsType::Fmm)
    {
        const auto c6 = [&mtop](const int type)
        { return mtop.ffparams.iparams[type * (mtop.ffparams.atnr + 1)].lj.c6; };
        refuse([&c6](const t_atom& atom) { return c6(atom.type) < 0; },
               "vdwtype = FMM needs dispersion that attracts: C6 of a pair of such atoms is "
               "negative");
        constexpr double c_negligible = 0.01;
        const double difference = DispersionCharges(mtop, ir.ljpme_combination_rule).largestDifference();
        if (difference > c_negligible)
        {
            wi->addNote(formatString(
                    "vdwtype = FMM: beyond rvdw, C6 of the geometric rule is up to %.0f %% off "
                    "that of "
                    "the topology. Set lj-pme-comb-rule = Lorentz-Berthelot to have the C6 of the "
                    "topology at any distance.",
                    100 * difference));
        }
        if (ir.efep != FreeEnergyPerturbationType::No)
        {
            refuse([](const t_atom& atom) { return atom.type != atom.typeB; },
                   "vdwtype = FMM does not support perturbed atom types, set vdwtype = Cut-off");
        }
    }
    if (ir.pbcType == PbcType::XY && ir.pressureCouplingOptions.epc != PressureCoupling::No)
    {
        // What topologies have by rounding moves a pressure by less than one bar
        constexpr double c_roundingOfCharges = 0.05;
        const auto       hasNetCharge        = [&mtop](real t_atom::*charge)
        { return std::abs(netCharge(mtop, charge)) > c_roundingOfCharges; };
        if (hasNetCharge(&t_atom::q)
            || (ir.efep != FreeEnergyPerturbationType::No && hasNetCharge(&t_atom::qB)))
        {
            wi->addError(
                    "With pbc = xy the pressure of a system with a net charge is not defined, so "
                    "pcoupl cannot follow it. Add counter-ions, or set pcoupl = no.");
        }
    }
    if (haveEnergyGroups(mtop))
    {
        wi->addNote(
                "With coulombtype = FMM the Coulomb energies of energy groups (Coul-SR) include "
                "all pairs and all periodic images. Each group costs one more evaluation at steps "
                "with energies.");
    }
}

bool isBadPosition(const RVec& x)
{
    // The comparisons are false for NaN
    return !(std::abs(x[XX]) < c_maxCoordinate && std::abs(x[YY]) < c_maxCoordinate
             && std::abs(x[ZZ]) < c_maxCoordinate);
}

int findBadPosition(ArrayRef<const RVec> x)
{
    const auto found = std::find_if(x.begin(), x.end(), isBadPosition);
    return found == x.end() ? -1 : static_cast<int>(found - x.begin());
}

std::string badPositionMessage(const int atom)
{
    return formatString(
            "The position of atom %d is not finite or far too large, correct the starting "
            "structure.",
            atom + 1);
}

void checkCellSize(const FarfieldOptions& options, const PbcType pbcType, const matrix box, WarningHandler* wi)
{
    if (pbcType == PbcType::No)
    {
        return;
    }
    const double height   = pbcType == PbcType::XY ? GMX_REAL_MAX : box[ZZ][ZZ];
    const double smallest = std::min<double>({ box[XX][XX], box[YY][YY], height });
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

} // namespace gmx
