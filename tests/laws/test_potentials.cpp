/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials: derivatives of the energy with respect to the charges.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Forces, totals and potentials.
template<class Real>
struct WithPotentials
{
    std::vector<Real> forces, potentials;
    Totals totals;
};

template<class Real>
WithPotentials<Real> evaluateAll(Solver<Real>& solver, const System& system)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    WithPotentials<Real> result;
    result.forces.assign(x.size(), Real(0));
    result.potentials.assign(system.size(), Real(7)); // written, not added to
    result.totals = solver.evaluate(
            x.data(), Box(system.box).rows, result.forces.data(), {}, result.potentials.data());
    return result;
}

/*! \brief dE/dq of a particle, out of energies at q + 1 e and q - 1 e: the energy is a quadratic
 *         form of the charges, whose central differences are exact.
 *  \param[in] energy  of a system */
template<class Energy>
double derivative(System system, int particle, const Energy& energy)
{
    double& q = system.charges[particle];
    q += 1;
    const double up = energy(system);
    q -= 2;
    return (up - energy(system)) / 2;
}

//! A net charge, bonds, two of them through the boundary, and a pair that is all but one site.
System bonded(const Matrix& box)
{
    System system = randomCharges(box, 240, 571, 3.0);
    for (int i = 0; i < 60; i += 2)
    {
        for (int k = 0; k < 3; ++k)
        {
            const double shift = (i == 0) ? 0.002 : 0.05 + 0.01 * k;
            system.positions[i + 1][k] =
                    system.positions[i][k] + shift + (i < 4 ? system.box[2][k] : 0);
        }
        system.exclusions.emplace_back(i, i + 1);
    }
    return system;
}

//! Standard deviation of the potential of a particle that truncation makes, and rounding, kJ/mol/e.
template<class Real>
double potentialBound(const System& system, const Setup& setup)
{
    const double perCell = double(system.size()) / std::max(1LL, setup.leafCells);
    const Truncation t =
            predictTruncation(setup.cells, system.box, setup.directRange, perCell, setup.order);
    const double q    = std::sqrt(system.meanSquareCharge() * coherence(system));
    const double mean = std::abs(system.netCharge() * t.meanPotential[setup.order]);
    // as in boundsFor(): errors of potentials grow from level to level
    return c_coulomb
           * (c_deviations * q * t.potential[setup.order] * std::sqrt(std::exp2(setup.levels - 1))
              + mean * std::exp2(2 * (setup.levels - 1))
              + roundingFloor<Real>() * q / 0.05 * std::sqrt(system.size()));
}

template<class Config>
class Potentials : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(Potentials, Configurations);

TYPED_TEST(Potentials, AreThoseOfEwald)
{
    using Real = typename TypeParam::Real;
    int number = 0;
    for (const auto& named : allBoxes(6.0))
    {
        ++number;
        if (!isTurnOf<Real>(number / 2))
        {
            continue;
        }
        const System system         = rounded<Real>(bonded(named.box));
        const std::vector<int> some = { 0, 17, 61 };
        std::vector<double> expected;
        for (const int i : some)
        {
            expected.push_back(
                    derivative(system, i, [](const System& other) { return ewald(other).energy; }));
        }
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            // In turn; their locals are those of Forces.MatchEwaldInEveryBox
            const bool isTurn = number % 2 == (engine == M2lEngine::Fft ? 0 : 1);
            if (TypeParam::device == Device::Cpu && !isTurn && !isLong())
            {
                continue;
            }
            Options options = TypeParam::options();
            options.m2l     = engine;
            options.order   = 9;
            Solver<Real> solver(options);
            load(solver, system);
            const auto result = evaluateAll(solver, system);
            SCOPED_TRACE(named.name + ": " + describe(system, solver.setup()));
            for (size_t k = 0; k < some.size(); ++k)
            {
                EXPECT_NEAR(result.potentials[some[k]],
                            expected[k],
                            potentialBound<Real>(system, solver.setup()))
                        << "particle " << some[k];
            }
        }
    }
}

//! 1/2 sum q phi is the energy, to rounding, at every order.
TYPED_TEST(Potentials, SumToTwiceTheEnergy)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(bonded(namedBox("triclinic", 6.0)));
    for (const M2lEngine engine : enginesOf(TypeParam::device))
    {
        for (const int order : { 0, 3, 8 })
        {
            Options options  = TypeParam::options();
            options.m2l      = engine;
            options.order    = order;
            options.cellSize = 0.35;
            Solver<Real> solver(options);
            load(solver, system);
            const auto result = evaluateAll(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            double sum = 0;
            for (int i = 0; i < system.size(); ++i)
            {
                sum += system.charges[i] * static_cast<double>(result.potentials[i]);
            }
            EXPECT_NEAR(
                    0.5 * sum, result.totals.energy, roundingFloor<Real>() * pairEnergies(system));
        }
    }
}

TYPED_TEST(Potentials, ChangeNothingElse)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(bonded(namedBox("dodecahedron_square", 6.0)));
    Solver<Real> solver(this->options());
    load(solver, system);
    const Evaluation without = evaluate(solver, system);
    const auto with          = evaluateAll(solver, system);
    EXPECT_EQ(vectorsOf(with.forces), without.forces);
    EXPECT_EQ(with.totals.energy, without.energy);
}

//! In excluded pairs, too; nothing else changes but the order of sums.
TYPED_TEST(Potentials, OfParticlesWithoutChargeAreThoseOfEwald)
{
    using Real     = typename TypeParam::Real;
    System system  = bonded(namedBox("triclinic", 6.0));
    const int tiny = 101;
    // 0 and 41 have a charged partner, 100 has none
    const std::vector<int> zeros = { 0, 41, 100 };
    for (const int i : zeros)
    {
        system.charges[i] = 0;
    }
    system.charges[tiny] = 1e-20;
    system               = rounded<Real>(system);
    Options options      = TypeParam::options();
    options.order        = 9;
    Solver<Real> solver(options), forcesAlone(options);
    load(solver, system);
    load(forcesAlone, system);
    const auto result        = evaluateAll(solver, system);
    const Evaluation without = evaluate(forcesAlone, system);
    SCOPED_TRACE(describe(system, solver.setup()));
    for (const int i : { zeros[0], zeros[1], zeros[2], tiny })
    {
        EXPECT_NEAR(result.potentials[i],
                    derivative(system, i, [](const System& s) { return ewald(s).energy; }),
                    potentialBound<Real>(system, solver.setup()))
                << "particle " << i;
    }
    for (const int i : zeros)
    {
        for (int k = 0; k < 3; ++k)
        {
            EXPECT_EQ(result.forces[3 * i + k], 0) << "particle " << i;
        }
    }
    const double largest = pairEnergies(system);
    EXPECT_NEAR(result.totals.energy, without.energy, roundingFloor<Real>() * largest);
}

/*! Cells that are right for the forces on a few charges near each other need not be for what is far. That
 *  holds for as few particles without a charge, too, whose number alone asks for no other cells. */
TYPED_TEST(Potentials, OfParticlesWithoutChargeMeetTheAccuracyFarFromCharges)
{
    using Real = typename TypeParam::Real;
    for (const int size : { 300, 6 })
    {
        System system = randomCharges(namedBox("cube", 6.0), size, 573, 0.0);
        for (int i = 0; i < system.size(); ++i)
        {
            system.charges[i] = i < 4 ? (i % 2 ? 1 : -1) : 0;
            for (int k = 0; k < 3 && i < 4; ++k)
            {
                system.positions[i][k] = 3 + 0.15 * ((i >> (k % 2)) % 2);
            }
        }
        system           = rounded<Real>(system);
        Options options  = TypeParam::options();
        options.accuracy = 1e-4;
        Solver<Real> solver(options);
        load(solver, system);
        evaluate(solver, system); // chooses cells for the charges alone
        const auto result = evaluateAll(solver, system);
        double squares = 0, errors = 0;
        for (int i = 4; i < system.size(); i += size / 8 + 1)
        {
            const double expected =
                    derivative(system, i, [](const System& s) { return ewald(s).energy; });
            squares += expected * expected;
            errors += std::pow(result.potentials[i] - expected, 2);
        }
        // twice: the accuracy is that of forces, whose errors are larger than those of potentials
        EXPECT_LT(std::sqrt(errors / squares), 2 * options.accuracy)
                << describe(system, solver.setup());
    }
}

TYPED_TEST(Potentials, AreZeroWhereAllChargesAre)
{
    using Real    = typename TypeParam::Real;
    System system = bonded(namedBox("triclinic", 6.0));
    system.charges.assign(system.size(), 0.0);
    Solver<Real> solver(this->options());
    load(solver, system);
    const auto result = evaluateAll(solver, system);
    EXPECT_EQ(result.potentials, std::vector<Real>(system.size(), 0));
    EXPECT_EQ(result.totals.energy, 0);
}

//! In a tree most of whose cells are empty, far from the origin.
TYPED_TEST(Potentials, OfADropletAreThoseOfEwald)
{
    using Real    = typename TypeParam::Real;
    System system = randomCharges(namedBox("cube", 3.0), 300, 572, 2.0);
    for (int i = 0; i < 3; ++i)
    {
        system.box[i][i] = 12;
    }
    system           = rounded<Real>(shifted(system, { -31, 5, 8 }));
    Options options  = TypeParam::options();
    options.m2l      = M2lEngine::Hierarchy;
    options.cellSize = 0.375;
    Solver<Real> solver(options);
    load(solver, system);
    const auto result = evaluateAll(solver, system);
    EXPECT_GT(solver.setup().levels, 1);
    for (const int i : { 3, 150 })
    {
        EXPECT_NEAR(result.potentials[i],
                    derivative(system, i, [](const System& s) { return ewald(s).energy; }),
                    potentialBound<Real>(system, solver.setup()))
                << describe(system, solver.setup());
    }
}

template<class Config>
class DoublePotentials : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DoublePotentials, DoubleConfigurations);

//! Derivatives of the very energy that is computed, truncated as it is.
TYPED_TEST(DoublePotentials, AreDerivativesOfTheEnergy)
{
    using Real          = typename TypeParam::Real;
    const System system = bonded(namedBox("triclinic", 6.0));
    for (const M2lEngine engine : enginesOf(TypeParam::device))
    {
        for (const bool leastSquares : { false, true })
        {
            Options options      = TypeParam::options();
            options.m2l          = engine;
            options.order        = 3;
            options.directRange  = 1;
            options.cellSize     = 0.35;
            options.leastSquares = leastSquares;
            Solver<Real> solver(options);
            load(solver, system);
            const auto result = evaluateAll(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            for (const int i : { 0, 30, 200 })
            {
                const double expected = derivative(system,
                                                   i,
                                                   [&](const System& s)
                                                   {
                                                       loadCharges(solver, s);
                                                       return evaluate(solver, s).energy;
                                                   });
                EXPECT_NEAR(result.potentials[i], expected, 1e-12 * pairEnergies(system));
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
