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
#include "operators/site_values.h"

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
