/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs at random.
 */
#ifndef FARFIELD_TESTS_FUZZ_DRAW_EXCLUSIONS_H
#define FARFIELD_TESTS_FUZZ_DRAW_EXCLUSIONS_H

#include <random>

#include "farfield/options.h"

#include "systems.h"

namespace farfield
{
namespace test
{

/*! \brief Whether each excluded pair has one nearest image, which is the one that is left out.
 *
 *  Of two that are equally near any may be, and forces of both are right. */
bool areExclusionsUnique(const System& system, Boundary boundary);

//! Excludes fewer than \p most more pairs of any two particles, each with one nearest image.
void excludePairs(System* system, Boundary boundary, int most, std::mt19937& random);

//! Excludes no pair any more but those at one place: no force between them would be a number.
void excludeNoPairs(System* system);

} // namespace test
} // namespace farfield

#endif
