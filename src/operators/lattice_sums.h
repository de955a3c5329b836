/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Lattice sums of irregular harmonics over the far cells, per wave vector.
 *
 *  Over all cells D of the infinite lattice of cells except the near ones, in units of
 *  Grid::unit(),
 *
 *      W_i(k) = sum_D v_i(D) exp(-i k.D)  =  i^l w_i(k),   w_i real because v_i(-D) = (-1)^l
 *  v_i(D).
 *
 *  Transforming M2L this way contains all periodic images. An Ewald split with parameter a gives
 *  real space:       v_i Q(l+1/2, a^2 r^2) for far cells, -v_i P(l+1/2, a^2 r^2) for near ones,
 *  reciprocal space: 4 pi (-i)^l u_i(q) exp(-q^2/4a^2) / (q^2 (2l-1)!!),  q = k + reciprocal
 *  lattice, and backgroundOfSplit() for l = 0, k = 0. q = 0 is left out: conducting surroundings.
 *  Nijboer and De Wette, Physica 23, 309 (1957), doi:10.1016/S0031-8914(57)92124-9.
 *
 *  A slab has images along x and y only: of cells apart in z there is one, nearer than half the box,
 *  and the sum over reciprocal space is another, see slab_sums.h.
 *
 *  Without images the sum has one term for each cell, nearer than half the box in each dimension:
 *  the convolution is that of an open system as long as its particles are no farther apart
 *  (Hockney and Eastwood, Computer Simulation Using Particles, ch. 6-5-4; a box that is half empty).
 */
#ifndef FARFIELD_OPERATORS_LATTICE_SUMS_H
#define FARFIELD_OPERATORS_LATTICE_SUMS_H

#include <array>
#include <vector>

#include "farfield/options.h"

#include "cells/grid.h"
#include "operators/strained_harmonics.h"

namespace farfield
{

//! Lattice sums w_i(k) and their derivatives with respect to strain of the cells, the latter kept
//! as Real.
template<class Real>
struct LatticeSums
{
    int degree = 0; //!< highest degree of the harmonics
    //! [wave vectors asked for][coefficientCount(degree)]
    Matrix value;
    /*! \brief d w / d strain (multipoles and positions in the cells held fixed), symmetrised.
     *
     *  [wave vectors asked for][coefficientCount(strainDegree)] */
    std::array<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, StrainCount>
            strain;
};

/*! \brief Computes the sums for wave vectors of a grid.
 *
 *  \param[in] grid       the cells; those of a slab are stacked along z
 *  \param[in] boundary   Periodic or Slab
 *  \param[in] ws         direct range: cells with |D_k| <= ws are near
 *  \param[in] degree     highest degree
 *  \param[in] strainDegree  highest degree of the derivatives, at most degree
 *  \param[in] precision  relative truncation of the Ewald sums
 *  \param[in] waves      the wave vectors for which the sums are wanted
 *  \param[in] ewald      Ewald parameter in units of 1/unit(); any value gives the same sums
 *  \param[in] threads    OpenMP threads */
template<class Real>
LatticeSums<Real> latticeSums(const Grid& grid,
                              Boundary boundary,
                              int ws,
                              int degree,
                              int strainDegree,
                              const std::vector<int>& waves,
                              double precision,
                              double ewald,
                              int threads);

/*! \brief The same sums over one image of each cell.
 *  \param[in] grid  rectangular */
Matrix openSums(const Grid& grid, int ws, int degree, const std::vector<int>& waves, int threads);

} // namespace farfield

#endif
