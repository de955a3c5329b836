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
 * \brief Checks of molecules, which are not always what the run would take them for.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDMOLECULES_H
#define GMX_FMM_FARFIELDMOLECULES_H

#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/vectypes.h"

struct gmx_mtop_t;
struct t_inputrec;
class WarningHandler;
enum class PbcType : int;

namespace gmx
{

class MpiComm;
struct MDModulesAtomsRedistributedSignal;

/*! \brief Reports molecules that the run would not take for what they are.
 *
 * Where there are no images, these are broken across the box; where there are, they have excluded
 * pairs that are farther apart than half of it.
 *
 * \param[in] mtop  the topology
 * \param[in] ir    the input record, with coulombtype = FMM
 * \param[in] x     the positions at the start, all finite
 * \param[in] box   the box of the structure, also along axes without images; may be empty there
 * \param[in] wi    grompp's messages
 */
void checkMolecules(const gmx_mtop_t&    mtop,
                    const t_inputrec&    ir,
                    ArrayRef<const RVec> x,
                    const matrix         box,
                    WarningHandler*      wi);

/*! \brief Throws InvalidInputError if a molecule is broken across a box that has no images.
 *
 * Parameters as for checkMolecules().
 */
void throwIfBroken(const gmx_mtop_t& mtop, PbcType pbcType, ArrayRef<const RVec> x, const matrix box);

/*! \brief The molecules that were decoupled by couple-intramol = no, as they move in a run.
 *
 * PME stops if one becomes longer than the pair list. FMM has no such limit, but the pairs that
 * GROMACS lists are of nearest images.
 */
class DecoupledMolecules
{
public:
    //! Those of the global topology \p mtop, which must outlive this object
    explicit DecoupledMolecules(const gmx_mtop_t& mtop);

    /*! \brief Throws InvalidInputError, on all ranks, if one is longer than half of the box.
     *
     * Not if its bonds do not join all of its atoms.
     *
     * \param[in] pbcType  the periodicity of the run
     * \param[in] signal   the atoms of this rank at a search
     * \param[in] ranks    the ranks that have atoms; nullptr for one
     */
    void throwIfTooLong(PbcType pbcType, const MDModulesAtomsRedistributedSignal& signal, const MpiComm* ranks);

private:
    //! Sets x_
    void collect(const MDModulesAtomsRedistributedSignal& signal, const MpiComm* ranks);

    //! Molecules of one type that follow each other
    struct Block
    {
        int type;
        //! First atom in the system
        int first;
        int numAtoms;
    };

    const gmx_mtop_t&  mtop_;
    std::vector<Block> blocks_;
    //! Positions of the atoms of all blocks, of all ranks
    std::vector<RVec> x_;
};

} // namespace gmx

#endif
