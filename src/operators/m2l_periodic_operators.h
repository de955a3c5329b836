/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operators of the periodic M2L (see m2l_periodic.h), for any backend.
 */
#ifndef FARFIELD_OPERATORS_M2L_PERIODIC_OPERATORS_H
#define FARFIELD_OPERATORS_M2L_PERIODIC_OPERATORS_H

#include <array>
#include <functional>
#include <vector>

#include "farfield/options.h"

#include "cells/wave_vectors.h"
#include "operators/lattice_sums.h"
#include "operators/reduction.h"

namespace farfield
{

/*! \brief About how many displacements the lattice sums have in real space.
 *
 *  The terms of all of them are there during set-up.
 *  \param[in] realSize  bytes of a number */
double realSpaceTerms(double representatives, int realSize);

/*! \brief Where on a line of strains another one is: 0 without strain, 1 at its end.
 *  \param[in] end  zero: there is no line, and the result is 0 */
double alongStrain(const Mat3& strain, const Mat3& end);

/*! \brief The representatives of the wave vectors of a grid and their operators.
 *
 *  \tparam Real  of the strain derivatives, which are many */
template<class Real>
class PeriodicM2lOperators
{
public:
    //! [representatives()][coefficientCount(strainDegree())], see LatticeSums.
    using StrainSums = decltype(LatticeSums<Real>::strain);

    /*! \brief Computes the lattice sums.
     *  \param[in] grid       cells, slots in the order of Grid::slot()
     *  \param[in] boundary   which images they have
     *  \param[in] ws         direct range
     *  \param[in] reduction  order and least-squares operators
     *  \param[in] strainDegree  of the strain derivatives, at most 2 highOrder; without images there
     *                        are none, whatever it is
     *  \param[in] threads    OpenMP threads */
    PeriodicM2lOperators(const Grid& grid,
                         Boundary boundary,
                         int ws,
                         const Reduction& reduction,
                         int strainDegree,
                         int threads);

    const Grid& grid() const { return grid_; }
    const Reduction& reduction() const { return reduction_; }
    //! One operator serves a representative and its copies.
    const WaveVectors& waves() const { return waves_; }
    int copies() const { return waves_.copies(); }
    int representatives() const { return waves_.representatives(); }
    const Int3& ranges() const { return waves_.ranges(); }
    int wave(int representative, int copy) const { return waves_.wave(representative, copy); }
    //! Signs of the coefficients up to the high order under the reflections of a copy.
    const std::vector<Real>& signs(int copy) const { return signs_[copy]; }

    /*! \brief The operator of a representative: reduced, symmetric, times 1 / cells, with the term
     *         of conducting surroundings at k = 0.
     *
     *  Acts on coefficients with phases (-i)^l. Not after releaseSums(). */
    Matrix kappa(int representative) const;
    //! Calls use(representative, kappa) for representatives [first, last), by several threads.
    void forEachKappa(int first,
                      int last,
                      const std::function<void(int, const Matrix&)>& use) const;
    /*! \brief Derivatives as strainSums(), of the same cells with their edges times (1 + strain).
     *
     *  Shear of rectangular cells, whose copies rely on reflections, is left out.
     *  \param[in] strain  symmetric, small */
    StrainSums strainSumsAt(const Mat3& strain) const;

    //! Gives back the memory of the lattice sums; the strain derivatives stay.
    void releaseSums() { values_ = Matrix(); }
    //! Gives back the memory of the strain derivatives.
    void releaseStrainSums() { strainSums_ = {}; }

    //! Highest degree of strainSums().
    int strainDegree() const { return strainDegree_; }
    //! Derivatives of the lattice sums, without the factor 1 / cells.
    const StrainSums& strainSums() const { return strainSums_; }
    //! M2L at the high order as combinations of lattice sums.
    const std::vector<M2lEntry>& entries() const { return entries_; }

private:
    //! Lattice sums of the representatives, for these cells or strained ones.
    LatticeSums<Real> sums(const Grid& grid, int degree) const;

    Grid grid_;
    Boundary boundary_;
    int ws_;
    Reduction reduction_;
    int strainDegree_;
    int threads_;
    WaveVectors waves_;
    std::array<std::vector<Real>, 4> signs_;
    std::vector<M2lEntry> entries_;
    Matrix values_; //!< lattice sums
    StrainSums strainSums_;
};

} // namespace farfield

#endif
