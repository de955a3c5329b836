/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Water that tests of helpers evaluate.
 */
#ifndef FARFIELD_TESTS_HELPERS_MOVING_WATER_H
#define FARFIELD_TESTS_HELPERS_MOVING_WATER_H

#include <cmath>

#include <string>

#include "box_matrix.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! Relative RMS difference of forces that are added up in another order.
template<class Real>
constexpr double c_sameForces = sizeof(Real) == 4 ? 1e-5 : 1e-12;

//! Water of some 2 000 particles, somewhat moved.
template<class Real>
System movingWater(const std::string& box, int step)
{
    System water = pseudoWater(namedBox(box, 20.0), 31);
    for (int i = 0; i < water.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            water.positions[i][k] += 0.001 * step * std::sin(0.01 * (i / 3) + k);
        }
    }
    return rounded<Real>(water);
}

} // namespace test
} // namespace farfield

#endif
