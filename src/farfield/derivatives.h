/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials at particles, their derivatives, derivatives along a direction, and induced dipoles.
 */
#ifndef FARFIELD_DERIVATIVES_H
#define FARFIELD_DERIVATIVES_H

namespace farfield
{

/*! \brief What evaluate() computes at particles besides the forces; each array may be null.
 *
 *  With all periodic images, a particle's own among them, and the background, without excluded pairs and
 *  without the particle itself. All are untouched on error. */
template<class Real>
struct Outputs
{
    Real* potentials = nullptr; //!< dE/dq, kJ/mol/e, [n]; implies the energy
    //! Gradients of the potential, dE/dmu of a dipole mu and minus the field, kJ/mol/e/nm, [n][3].
    Real* gradients = nullptr;
    //! Second derivatives of the potential, kJ/mol/e/nm^2, [n][6]: xx yy zz xy xz yz.
    Real* hessians = nullptr;
    //! On the dipoles and quadrupoles of particles, kJ/mol, [n][3].
    Real* torques = nullptr;
};

//! How particles change along a direction; an array is null where nothing changes.
template<class Real>
struct Direction
{
    const Real* x = nullptr; //!< derivatives of the positions, nm, [n][3]
    const Real* q = nullptr; //!< of the charges, e, [n]
};

//! Derivatives along a direction; each array may be null. Both are written to after success only.
template<class Real>
struct Tangent
{
    Real* forces     = nullptr; //!< kJ/mol/nm, [n][3]
    Real* potentials = nullptr; //!< kJ/mol/e, [n]
};

//! What Solver::induceDipoles() has found, besides the dipoles.
struct Induction
{
    double selfEnergy = 0; //!< what it costs to induce them, 1/2 sum mu^2/alpha, kJ/mol
    double residual   = 0; //!< what is left in the dipoles over their size, see tolerance
    int iterations    = 0;
};

} // namespace farfield

#endif
