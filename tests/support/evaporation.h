/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A molecule that leaves the others, and how often cells change for it.
 */
#ifndef FARFIELD_TESTS_EVAPORATION_H
#define FARFIELD_TESTS_EVAPORATION_H

#include <cmath>

#include <algorithm>
#include <string>

#include "test_support.h"

namespace farfield
{
namespace test
{

/*! \brief Moves the last molecule of three sites away along z, and expects that cells change as often
 *         as the height of all doubles, and once more.
 *  \param[in] solver    that has the charges of the system
 *  \param[in] doubled   how often the height doubles
 *  \param[in] expect    called with some of the systems and their evaluations */
template<class Real, class Expect>
void expectFewChoices(Solver<Real>& solver,
                      const System& rest,
                      double doubled,
                      const Expect& expect)
{
    const auto [lowest, highest] =
            std::minmax_element(rest.positions.begin(),
                                rest.positions.end(),
                                [](const Vector& a, const Vector& b) { return a[2] < b[2]; });
    const double bottom = (*lowest)[2], height = (*highest)[2] - bottom;
    const double start = rest.positions.back()[2];
    int choices        = 0;
    Setup known;
    for (double power = 0; power < doubled; power += 1.0 / 8)
    {
        System moved = rest;
        for (int site = 1; site <= 3; ++site)
        {
            moved.positions[rest.size() - site][2] += bottom + height * std::exp2(power) - start;
        }
        moved                   = rounded<Real>(moved);
        const Evaluation result = evaluate(solver, moved);
        const Setup setup       = solver.setup();
        choices += setup.cells != known.cells || setup.levels != known.levels
                                   || setup.cellSize != known.cellSize
                           ? 1
                           : 0;
        known = setup;
        if (std::fmod(power + 0.25, 1) == 0)
        {
            SCOPED_TRACE(describe(moved, setup) + ", height times 2^" + std::to_string(power));
            expect(moved, result);
        }
    }
    EXPECT_LE(choices, doubled + 2);
    EXPECT_GT(choices, 1);
}

} // namespace test
} // namespace farfield

#endif
