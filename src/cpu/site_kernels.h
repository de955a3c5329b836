/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the kernels of sites read and fill: charges and dipoles, potentials and their derivatives.
 *
 *  A site is a particle with a charge q and a dipole mu, the operator q + mu.grad on 1/r. Formulas: Stone,
 *  The Theory of Intermolecular Forces, Oxford University Press (2013), chapter 3.
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

//! Dipoles of sorted particles, scaled as charges, e nm, in the frame of the operators; null: there are none.
template<class Real>
struct SortedDipoles
{
    const Real *x = nullptr, *y = nullptr, *z = nullptr;
    bool any() const { return x != nullptr; }
};

//! The values of a site: potential, gradient, and second derivatives xx yy zz xy xz yz.
constexpr int c_siteValues = 10;
//! Those without second derivatives.
constexpr int c_flatValues = 4;
//! Axes of second derivatives.
constexpr int c_firstAxis[6] = { 0, 1, 2, 0, 0, 1 }, c_secondAxis[6] = { 0, 1, 2, 1, 2, 2 };

//! Arrays for the values of sorted sites.
template<class Real>
struct SiteArrays
{
    Real* of[c_siteValues];
    bool isCurved; //!< whether there are second derivatives
};

//! What the near field of sites needs.
template<class Real>
struct SiteTask
{
    Particles<Real> particles; //!< as in NearTask
    SortedDipoles<Real> dipoles;
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
