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

/*! \libinternal \file
 * \brief Charges and exclusions as libfarfield takes them.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDTOPOLOGY_H
#define GMX_FMM_FARFIELDTOPOLOGY_H

#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"
#include "gromacs/utility/vectypes.h"

struct gmx_mtop_t;
struct t_atom;

namespace gmx
{

struct FarfieldRun;
struct MDModulesAtomsRedistributedSignal;

//! Compressed rows of the atoms that are excluded from interacting with an atom.
struct FarfieldExclusions
{
    std::vector<int> offsets = { 0 };
    std::vector<int> partners;
};

//! The net charge, e, of a state, t_atom::q or t_atom::qB
double netCharge(const gmx_mtop_t& mtop, real t_atom::*charge);

//! Whether atoms are in several energy groups; those of walls have none
bool haveEnergyGroups(const gmx_mtop_t& mtop);

/*! \brief Collects the exclusions of the molecules of the whole system, each pair at its first atom.
 *
 * \param[in] mtop   the global topology
 * \param[in] group  atoms whose pairs are left out here, ascending
 */
FarfieldExclusions collectExclusions(const gmx_mtop_t& mtop, const std::vector<int>& group);

/*! \brief The particles of the FMM: the home atoms without filler particles, in their order.
 *
 * Charges and exclusions come from the global topology, so that they cannot depend on what is
 * local.
 */
class FarfieldParticles
{
public:
    /*! \brief No particles yet.
     *
     * \param[in] mtop          the global topology; must outlive this object
     * \param[in] run           whether charges differ between states, and how many ranks there are
     */
    FarfieldParticles(const gmx_mtop_t& mtop, const FarfieldRun& run);

    /*! \brief Takes over the local order of the atoms.
     *
     * \returns whether charges and exclusions have to be handed to the library again
     */
    bool follow(const MDModulesAtomsRedistributedSignal& signal);

    //! Charges of the whole system, e, one per global atom
    ArrayRef<const real> globalCharges() const { return globalCharges_; }
    //! With several ranks: excluded pairs of global atoms, at both of them
    const FarfieldExclusions& globalExclusions() const { return globalExclusions_; }

    //! With one rank: charges, e, one per particle; of state A where they are perturbed
    ArrayRef<const real> charges() const { return charges_; }
    //! Charges of state B, e, one per particle, where they are perturbed
    ArrayRef<const real> chargesB() const { return chargesB_; }
    //! Whether charges differ between two states
    bool arePerturbed() const { return arePerturbed_; }
    //! Widths of Gaussian charges, nm, one per particle; empty if all are points
    ArrayRef<const real> widths() const { return widths_; }
    //! Number of energy groups
    int numEnergyGroups() const { return numEnergyGroups_; }
    //! Energy group of each particle, where there are several groups
    ArrayRef<const int> energyGroups() const { return energyGroups_; }
    //! With one rank: excluded pairs of particles, each once, at either of the two
    const FarfieldExclusions& exclusions() const { return exclusions_; }
    //! Number of excluded pairs in the whole system
    int numExcludedPairs() const { return numExcludedPairs_; }
    //! Global atom of each particle
    ArrayRef<const int> globalAtoms() const { return globalAtom_; }

    //! Number of home atoms, filler particles included
    int numHome() const { return numHome_; }
    //! Home atom of each particle, empty when they are the same
    ArrayRef<const int> homeAtoms() const { return homeAtom_; }

    /*! \brief Returns the positions of the particles: \p x itself unless there are filler particles.
     *
     * \param[in] x  positions of the home atoms
     * \returns a pointer that is valid until the next call
     */
    const RVec* positions(ArrayRef<const RVec> x);
    /*! \brief Returns the global index of the first particle with a bad position, see isBadPosition().
     *
     * Returns -1 if there is none, and if all positions are bad: then none of them is the cause.
     *
     * \param[in] x  positions of the home atoms
     */
    int findBadPosition(ArrayRef<const RVec> x) const;

private:
    //! Sets homeAtom_ and globalAtom_ from the global atoms of the home atoms.
    void setOrder(ArrayRef<const int> globalAtomIndices);
    //! Sets charges_ and exclusions_.
    void reorder();
    //! Sets exclusions_.
    void reorderExclusions();

    const gmx_mtop_t& mtop_;
    const bool        arePerturbed_;
    const bool        areDivided_;
    //! Of perturbed atoms, nm; 0: points
    const real perturbedChargeWidth_;
    const int  numEnergyGroups_;

    //! Charges of the whole system, in global order
    std::vector<real> globalCharges_;
    //! The same of state B, where they are perturbed
    std::vector<real> globalChargesB_;
    //! Widths of the whole system, in global order; empty if all are points
    std::vector<real> globalWidths_;
    //! Atoms of which all pairs are excluded, ascending
    std::vector<int> globalGroup_;
    //! Other exclusions of the whole system, in global order, each pair at its first atom; with
    //! several ranks at both
    FarfieldExclusions globalExclusions_;
    int                numExcludedPairs_ = 0;

    int              numHome_ = 0;
    std::vector<int> homeAtom_;
    //! Global atom of each particle
    std::vector<int> globalAtom_;
    //! Particle of each global atom
    std::vector<int> particleOfGlobalAtom_;

    std::vector<real>  charges_;
    std::vector<real>  chargesB_;
    std::vector<real>  widths_;
    std::vector<int>   energyGroups_;
    FarfieldExclusions exclusions_;
    //! Positions without filler particles
    std::vector<RVec> x_;
};

} // namespace gmx

#endif
