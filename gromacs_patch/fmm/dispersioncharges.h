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
/*! \libinternal \file
 * \brief Declares what atom types bring into the dispersion of an FMM.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_DISPERSIONCHARGES_H
#define GMX_FMM_DISPERSIONCHARGES_H

#include <vector>

#include "gromacs/utility/real.h"

struct gmx_mtop_t;
enum class LongRangeVdW : int;

namespace gmx
{

/*! \libinternal \brief C6 of pairs of atom types as sums over sets of charges, which an FMM can add up.
 *
 * C6 of types i and j is the sum over sets of sign * charge(i) * charge(j). One set has the geometric
 * rule. The C6 of a topology, of whatever rule, are those of the largest eigenvalues of their matrix,
 * which is scaled such that the sums over all atoms of the system are those of the topology with any
 * number of sets.
 */
class DispersionCharges
{
public:
    /*! \brief Chooses the sets.
     *
     * \param[in] mtop  the topology; must outlive this object
     * \param[in] rule  Geom: one set of the geometric rule; LB: sets of the C6 of the topology
     */
    DispersionCharges(const gmx_mtop_t& mtop, LongRangeVdW rule);

    //! Number of sets; 0 without dispersion
    int numSets() const { return static_cast<int>(signs_.size()); }
    //! 1 or -1
    double sign(int set) const { return signs_[set]; }
    //! The charge of a type, (kJ mol^-1 nm^6)^1/2
    real charge(int type, int set) const { return charges_[type * numSets() + set]; }
    //! Whether atoms of a type have a charge
    bool isCharged(int type) const;
    //! C6 of a pair of types, kJ mol^-1 nm^6
    double c6(int i, int j) const;
    //! What that leaves of the C6 of the topology; 0 where it is rounding
    double c6Left(int i, int j) const;
    /*! \brief How far C6 are off the topology.
     *
     * What all atoms of the system have with one of a type, as a part of their C6 with it or with
     * an average atom, whichever is more; of the type where it is largest.
     */
    double largestDifference() const { return largestDifference_; }

private:
    double c6OfTopology(int i, int j) const;

    const gmx_mtop_t&   mtop_;
    std::vector<double> signs_;
    //! [types][sets]
    std::vector<real> charges_;
    double            largestDifference_ = 0;
};

} // namespace gmx

#endif
