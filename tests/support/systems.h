/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Kinds of systems that users simulate, and extremes of them: what a promise about the
 *         accuracy has to hold for.
 *
 *  All are deterministic. Units: nm, e.
 */
#ifndef FARFIELD_TESTS_SYSTEMS_H
#define FARFIELD_TESTS_SYSTEMS_H

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fast_ewald.h"
#include "reference.h"

namespace farfield
{
namespace test
{

//! A system, and the smaller one with the same forces if it is a stack of copies.
struct Sample
{
    System system;
    System unit;    //!< what is repeated; empty if nothing is
    int copies = 1; //!< particle i of the system is particle i % unit.size() of the unit
};
/*! \brief Copies side by side, \p repeats along each box vector. Positions and box are rounded
 *         to 2^-19 nm before, so that those of all copies are exact in single precision up to 32
 *         nm. */
Sample supercell(const System& unit, const std::array<int, 3>& repeats);

//! A kind of system: the name says what it is.
struct SystemKind
{
    std::string name;
    std::function<Sample()> make;
};
//! Every kind; dense ones first. Up to 17 500 particles, boxes of 0.3 to 1000 nm.
std::vector<SystemKind> systemKinds();

//! A ball of water; molecules are whole, and the box has room for it.
System waterDroplet(double radius);
//! A folded chain of charged beads 0.15 nm apart, with charged groups as a protein has them.
System foldedChain(int beads);

//! The system with inputs rounded to \p Real, and its exact forces.
struct ReferenceSystem
{
    System system;
    std::vector<Vector> forces; //!< kJ/mol/nm
    double forceError = 0;      //!< RMS bound on their own error, kJ/mol/nm
    double energy     = 0;      //!< kJ/mol
};
template<class Real>
ReferenceSystem withReference(const Sample& sample);

/*! \brief The system in the volume that forceScale() has along axes without images.
 *
 *  Edges are those of what holds all particles, and at least a tenth of the longest one.
 *  \param[in] firstOpen  0: no axis has images; 2: the first two have */
System withEdges(System system, int firstOpen);

/*! \brief What the accuracy is relative to, kJ/mol/nm: the RMS Coulomb force over all particles;
 *         where forces cancel, a part of k q_rms^2 / (V/N)^(2/3), the force between two typical
 *         charges at the mean distance (q_rms and N of the charged particles). */
double forceScale(const System& system, const std::vector<Vector>& forces, double part = 0.01);
//! That part for an accuracy: a hundredth, or what makes 40 units of rounding the error that is wanted.
template<class Real>
double partOfTypicalForce(double accuracy)
{
    return std::max(0.01, 20 * std::numeric_limits<Real>::epsilon() / accuracy);
}

/*! \brief A random system of any of these kinds for fuzzing, with up to \p most particles in any
 *         box. */
System randomSystem(std::mt19937& random, int most);

} // namespace test
} // namespace farfield

#endif
