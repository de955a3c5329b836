/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Reciprocal space of the lattice sums of a slab: periodic along x and y, open along z.
 *
 *  1/r is cut off at |z| = R, which is exact for cells that are less apart and makes space periodic
 *  with 2R along z, whatever the cells' own period is (Rozzi, Varsano, Marini, Gross and Rubio, Phys.
 *  Rev. B 73, 205119 (2006), doi:10.1103/PhysRevB.73.205119, eq. 20). With q_z = pi j / R the
 *  transform of 1/r, 4 pi / q^2, becomes, for q = 0 by its limit,
 *
 *      4 pi / q^2 (1 - (-1)^j exp(-q_par R)),      -2 pi R^2.
 *
 *  It is smooth like the long-ranged part of Ewald's split except at |z| = R, where the kink of the
 *  cut-off is as wide as the Gaussian: R is beyond all cells by as much as that and its derivatives
 *  reach. What comes out are sums for each q_par and q_z; those for wave vectors of the cells are
 *  sums over displacements |D_z| <= m of their transform back, for which Dirichlet's kernel stands,
 *
 *      w(k) = h / 2R sum_j w(q_j) sum_{|D| <= m} cos((k - q_j h) D),      h: height of a cell.
 *
 *  Of a plane of charges, k_par = 0, the potential is -2 pi |z|, as in the sums of Parry, Surf. Sci.
 *  49, 433 (1975), doi:10.1016/0039-6028(75)90362-3: with a net charge, which has none at infinity,
 *  that says where energies begin; forces do not depend on it.
 */
#ifndef FARFIELD_OPERATORS_SLAB_SUMS_H
#define FARFIELD_OPERATORS_SLAB_SUMS_H

#include <vector>

#include "operators/lattice_sums.h"

namespace farfield
{

/*! \brief Adds the sums over reciprocal space.
 *
 *  \param[in]     grid     cells, stacked along z
 *  \param[in]     a        Ewald parameter in units of 1/unit()
 *  \param[in]     decay    the sums end at exp(-decay^2)
 *  \param[in]     waves    of the sums
 *  \param[in]     threads  OpenMP threads
 *  \param[in,out] sums     get the terms */
template<class Real>
void addReciprocalSpaceOfSlab(const Grid& grid,
                              double a,
                              double decay,
                              const std::vector<int>& waves,
                              int threads,
                              LatticeSums<Real>* sums);

} // namespace farfield

#endif
