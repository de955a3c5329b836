/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems as one solver meets them in turn: bad starts and what they become, particles that
 *         fly away, charges that vanish; and crystals, where forces cancel.
 */
#ifndef FARFIELD_TESTS_CHANGING_SYSTEMS_H
#define FARFIELD_TESTS_CHANGING_SYSTEMS_H

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "systems.h"

namespace farfield
{
namespace test
{

//! Along which axes there are images.
enum class Images
{
    Everywhere,
    InThePlane, //!< along x and y
    Nowhere
};

//! Configurations of as many particles, which one solver evaluates in turn.
struct ChangingKind
{
    std::string name;
    Images images;
    std::function<std::vector<System>()> make;
};
//! All are deterministic; up to 25 000 particles.
std::vector<ChangingKind> changingKinds();
//! The bad starts of them with 65 000 and 197 000 particles.
std::vector<ChangingKind> largeKinds();

//! Zinc blende or fluorite, cells along each axis; the edge of one is given, nm.
System facesAndTetrahedra(int cells, double edge, bool areAllFilled);

/*! \brief Moves charged particles next to other ones that they do not exclude.
 *  \param[in] pairs     how many
 *  \param[in] distance  of each pair, nm */
System withContacts(const System& system, int pairs, double distance, std::mt19937& random);
//! Moves all particles at random. \param[in] width  standard deviation of each component, nm
System displaced(const System& system, double width, std::mt19937& random);
//! The same particles anywhere in the box; excluded ones, too.
System scattered(const System& system, std::mt19937& random);

//! Ions that began anywhere in the box, and the same ions near the places of a crystal.
struct SettlingIons
{
    System start, settled;
};
SettlingIons settlingIons();

/*! \brief What forces are in a system of which some particles are in contact.
 *
 *  These have forces far beyond those of others, and single precision may not resolve how far they
 *  are apart: each is judged by its own force, the others by their root mean square. */
struct JudgedForces
{
    /*! RMS force of the others, kJ/mol/nm; at least what forceScale() has and, if some are in contact,
     *  0.3 of a pair's: what is left where a crystal cancels is no scale until they have parted */
    double scale     = 0;
    double error     = 0; //!< of the others, RMS, in units of scale
    double ofAll     = 0; //!< of all, RMS, in units of forceScale()
    double contacts  = 0; //!< of those in contact: RMS over these of error over force
    int inContact    = 0; //!< how many these are
    double strongest = 0; //!< force of all, kJ/mol/nm
};
//! \param[in] forces     [n][3]
//! \param[in] leastPart  see partOfTypicalForce()
JudgedForces judgedForces(const System& system,
                          const std::vector<double>& forces,
                          const std::vector<Vector>& exact,
                          double leastPart);

} // namespace test
} // namespace farfield

#endif
