/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems of the tests in the layout of the public interface.
 */
#ifndef FARFIELD_TESTS_SOLVER_INPUT_H
#define FARFIELD_TESTS_SOLVER_INPUT_H

#include <algorithm>
#include <vector>

#include "farfield/farfield.h"

#include "reference.h"

namespace farfield
{
namespace test
{

/*! \brief Exclusions as compressed rows.
 *  \param[in] bothWays  list each pair at both of its particles */
inline void compressedRows(const System& system,
                           bool bothWays,
                           std::vector<int>* offsets,
                           std::vector<int>* partners)
{
    std::vector<std::vector<int>> rows(system.size());
    for (const auto& [i, j] : system.exclusions)
    {
        rows[i].push_back(j);
        if (bothWays && i != j)
        {
            rows[j].push_back(i);
        }
    }
    offsets->assign(1, 0);
    partners->clear();
    for (const auto& row : rows)
    {
        partners->insert(partners->end(), row.begin(), row.end());
        offsets->push_back(static_cast<int>(partners->size()));
    }
}

//! Gives the solver the charges of \p system.
template<class Real>
void loadCharges(Solver<Real>& solver, const System& system)
{
    const std::vector<Real> q(system.charges.begin(), system.charges.end());
    solver.setCharges(q.data(), system.size());
}

//! Gives the solver the exclusions of \p system, listed one way or both.
template<class Real>
void loadExclusions(Solver<Real>& solver, const System& system, bool bothWays)
{
    std::vector<int> offsets, partners;
    compressedRows(system, bothWays, &offsets, &partners);
    solver.setExclusions(offsets.data(), partners.data(), system.size());
}

//! Gives the solver the charges and exclusions of \p system.
template<class Real>
void load(Solver<Real>& solver, const System& system, bool bothWays = true)
{
    loadCharges(solver, system);
    loadExclusions(solver, system, bothWays);
}

//! Positions in the layout of Solver::evaluate().
template<class Real>
std::vector<Real> flatPositions(const System& system)
{
    std::vector<Real> x;
    for (const auto& position : system.positions)
    {
        for (const double component : position)
        {
            x.push_back(static_cast<Real>(component));
        }
    }
    return x;
}

//! The box in the layout of Solver::evaluate().
struct Box
{
    explicit Box(const Matrix& matrix)
    {
        for (int i = 0; i < 3; ++i)
        {
            std::copy(matrix[i].begin(), matrix[i].end(), rows[i]);
        }
    }
    double rows[3][3];
};

} // namespace test
} // namespace farfield

#endif
