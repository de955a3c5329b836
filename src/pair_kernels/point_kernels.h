/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectorised inner loops of sums over pairs and of polynomials; the instruction set is chosen at run time.
 *
 *  Positions are relative to the centre of a leaf, in units of the cube root of its volume.
 */
#ifndef FARFIELD_PAIR_KERNELS_POINT_KERNELS_H
#define FARFIELD_PAIR_KERNELS_POINT_KERNELS_H

#include "pair_kernels/pair_kernel.h"

namespace farfield
{

//! Arrays of staged points are padded to a multiple of this, at least the lanes of any vector.
constexpr int c_stagePadding = 16;

//! Points of a cell. Vectors read what is behind them: c_stagePadding numbers more are there.
template<class Real>
struct CellPoints
{
    const Real *x, *y, *z;
    int count;
};

//! The polynomials of cells.
template<class Real>
struct CellPolynomials
{
    int degree;
    Real toCell[3][3]; //!< coordinates in a cell = position (row vector) times this
};

//! Points that get fields, and those that make them.
template<class Real>
struct PairTask
{
    const PairLaw<Real>* law;
    CellPoints<Real> targets;
    Real *x, *y, *z; //!< [staged] sources, aligned; changed for a while
    const Real* q;   //!< [sets][staged], aligned
    int staged;      //!< a multiple of c_stagePadding
    int sets;
    int own;      //!< the first target as a source, those behind it in order; -1: targets are none
    Real nowhere; //!< sources farther than this along x do not act
    Real* result; //!< [sets][4 or c_resultsWithStrain][stride], added to: potential and field
    int stride;
    //! Whether sums of q f d_a d_b follow for a displacement d and a field f d, of c_strains.
    bool wantsStrain = false;
    //! Sources that do not act on a target: away[awayStart[target]] and on; may be null
    const int *awayStart = nullptr, *away = nullptr;
};

constexpr int c_resultsWithStrain = 10;

template<class Real>
struct PointKernels
{
    //! Multipoles of a cell: adds sum q P_a. \param[in] q  padded as the points \param[out] M  [polynomialCount()]
    void (*toMultipoles)(const CellPolynomials<Real>& basis,
                         const CellPoints<Real>& points,
                         const Real* q,
                         Real* M);
    //! Adds the potential of a local expansion, and minus its gradient. \param[out] result  [4][stride]
    void (*fromLocals)(const CellPolynomials<Real>& basis,
                       const CellPoints<Real>& points,
                       const Real* L,
                       Real* result,
                       int stride);
    //! Adds what staged sources make at targets.
    void (*pairs)(const PairTask<Real>& task);
};

template<class Real>
const PointKernels<Real>& pointKernels();

} // namespace farfield

#endif
