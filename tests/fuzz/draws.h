/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Random draws, besides uniform() of system_building.h.
 */
#ifndef FARFIELD_TESTS_FUZZ_DRAWS_H
#define FARFIELD_TESTS_FUZZ_DRAWS_H

#include <cmath>

#include <random>

#include "system_building.h"

namespace farfield
{
namespace test
{

inline bool chance(std::mt19937& random, double p)
{
    return uniform(random) < p;
}

inline double logUniform(std::mt19937& random, double low, double high)
{
    return low * std::pow(high / low, uniform(random));
}

inline int below(std::mt19937& random, int n)
{
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

} // namespace test
} // namespace farfield

#endif
