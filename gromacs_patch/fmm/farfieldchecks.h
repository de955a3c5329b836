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
 * \brief Checks of the input: what FMM does not support, and what can not be meant.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDCHECKS_H
#define GMX_FMM_FARFIELDCHECKS_H

#include <string>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/vectypes.h"

struct gmx_mtop_t;
struct t_inputrec;
class WarningHandler;
enum class PbcType : int;

namespace gmx
{

struct FarfieldOptions;

//! Reports all of \p ir that FMM does not support; \p ir has coulombtype = FMM.
void checkInputRecord(const t_inputrec& ir, WarningHandler* wi);

//! Reports all of \p mtop that FMM does not support.
void checkTopology(const gmx_mtop_t& mtop, const t_inputrec& ir, WarningHandler* wi);

//! Reports a cell that does not fit into the box; without periodicity the library makes its own.
void checkCellSize(const FarfieldOptions& options, PbcType pbcType, const matrix box, WarningHandler* wi);

//! Whether a position is not finite or far too large.
bool isBadPosition(const RVec& x);
//! Returns the index of the first position that is, or -1.
int findBadPosition(ArrayRef<const RVec> x);

//! The message for an atom with such a position; \p atom counts from 0.
std::string badPositionMessage(int atom);

} // namespace gmx

#endif
