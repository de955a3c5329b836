/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems with charges of two states, for tests.
 */
#ifndef FARFIELD_TESTS_TWO_STATES_H
#define FARFIELD_TESTS_TWO_STATES_H

#include <algorithm>
#include <string>
#include <vector>

#include "test_support.h"

namespace farfield
{
namespace test
{

//! One configuration with two sets of charges.
struct TwoStates
{
    std::string name;
    System a, b;

    //! The charges that differ, B - A.
    System difference() const
    {
        System d = a;
        for (int i = 0; i < a.size(); ++i)
        {
            d.charges[i] = b.charges[i] - a.charges[i];
        }
        return d;
    }
};

//! These options with an engine, cells of a size and an order, in place of what accuracy decides.
inline Options withCells(Options options, M2lEngine engine, int order, double cellSize)
{
    options.m2l         = engine;
    options.order       = order;
    options.directRange = 1;
    options.cellSize    = cellSize;
    return options;
}

//! Random charges with bonds, some of which are between particles that will be perturbed.
inline System bonded(const std::string& box, double netCharge)
{
    System system = randomCharges(namedBox(box, 5.0), 200, 901, netCharge);
    for (int i = 0; i < 40; i += 2)
    {
        for (int k = 0; k < 3; ++k)
        {
            system.positions[i + 1][k] = system.positions[i][k] + 0.05 + 0.01 * k;
        }
        system.exclusions.emplace_back(i, i + 1);
    }
    return system;
}

template<class Real>
std::vector<TwoStates> twoStates()
{
    std::vector<TwoStates> result;
    // a molecule is charged from nothing, another one loses its charges, the net charge changes
    TwoStates few = { "few", bonded("triclinic", 2), {} };
    few.b         = few.a;
    for (const int i : { 0, 1, 2, 3, 101 })
    {
        (i < 2 ? few.a : few.b).charges[i] = 0;
    }
    few.b.charges[0] += 0.7;
    result.push_back(few);
    // one ion appears
    TwoStates ion     = { "ion", bonded("octahedron", 0), {} };
    ion.a.charges[77] = 0;
    ion.b             = ion.a;
    ion.b.charges[77] = 1;
    result.push_back(ion);
    // all charges change sign, so that there are none halfway
    TwoStates all = { "all", bonded("cube", 3), {} };
    all.b         = all.a;
    for (double& q : all.b.charges)
    {
        q = -q;
    }
    result.push_back(all);
    for (TwoStates& states : result)
    {
        states.a = rounded<Real>(states.a);
        states.b = rounded<Real>(states.b);
    }
    return result;
}

//! The first particles lose their charges, and the net charge changes, too.
template<class Real>
TwoStates discharged(const System& system, int particles)
{
    TwoStates states = { system.name, rounded<Real>(system), system };
    std::fill_n(states.b.charges.begin(), particles, 0.0);
    states.b.charges[particles] -= 1;
    states.b = rounded<Real>(states.b);
    return states;
}

//! Two states whose forces are first those of pairs that touch, and then those of particles apart.
struct PartingPairs
{
    System touching;  //!< with the charges of A, which do not matter
    TwoStates states; //!< where they have parted
};

//! Charges that touch are the same in both states. For requests of 1e-4.
template<class Real>
PartingPairs partingPairs()
{
    const System apart = rounded<Real>(randomCharges(namedBox("cube", 64), 64, 2, 0.0));
    PartingPairs pairs = { apart, { "parting pairs", apart, apart } };
    for (int i = 0; i + 1 < 56; i += 2)
    {
        pairs.touching.positions[i + 1] = pairs.touching.positions[i];
        pairs.touching.positions[i + 1][0] += 0.005;
    }
    pairs.touching = rounded<Real>(pairs.touching);
    for (int i = 56; i < apart.size(); ++i)
    {
        pairs.states.b.charges[i] = -apart.charges[i];
    }
    return pairs;
}

//! With charges in between; all of it is linear in lambda.
inline Evaluation mixed(const Evaluation& a, const Evaluation& b, double lambda)
{
    const auto between = [lambda](double ofA, double ofB)
    { return (1 - lambda) * ofA + lambda * ofB; };
    Evaluation result = a;
    result.energy     = between(a.energy, b.energy);
    for (size_t i = 0; i < a.forces.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            result.forces[i][k] = between(a.forces[i][k], b.forces[i][k]);
        }
    }
    for (int k = 0; k < 9; ++k)
    {
        result.virial[k / 3][k % 3] = between(a.virial[k / 3][k % 3], b.virial[k / 3][k % 3]);
    }
    return result;
}

template<class Real>
void load(Solver<Real>& solver, const TwoStates& states)
{
    const std::vector<Real> a(states.a.charges.begin(), states.a.charges.end());
    const std::vector<Real> b(states.b.charges.begin(), states.b.charges.end());
    solver.setPerturbedCharges(a.data(), b.data(), states.a.size());
    loadExclusions(solver, states.a, true);
}

} // namespace test
} // namespace farfield

#endif
