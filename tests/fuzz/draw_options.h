/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Random options of a solver.
 */
#ifndef FARFIELD_TESTS_FUZZ_DRAW_OPTIONS_H
#define FARFIELD_TESTS_FUZZ_DRAW_OPTIONS_H

#include <random>

#include "sequence.h"

namespace farfield
{
namespace test
{

//! \param[in] realSize  bytes of a number
Options drawOptions(std::mt19937& random, const FuzzSettings& settings, int realSize);

} // namespace test
} // namespace farfield

#endif
