/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the kernels of sites read and fill: charges and moments, potentials and their derivatives.
 *
 *  A site is a particle with a charge q, a dipole mu and a traceless quadrupole Theta, the operator
 *  q + mu.grad + theta:grad grad on 1/r with theta = Theta/3. Formulas: Stone, The Theory of Intermolecular
 *  Forces, Oxford University Press (2013), chapter 3.
 */
#ifndef FARFIELD_CPU_SITE_KERNELS_H
#define FARFIELD_CPU_SITE_KERNELS_H

#include <array>
#include <vector>

#include "cpu/particle_views.h"

namespace farfield
{

template<class Real>
struct NearFunctionTask;

//! Moments of sorted particles, scaled as charges, in the frame of the operators; null: there are none.
template<class Real>
struct SortedMoments
{
    const Real* of[9] = {}; //!< dipole, e nm, then theta, e nm^2: xx yy zz xy xz yz
    //! The highest degree; where there are quadrupoles, there are dipoles.
    int degree() const { return of[0] == nullptr ? 0 : of[3] == nullptr ? 1 : 2; }
};

//! Components of moments up to a degree.
constexpr int momentCount(int degree)
{
    return degree == 0 ? 0 : degree == 1 ? 3 : 9;
}

/*! \brief The values of a site: potential, gradient, second derivatives xx yy zz xy xz yz, and with quadrupoles
 *         third derivatives times its own theta, three. */
constexpr int c_siteValues = 13;
//! Those without second derivatives, and those without third ones.
constexpr int c_flatValues = 4, c_curvedValues = 10;
//! How many there are. \param[in] degree  of moments \param[in] isCurved  whether there are second derivatives
constexpr int siteValueCount(int degree, bool isCurved)
{
    return !isCurved ? c_flatValues : degree < 2 ? c_curvedValues : c_siteValues;
}
//! Coefficients of an expansion that derivatives of a degree leave. \param[in] order  of the expansion
constexpr int derivativeCount(int order, int degree)
{
    return order > degree - 1 ? (order - degree + 1) * (order - degree + 1) : 0;
}
//! Axes of second derivatives.
constexpr int c_firstAxis[6] = { 0, 1, 2, 0, 0, 1 }, c_secondAxis[6] = { 0, 1, 2, 1, 2, 2 };

//! Arrays for the values of sorted sites.
template<class Real>
struct SiteArrays
{
    Real* of[c_siteValues];
    bool isCurved; //!< whether there are second derivatives, and with quadrupoles third ones
};

//! What the near field of sites needs.
template<class Real>
struct SiteTask
{
    Particles<Real> particles; //!< as in NearTask
    SortedMoments<Real> moments;
    const Grid* grid;
    int ws;
    bool isRelative;     //!< as in NearTask
    const int* cells;    //!< those that are occupied
    ClosePartners close; //!< as in NearTask
    Real imageDistance2 = 0;
    SiteArrays<Real> values;
    //! What pairs have in place of 1/r, Gaussian or Thole; null: nothing.
    const NearFunctionTask<Real>* functions = nullptr;
    //! Displacements of the cells in their range that are not near: the cell itself first. Null: there are none.
    const std::vector<Int3>* farther = nullptr;
    /*! \brief [cells] Virial of the pairs of the particles of each of cells, half of it, as others have the rest:
     *         xx yy zz xy xz yz; null: not wanted. */
    std::array<double, 6>* virials = nullptr;
};

} // namespace farfield

#endif
