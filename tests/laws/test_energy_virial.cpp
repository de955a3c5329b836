/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Energies and virials: crystals, net charges, traces and finite strain.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

double trace(const Matrix& m)
{
    return m[0][0] + m[1][1] + m[2][2];
}

template<class Config>
class Virial : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Virial, Configurations);

TYPED_TEST(Virial, TraceIsMinusHalfEnergy)
{
    using Real = typename TypeParam::Real;
    int number = 0;
    for (const auto& named : allBoxes(6.0))
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            // Engines take turns; Forces.MatchEwaldInEveryBox has the virial of both in each box
            const bool isTurn =
                    number % 2 == (engine == M2lEngine::Fft ? 0 : 1) && isTurnOf<Real>(number / 2);
            for (const int order : { 0, 7 })
            {
                if (order == 7 && !isTurn && !isLong())
                {
                    continue;
                }
                // A net charge as well: the background obeys the law too.
                const System system = rounded<Real>(randomCharges(named.box, 200, 21, 3.0));
                Options options     = TypeParam::options();
                options.m2l         = engine;
                options.order       = order;
                options.cellSize    = 0.35;
                Solver<Real> solver(options);
                load(solver, system);
                const Evaluation result = evaluate(solver, system);
                SCOPED_TRACE(named.name + ": " + describe(system, solver.setup()));
                // Truncated expansions are homogeneous of degree -1 too, so only rounding is left,
                // here of sums of N pair energies.
                const double scale = system.size() * c_coulomb * system.meanSquareCharge() / 0.2;
                EXPECT_NEAR(
                        trace(result.virial), -0.5 * result.energy, roundingFloor<Real>() * scale);
                for (int i = 0; i < 3; ++i)
                {
                    for (int j = 0; j < i; ++j)
                    {
                        EXPECT_NEAR(result.virial[i][j],
                                    result.virial[j][i],
                                    roundingFloor<Real>() * scale);
                    }
                }
            }
        }
        number++;
    }
}

template<class Config>
class DoubleVirial : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DoubleVirial, DoubleConfigurations);

TYPED_TEST(DoubleVirial, MatchesFiniteStrain)
{
    using Real = typename TypeParam::Real;
    for (const bool leastSquares : { false, true })
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            System system = randomCharges(namedBox("triclinic", 6.0), 250, 22, 2.0);
            // An excluded pair through the boundary counts as well.
            system.positions[1]  = { system.positions[0][0] + 0.06 - system.box[0][0],
                                     system.positions[0][1] + 0.05,
                                     system.positions[0][2] };
            system.exclusions    = { { 0, 1 } };
            Options options      = TypeParam::options();
            options.m2l          = engine;
            options.order        = 8;
            options.directRange  = 1;
            options.cellSize     = 0.35;
            options.leastSquares = leastSquares;
            // The strain moves everything at fixed fractional coordinates, cells included: the
            // difference quotient of the solver's own energy is its virial. It is large enough not
            // to be ignored and small enough for operators to be followed. Two central differences
            // eliminate step^2; left are step^4 times the sum of pair energies (closest pair 0.05
            // nm) and rounding / step. Only lower triangular strains keep the box so.
            const double step  = 5e-4;
            const double scale = system.size() * c_coulomb * system.meanSquareCharge() / 0.05;
            const double exact = 1e3 * std::pow(step, 4) * scale + 1e-13 * scale / step;
            Solver<Real> solver(options);
            load(solver, system);
            const Evaluation result = evaluate(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            const auto cells = solver.setup().cells;
            for (int i = 0; i < 3; ++i)
            {
                for (int j = 0; j <= i; ++j)
                {
                    const auto quotient = [&](double h)
                    {
                        Matrix strain = unitMatrix();
                        strain[i][j]  = (i == j) + h;
                        const double up =
                                evaluate(solver, deformed(system, strain), { true, false }).energy;
                        strain[i][j] = (i == j) - h;
                        const double down =
                                evaluate(solver, deformed(system, strain), { true, false }).energy;
                        return (up - down) / (2 * h);
                    };
                    const double slope = (4 * quotient(step) - quotient(2 * step)) / 3;
                    // The least-squares projection belongs to one shape of cells: its own change is
                    // left out of the virial, and is no more than the truncation error that it
                    // reduces.
                    const double bound =
                            exact
                            + (leastSquares ? boundsFor<Real>(system, solver.setup(), result).virial
                                            : 0);
                    EXPECT_NEAR(result.virial[i][j], 0.5 * slope, bound) << i << " " << j;
                    EXPECT_EQ(solver.setup().cells, cells);
                }
            }
        }
    }
}

template<class Config>
class RockSalt : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(RockSalt, DoubleConfigurations);

TYPED_TEST(RockSalt, HasMadelungEnergy)
{
    using Real            = typename TypeParam::Real;
    const double distance = 0.282;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        if (engine == M2lEngine::Hierarchy && TypeParam::device == Device::Cpu && !isLong())
        {
            continue; // products of 441 x 441 numbers for 875 cells: a minute
        }
        Options options     = TypeParam::options();
        options.order       = 20;
        options.directRange = 2;
        // Least-squares operators of the tree take long to build at this order.
        options.leastSquares = engine == M2lEngine::Fft;
        options.m2l          = engine;
        options.cellSize     = 0.282;
        Solver<Real> solver(options);
        load(solver, rockSalt(2, distance));
        // Ions on cell faces in the first case, at general places in the second.
        for (const Vector& shift : { Vector{ 0, 0, 0 }, Vector{ 0.03, -0.11, 0.41 } })
        {
            if (engine == M2lEngine::Hierarchy && shift[0] == 0)
            {
                continue;
            }
            const System crystal = shifted(rockSalt(2, distance), shift);
            const double expected =
                    -0.5 * crystal.size() * c_madelungRockSalt * c_coulomb / distance;
            const bool virial       = engine == M2lEngine::Fft;
            const Evaluation result = evaluate(solver, crystal, { true, virial });
            SCOPED_TRACE(describe(crystal, solver.setup()));
            EXPECT_NEAR(result.energy / expected, 1, 1e-9);
            for (int i = 0; virial && i < 3; ++i)
            {
                for (int j = 0; j < 3; ++j)
                {
                    EXPECT_NEAR(result.virial[i][j] / expected, i == j ? -1.0 / 6 : 0.0, 1e-8);
                }
            }
            EXPECT_LT(rootMeanSquare(result.forces), 1e-8 * c_coulomb / (distance * distance));
        }
    }
}

/*! \brief Energy that like charges have from sums over a list of cells, which cancel against the
 *         background. */
double energyOfLists(const System& system, const Setup& setup)
{
    const double near  = std::pow(2 * setup.directRange + 1, 3); // cells, of 8 times as many
    const double cell  = system.volume() / static_cast<double>(setup.leafCells);
    const auto radius2 = [&](double cells)
    { return std::pow(cells * cell * 0.75 / M_PI, 2.0 / 3); };
    return M_PI * c_coulomb * system.netCharge() * system.netCharge() / system.volume()
           * (radius2(8 * near) - radius2(near));
}

template<class Config>
class ChargedBox : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(ChargedBox, Configurations);

TYPED_TEST(ChargedBox, MatchesEwald)
{
    using Real = typename TypeParam::Real;
    int number = 0, box = 0;
    for (const auto& named : allBoxes(3.0))
    {
        ++box;
        const System system        = rounded<Real>(randomCharges(named.box, 200, 23, 20.0));
        const Evaluation reference = ewald(system);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            for (const bool leastSquares : { false, true })
            {
                if (engine == M2lEngine::Hierarchy && !leastSquares)
                {
                    continue;
                }
                if (!isTurnOf<Real>(box + (engine == M2lEngine::Fft ? 0 : 1)
                                    + (leastSquares ? 1 : 0)))
                {
                    continue;
                }
                Options options      = TypeParam::options();
                options.m2l          = engine;
                options.leastSquares = leastSquares;
                options.order        = 8;
                options.directRange  = 2;
                options.cellSize     = 0.35;
                if (engine == M2lEngine::Hierarchy && number++ % 2 == 0 && !isLong())
                {
                    // lists of 189 cells instead of 875; the law of the background is the same
                    options.directRange = 1;
                }
                Solver<Real> solver(options);
                load(solver, system);
                const Evaluation result = evaluate(solver, system);
                SCOPED_TRACE(named.name + ": " + describe(system, solver.setup()));
                Bounds bounds = boundsFor<Real>(system, solver.setup(), reference);
                if (engine == M2lEngine::Hierarchy && options.device == Device::Gpu
                    && sizeof(Real) == 4)
                {
                    // tensor cores cut sums off instead of rounding them: an H200 lost 5e-6 of these
                    bounds.energy += 1e-5 * energyOfLists(system, solver.setup());
                }
                expectClose(result, reference, bounds);
            }
        }
    }
}

template<class Config>
class Energy : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Energy, Configurations);

TYPED_TEST(Energy, HardlyChangesUnderTranslation)
{
    using Real         = typename TypeParam::Real;
    const System water = pseudoWater(namedBox("octahedron", 8.0), 24);
    Solver<Real> solver(TypeParam::options());
    load(solver, rounded<Real>(water));
    const Evaluation first     = evaluate(solver, rounded<Real>(water));
    const Evaluation reference = ewald(water);
    const Bounds bounds        = boundsFor<Real>(water, solver.setup(), reference);
    for (const Vector& shift :
         { Vector{ 0.1, 0.2, 0.3 }, Vector{ -0.7, 0.33, 1.9 }, Vector{ 4.1, -3.7, 0.01 } })
    {
        const Evaluation moved = evaluate(solver, rounded<Real>(shifted(water, shift)));
        // Both are within the bound of the truth; the shifted coordinates are rounded anew, which
        // is rounding of positions of up to 6 nm instead of cells.
        const double rounding =
                std::numeric_limits<Real>::epsilon() * 6 / 0.1 * rootMeanSquare(reference.forces);
        EXPECT_LE(std::abs(moved.energy - first.energy),
                  2 * bounds.energy + rounding * 0.1 * water.size());
        EXPECT_LE(relativeError(moved.forces, first.forces) * rootMeanSquare(first.forces),
                  2 * bounds.force + 2 * rounding);
    }
}

TYPED_TEST(Energy, ScalesWithTheCoulombConstant)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(randomCharges(namedBox("flat", 3.0), 60, 25));
    Options options     = TypeParam::options();
    Solver<Real> vacuum(options);
    options.coulombConstant *= 0.25;
    Solver<Real> medium(options);
    load(vacuum, system);
    load(medium, system);
    const Evaluation a = evaluate(vacuum, system), b = evaluate(medium, system);
    EXPECT_NEAR(b.energy / a.energy, 0.25, roundingFloor<Real>());
    for (int i = 0; i < system.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            EXPECT_NEAR(4 * b.forces[i][k],
                        a.forces[i][k],
                        roundingFloor<Real>() * rootMeanSquare(a.forces));
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
