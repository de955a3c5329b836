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
 * \brief Implements the checks of free-energy calculations.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldperturbation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/topology/atoms.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/stringutil.h"

namespace gmx
{

namespace
{

//! Coupling parameters of the perturbations that matter here.
struct State
{
    //! Where it comes from, for messages
    std::string name;
    double      coul = 0;
    double      vdw  = 0;
};

//! A state between two others, which slow growth passes.
State between(const State& a, const State& b)
{
    return { formatString("between %s and %s", a.name.c_str(), b.name.c_str()),
             0.5 * (a.coul + b.coul),
             0.5 * (a.vdw + b.vdw) };
}

//! All states that are visited, or whose energies are computed.
std::vector<State> visitedStates(const t_inputrec& ir)
{
    const t_lambda&    fep = *ir.fepvals;
    std::vector<State> states;
    for (int i = 0; i < fep.n_lambda; i++)
    {
        states.push_back({ formatString("lambda state %d", i),
                           fep.all_lambda[FreeEnergyPerturbationCouplingType::Coul][i],
                           fep.all_lambda[FreeEnergyPerturbationCouplingType::Vdw][i] });
    }
    if (states.empty())
    {
        const double first = std::max(0.0, fep.init_lambda_without_states);
        const double last  = first + fep.delta_lambda * static_cast<double>(ir.nsteps);
        for (const double lambda : { first, last })
        {
            states.push_back({ formatString("lambda %g", lambda), lambda, lambda });
        }
    }
    if (fep.delta_lambda != 0)
    {
        const size_t numStates = states.size();
        for (size_t i = 1; i < numStates; i++)
        {
            states.push_back(between(states[i - 1], states[i]));
        }
    }
    return states;
}

//! How an atom repels others at short distance.
enum class Repulsion
{
    Never, //!< in no state, as hydrogen atoms in many models, which others shield
    Soft,  //!< not, or softly, at this lambda
    Hard
};

//! Tells how atoms repel others.
class Repulsions
{
public:
    Repulsions(const gmx_mtop_t& mtop, const t_lambda& fep) :
        hasSoftCore_(fep.softcoreFunction == SoftcoreType::Gapsys ? fep.scGapsysScaleLinpointLJ > 0
                                                                  : fep.sc_alpha > 0)
    {
        const gmx_ffparams_t& parameters = mtop.ffparams;
        for (int i = 0; i < parameters.atnr; i++)
        {
            bool repels = false;
            for (int j = 0; j < parameters.atnr; j++)
            {
                const int k = parameters.atnr * i + j;
                repels      = repels
                         || (parameters.functype[k] == InteractionFunction::LennardJonesShortRange
                                     ? parameters.iparams[k].lj.c12 > 0
                                     : parameters.iparams[k].bham.a > 0);
            }
            repels_.push_back(repels);
        }
    }
    Repulsion of(const t_atom& atom, const double lambda) const
    {
        const bool inA = repels_[atom.type];
        const bool inB = repels_[atom.typeB];
        if (!inA && !inB)
        {
            return Repulsion::Never;
        }
        const double share = (inA ? 1 - lambda : 0) + (inB ? lambda : 0);
        // Where it is there in one of the states alone, the soft core acts as soon as it fades
        const bool isHard = (inA && inB) || share >= 1 || (share > 0 && !hasSoftCore_);
        return isHard ? Repulsion::Hard : Repulsion::Soft;
    }

private:
    const bool        hasSoftCore_;
    std::vector<bool> repels_; //!< by type
};

//! Whether an atom has Coulomb interactions at a lambda.
bool isCharged(const t_atom& atom, const double lambda)
{
    return (atom.q != 0 && lambda != 1) || (atom.qB != 0 && lambda != 0);
}

//! Whether a molecule of the system has an atom with a property.
template<class Property>
bool haveAtom(const gmx_mtop_t& mtop, const Property& property)
{
    return std::any_of(mtop.molblock.begin(),
                       mtop.molblock.end(),
                       [&](const gmx_molblock_t& molblock)
                       {
                           const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
                           return std::any_of(atoms.atom, atoms.atom + atoms.nr, property);
                       });
}

//! Whether a soft core keeps other charges from an atom; a state that is there alone is not soft.
bool isSoft(const t_atom& atom, const double lambda)
{
    return PERTURBED(atom) && !(atom.q != 0 && lambda == 0) && !(atom.qB != 0 && lambda == 1);
}

//! Whether a charge of a molecule type can be met by others without repulsion.
bool isExposed(const gmx_moltype_t& moltype, const int i, const State& state, const Repulsions& repulsions)
{
    const t_atom& atom = moltype.atoms.atom[i];
    if (!isCharged(atom, state.coul))
    {
        return false;
    }
    const Repulsion own = repulsions.of(atom, state.vdw);
    if (own != Repulsion::Never)
    {
        return own == Repulsion::Soft;
    }
    // An atom that is shielded by those it is bonded to, which it does not interact with
    bool isShielded  = false;
    bool wasShielded = false;
    for (const int j : moltype.excls[i])
    {
        const Repulsion other = repulsions.of(moltype.atoms.atom[j], state.vdw);
        isShielded            = isShielded || other == Repulsion::Hard;
        wasShielded           = wasShielded || other == Repulsion::Soft;
    }
    return wasShielded && !isShielded;
}

} // namespace

bool hasPerturbedCharges(const gmx_mtop_t& mtop)
{
    return haveAtom(mtop, [](const t_atom& atom) { return atom.q != atom.qB; });
}

real perturbedChargeWidth(const t_inputrec& ir, const gmx_mtop_t& mtop)
{
    // The kernels reach much farther: of the Gaussian's rest nothing is left there
    constexpr real c_width = 0.12;
    if (ir.efep == FreeEnergyPerturbationType::No)
    {
        return 0;
    }
    // grompp sets bScCoul by itself where the only lambdas are init-lambda or fep-lambdas
    const t_lambda& fep = *ir.fepvals;
    const bool isSoft = fep.softcoreFunction == SoftcoreType::Gapsys ? fep.scGapsysScaleLinpointQ > 0
                                                                     : fep.bScCoul && fep.sc_alpha > 0;
    const auto isPerturbedCharge = [](const t_atom& atom)
    { return PERTURBED(atom) && (atom.q != 0 || atom.qB != 0); };
    return isSoft && haveAtom(mtop, isPerturbedCharge) ? c_width : 0;
}

void checkPerturbation(const gmx_mtop_t& mtop, const t_inputrec& ir, WarningHandler* wi)
{
    const bool               hasSoftCore = perturbedChargeWidth(ir, mtop) > 0;
    const Repulsions         repulsions(mtop, *ir.fepvals);
    const std::vector<State> states = visitedStates(ir);
    for (const gmx_moltype_t& moltype : mtop.moltype)
    {
        const auto isWrong = [&](const State& state, int* atom)
        {
            for (*atom = 0; *atom < moltype.atoms.nr; (*atom)++)
            {
                if (!(hasSoftCore && isSoft(moltype.atoms.atom[*atom], state.coul))
                    && isExposed(moltype, *atom, state, repulsions))
                {
                    return true;
                }
            }
            return false;
        };
        int        atom  = 0;
        const auto found = std::find_if(states.begin(),
                                        states.end(),
                                        [&](const State& state) { return isWrong(state, &atom); });
        if (found != states.end())
        {
            wi->addError(formatString(
                    "With %s (coul-lambda %g, vdw-lambda %g) an atom has a charge, but its "
                    "Lennard-Jones repulsion is soft or gone. Opposite charges would collapse onto "
                    "it. %semove charges before repulsion, and bring them back after it: where "
                    "atoms vanish, bring coul-lambdas to 1 before vdw-lambdas leave 0, where atoms "
                    "appear, do the reverse (atom %d of molecule type %s).",
                    found->name.c_str(),
                    found->coul,
                    found->vdw,
                    hasSoftCore ? "R" : "Set sc-coul = yes, with an sc-alpha above 0, or r",
                    atom + 1,
                    *moltype.name));
        }
    }
    if (hasSoftCore)
    {
        wi->addNote(
                "The soft core acts on Coulomb interactions: by sc-coul, because there are no "
                "other lambdas than init-lambda or fep-lambdas, or by sc-function = gapsys. With "
                "coulombtype = FMM mdrun then runs on one rank, and computes perturbed pairs on "
                "the CPU.");
    }
}

} // namespace gmx
