/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A slab as a layer of a periodic box, with vacuum between the layers, and what the layers have of
 *         each other. For host and device.
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

#include "batch/compact_box.h"

namespace farfield
{

//! The box of a slab.
struct SlabBox
{
    double rows[9];   //!< nm; the third is along the normal, of the length height
    double normal[3]; //!< of length 1
    double height;    //!< nm
    double middle;    //!< of the particles along the normal, nm
    double thickness; //!< of the particles along the normal, nm
    double fullness;  //!< part of the volume that is about the particles
    bool isTooHigh;   //!< see c_highestSlab
};

//! Layers of more times the longer vector are refused: waves are many, and potentials lose digits.
constexpr double c_highestSlab = 100;

/*! \brief The normal of two vectors.
 *  \param[in] plane    rows, nm, [2][3]
 *  \param[out] normal  of length 1
 *  \returns the area that they span, nm^2 */
FARFIELD_HD double findNormal(const double* plane, double* normal)
{
    for (int k = 0; k < 3; k++)
    {
        const int next = (k + 1) % 3, last = (k + 2) % 3;
        normal[k] = plane[next] * plane[3 + last] - plane[last] * plane[3 + next];
    }
    const double area = std::sqrt(dotOf(normal, normal));
    for (int k = 0; k < 3; k++)
    {
        normal[k] /= area;
    }
    return area;
}

/*! \brief A box with so much vacuum that layers do not feel each other.
 *  \param[in] plane           rows, nm, [2][3], which span an area
 *  \param[in] lowest,highest  of the particles along the normal, nm
 *  \param[in] accuracy        wanted */
FARFIELD_HD SlabBox slabBox(const double* plane, double lowest, double highest, double accuracy)
{
    // forces have 5e-4 of the error from other layers then; the virial of a single charge needs it
    constexpr double c_margin = 9;
    // of the longer vector: no layer counts as thinner
    constexpr double c_thinnest = 0.1;

    SlabBox box;
    const double area = findNormal(plane, box.normal);
    double a[3], b[3];
    for (int k = 0; k < 3; k++)
    {
        box.rows[k] = a[k] = plane[k];
        box.rows[3 + k] = b[k] = plane[3 + k];
    }
    while (shorten(a, b) || shorten(b, a))
    {
    }
    const double shorter = std::sqrt(std::min(dotOf(a, a), dotOf(b, b)));
    const double longer  = std::sqrt(std::max(dotOf(a, a), dotOf(b, b)));
    const double vacuum  = area / shorter * (c_margin - std::log(accuracy)) / (2 * M_PI);
    box.thickness        = highest - lowest;
    box.height           = box.thickness + vacuum;
    box.middle           = 0.5 * (lowest + highest);
    box.fullness         = std::max(box.thickness, c_thinnest * longer) / box.height;
    // written so that NaN is too high
    box.isTooHigh = !(box.thickness <= c_highestSlab * longer);
    for (int k = 0; k < 3; k++)
    {
        box.rows[6 + k] = box.height * box.normal[k];
    }
    return box;
}

/*! \brief The change of the vectors where those of the plane change; the third stays normal, and as long.
 *  \param[in] change  rows, nm, [2][3]
 *  \param[out] rows   [3][3] */
FARFIELD_HD void changeOfRows(const SlabBox& box, const double* change, double* rows)
{
    double inverse[9];
    invert(box.rows, inverse);
    const double tilts[] = { dotOf(change, box.normal), dotOf(change + 3, box.normal) };
    for (int k = 0; k < 3; k++)
    {
        rows[k]     = change[k];
        rows[3 + k] = change[3 + k];
        rows[6 + k] = -box.height * (inverse[3 * k] * tilts[0] + inverse[3 * k + 1] * tilts[1]);
    }
}

//! Charges along the normal, or their change.
struct SlabMoments
{
    //! \param[in] q  e, \param[in] z  nm, from the middle
    FARFIELD_HD void add(double q, double z)
    {
        net += q;
        dipole += q * z;
        square += q * z * z;
    }
    //! Adds the change of a charge. \param[in] dq  e, \param[in] dz  nm
    FARFIELD_HD void addChange(double q, double z, double dq, double dz)
    {
        net += dq;
        dipole += dq * z + q * dz;
        square += dq * z * z + 2 * q * z * dz;
    }
    double net = 0, dipole = 0, square = 0;
};

/*! \brief The energy that layers have of each other, kJ/mol, and its derivatives.
 *
 *  It is a bilinear form of moments. Only the volume of a box changes with its plane. */
struct SlabEnergy
{
    double factor; //!< 2 pi k / V, kJ/mol/nm^2/e^2
    double height; //!< of the box, nm

    FARFIELD_HD double of(const SlabMoments& a, const SlabMoments& b) const
    {
        return factor
               * (a.dipole * b.dipole - 0.5 * (a.net * b.square + b.net * a.square)
                  - a.net * b.net * height * height / 12);
    }
    //! The potential at \p z.
    FARFIELD_HD double potential(const SlabMoments& all, double z) const
    {
        SlabMoments one;
        one.add(1, z);
        return 2 * of(all, one);
    }
    //! The field there, along the normal.
    FARFIELD_HD double field(const SlabMoments& all, double z) const
    {
        return -2 * factor * (all.dipole - all.net * z);
    }
    //! The change of the potential. \param[in] widens  dV / V
    FARFIELD_HD double potentialChange(const SlabMoments& all,
                                       const SlabMoments& change,
                                       double z,
                                       double dz,
                                       double widens) const
    {
        return potential(change, z) - widens * potential(all, z) - field(all, z) * dz;
    }
    //! The change of the field.
    FARFIELD_HD double fieldChange(const SlabMoments& all,
                                   const SlabMoments& change,
                                   double z,
                                   double dz,
                                   double widens) const
    {
        return field(change, z) + 2 * factor * all.net * dz - widens * field(all, z);
    }
};

} // namespace farfield

#endif
