/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A slab as a layer of a periodic box, with vacuum between the layers, and what the layers have of
 *         each other.
 *
 *  I.-C. Yeh and M. L. Berkowitz, J. Chem. Phys. 111, 3155 (1999), doi:10.1063/1.479595; with a net
 *  charge: V. Ballenegger, A. Arnold and J. J. Cerda, J. Chem. Phys. 131, 094107 (2009),
 *  doi:10.1063/1.3216473. With the coordinate z along the normal, Q = sum q, M = sum q z, S = sum q z^2,
 *  and the volume V and height H of the box, the energy of the slab is that of the box and
 *
 *      2 pi k / V (M^2 - Q S - Q^2 H^2 / 12).
 *
 *  What is left of the layers' fields decays as exp(-2 pi v / s) with the height v of the vacuum and the
 *  largest distance s of rows of the plane's lattice.
 */
#ifndef FARFIELD_BATCH_SLAB_BOX_H
#define FARFIELD_BATCH_SLAB_BOX_H

#include "base/vectors.h"

namespace farfield
{

//! The box of a slab.
struct SlabBox
{
    Mat3 rows;       //!< nm; the third is along the normal, of the length height
    Vec3 normal;     //!< of length 1
    double height;   //!< nm
    double middle;   //!< of the particles along the normal, nm
    double fullness; //!< part of the volume that is about the particles
};

//! The normal of two vectors. \param[in] plane  rows, nm, [2][3]
Vec3 normalOf(const double* plane);

/*! \brief A box with so much vacuum that layers do not feel each other.
 *  \param[in] plane           rows, nm, [2][3], which span an area
 *  \param[in] lowest,highest  of the particles along the normal, nm
 *  \param[in] accuracy        wanted
 *  \param[in] detour          factor of the vacuum */
SlabBox slabBox(const double* plane, double lowest, double highest, double accuracy, double detour);

/*! \brief The vectors' change where those of the plane change; the height stays.
 *  \param[in] change  rows, nm, [2][3] */
Mat3 changeOfRows(const SlabBox& box, const double* change);

//! Charges along the normal, or their change.
struct SlabMoments
{
    //! \param[in] q  e, \param[in] z  nm
    void add(double q, double z)
    {
        net += q;
        dipole += q * z;
        square += q * z * z;
    }
    //! Adds the change of a charge. \param[in] dq  e, \param[in] dz  nm
    void addChange(double q, double z, double dq, double dz)
    {
        net += dq;
        dipole += dq * z + q * dz;
        square += dq * z * z + 2 * q * z * dz;
    }
    double net = 0, dipole = 0, square = 0;
};

} // namespace farfield

#endif
