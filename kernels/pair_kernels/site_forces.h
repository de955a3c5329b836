/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges that are atoms among others, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_SITE_FORCES_H
#define FARFIELD_KERNELS_PAIR_KERNELS_SITE_FORCES_H

#include "runtime/device.h"

namespace farfield
{

//! Positions of some atoms. \param[in] x  [atoms][3] \param[in] atoms  [n] which \param[out] to  [n][3]
template<class Real>
void gatherPositions(const Real* x, const int* atoms, int n, double* to, cudaStream_t stream);

//! What forces are made of. Plain data.
template<class Real>
struct SiteForces
{
    const double* sums; //!< [sets][4][n] sorted: potentials and fields
    const int* order;   //!< [n] index before sorting
    const int* invalid; //!< 0: all charges are in cells
    int n, sets;
    const Real* q;         //!< [n][sets] by index before sorting
    const double* factors; //!< [sets]
    const int* atoms;      //!< [n]
    Real* forces;          //!< [atoms][3], added to
};

//! Adds forces to those of the atoms: of each set its factor times charge times field. All are NaN if a charge is in no cell.
template<class Real>
void addSiteForces(const SiteForces<Real>& of, cudaStream_t stream);

} // namespace farfield

#endif
