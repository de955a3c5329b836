/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The uniform background that neutralises a net charge; for host and device.
 *
 *  A periodic system of charges q_j with sum Q in a volume V has an energy only with a background
 *  of charge density -Q/V. In the reciprocal sum of Ewald's method it is what leaves out the wave
 *  vector zero (de Leeuw, Perram and Smith, Proc. R. Soc. Lond. A 373, 27 (1980),
 *  doi:10.1098/rspa.1980.0135; Hub, de Groot, Grubmueller and Groenhof, J. Chem. Theory Comput. 10,
 *  381 (2014), doi:10.1021/ct400626b). Here it shows up in four places.
 *
 *  Lattice sums. Wave vector zero of level 0 sees the mean of all cells, repeated with the lattice
 *  of cells. In units of the cell size, the lattice sum over far cells with the background's share
 *  is
 *
 *      psi(r) = h(r) + (2 pi / 3) |r|^2,    laplacian h = 0,
 *
 *  as a background of density -1 has the laplacian 4 pi. In Ewald's split with parameter a,
 *  backgroundOfSplit() completes h(0).
 *
 *  Level 0. With a target at b and a source at b_j from the centres of their cells, |r|^2 is
 *
 *      |b|^2 - 2 b.b_j + |b_j|^2.
 *
 *  The middle term couples dipoles to gradients: for l = 1, u_i = -y, z, -x, so that it adds
 *  -4 pi/3 to the diagonal of M2L: c_backgroundOfDipoles. The last is a constant in space and has
 *  no force. The first is left to the targets, with the mean charge Q / cells of a cell,
 *
 *      (2 pi / 3V) Q |b|^2  =  strength |b / unit|^2 / unit,    backgroundStrength(),
 *
 *  and pulls with the force q backgroundPull() b.
 *
 *  Finer levels. With s the centre of a child relative to its parent's, |s + b|^2 = |s|^2 + 2 s.b +
 *  |b|^2. The first two are harmonic and go to the local expansion of the child,
 *  backgroundOfShift(), the last is left to the next level, at last to the particles. What is left
 *  pulls at the dipole of a child: addBackgroundForce().
 *
 *  Energy. Half the sum of q phi takes |b|^2 and |b_j|^2 alike, the former about the centres of the
 *  leaves, the latter about those of level 0. From level to level, sum q |b|^2 grows by
 *  |s|^2 sum q + 2 s.sum q b over the children: shiftOfDipole() is the second part.
 *
 *  Potentials. dE/dq at a particle is what half the sum is taken of: |b|^2 about the centre of its
 *  leaf with the strength of Q, and the constant (2 pi / 3V) sum q_j |b_j|^2 of level 0, which does
 *  not vanish with Q.
 */
#ifndef FARFIELD_OPERATORS_BACKGROUND_H
#define FARFIELD_OPERATORS_BACKGROUND_H

#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! The background's share of the lattice sum of 1/r at k = 0, cells of volume 1; see
//! lattice_sums.h.
inline double backgroundOfSplit(double a)
{
    return -M_PI / (a * a);
}

//! Added to the diagonal of M2L for l = 1 at k = 0, cells of volume 1.
constexpr double c_backgroundOfDipoles = -4 * M_PI / 3;

/*! \brief (2 pi / 3V) Q times the volume of a cell: the potential in 1 / cell size is this times
 *         |b|^2, b in units of the cell size from its centre.
 *  \param[in] cells  of the level in the box */
inline double backgroundStrength(double netCharge, long long cells)
{
    return 2 * M_PI / 3 * netCharge / static_cast<double>(cells);
}

//! Factor k of the force q k b on a particle at b from the centre of its cell.
//! \param[in] unit  size of the cell
inline double backgroundPull(double strength, double unit)
{
    return -2 * strength / (unit * unit * unit);
}

//! (2 pi / 3V) Q: the potential is this times |b|^2, b from the centre of the cell.
inline double backgroundCurvature(double strength, double unit)
{
    return strength / (unit * unit * unit);
}

//! Half of (2 pi / 3V) Q: the energy is this times sum q |b|^2 of leaves and of level 0.
inline double backgroundEnergy(double strength, double unit)
{
    return 0.5 * strength / (unit * unit * unit);
}

//! |s|^2.
FARFIELD_HD double squaredShift(const double* s)
{
    return s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
}

//! Coefficients that backgroundOfShift() is not zero for, the first ones.
constexpr int c_shiftTerms = 4;

/*! \brief Coefficient i of the local expansion of strength (|s|^2 + 2 s.b) about the centre of a
 *         child.
 *  \param[in] s  [3] centre of the child relative to its parent's, child units */
FARFIELD_HD double backgroundOfShift(int i, const double* s, double strength)
{
    // u_1,-1 = -y, u_1,0 = z, u_1,1 = -x
    switch (i)
    {
        case 0:
            return strength * squaredShift(s);
        case 1:
            return -2 * strength * s[1];
        case 2:
            return 2 * strength * s[2];
        case 3:
            return -2 * strength * s[0];
        default:
            return 0;
    }
}

//! A dipole as multipoles hold it: coefficients 1, 2 and 3.
struct DipoleMoments
{
    double m1, m2, m3;
};

//! Adds the force of strength |b|^2 on a dipole.
FARFIELD_HD void addBackgroundForce(double strength, const DipoleMoments& dipole, double* force)
{
    force[0] += 2 * strength * dipole.m3;
    force[1] += 2 * strength * dipole.m1;
    force[2] -= 2 * strength * dipole.m2;
}

//! 2 s.dipole, see above.
FARFIELD_HD double shiftOfDipole(const double* s, const DipoleMoments& dipole)
{
    return 2 * (-s[0] * dipole.m3 - s[1] * dipole.m1 + s[2] * dipole.m2);
}

} // namespace farfield

#endif
