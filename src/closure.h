/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L over all far cells and their periodic images as one convolution over the cells of a
 * box.
 *
 *  L(c) = sum_c' K(c - c') M(c') with K summed over the images of c' that are not near c.
 * Transformed over the group of cells it is, per wave vector, the product with a matrix whose
 * elements follow from the lattice sums w of lattice.h. With X_j = (-i)^l_j M_j and Y_i = i^l_i
 * (kappa X)_i, kappa is real and symmetric.
 *
 *  Conducting surroundings add -(4 pi / 3V) a.b to the harmonic part of the potential at b of a
 *  charge at a (both relative to their cell centres), a term at k = 0 only.
 */
#ifndef FARFIELD_CLOSURE_H
#define FARFIELD_CLOSURE_H

#include <array>
#include <memory>
#include <vector>

#include "closure_operators.h"
#include "fft.h"

namespace farfield
{

//! The convolution for one grid of cells.
template<class Real>
class FftClosure
{
public:
    /*! \brief Builds the operators (double precision).
     *  \param[in] grid       cells, slots in the order of Grid::slot()
     *  \param[in] ws         direct range
     *  \param[in] reduction  order and least-squares operators
     *  \param[in] threads    OpenMP threads */
    FftClosure(const Grid& grid, int ws, const Reduction& reduction, int threads);

    /*! \brief Local expansions of all cells from their multipoles.
     *  \param[in]  M  multipoles in units of Grid::unit(), [coefficients][stride]
     *  \param[out] L  local expansions in 1 / Grid::unit(), [coefficients][stride]
     *  \param[in]  stride  distance of coefficients, >= cells
     *  \param[out] virial  if not null, 1/2 dE / d strain of displacements, deviatoric part, in
     *                      1 / Grid::unit(), is added */
    void apply(const Real* M, Real* L, int stride, std::array<double, StrainCount>* virial);

    /*! \brief Follows a small change of the cell shape to first order.
     *  \param[in] strain  symmetric, traceless, from the shape at construction */
    void setStrain(const Mat3& strain);

private:
    //! Neighbouring representatives and their copies: lanes of one vector.
    struct Block
    {
        int members;      //!< lanes in use
        int waves[4][16]; //!< per copy and lane: the wave vector, -1 for none
    };
    void pack();
    void
    contract(const Real* x, int block, int copy, std::array<double, StrainCount>* virial) const;

    ClosureOperators<Real> operators_;
    int threads_;
    int lanes_;
    RealTransform<Real> transform_;
    std::vector<Block> blocks_;
    AlignedVector<Real> kappa_;    //!< packed operators in use
    std::vector<Real> unstrained_; //!< the same without setStrain(); empty until it is called
    AlignedVector<Real> spectrum_;
};

} // namespace farfield

#endif
