/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The order of expansions and what it does to errors.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Order : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Order, DoubleConfigurations);

TYPED_TEST(Order, SweepConvergesAtTheExpectedRate)
{
    using Real                 = typename TypeParam::Real;
    const System system        = randomCharges(namedBox("cube", 8.0), 600, 13);
    const Evaluation reference = ewald(system);
    const double rms           = rootMeanSquare(reference.forces);
    for (const int directRange : { 1, 2 })
    {
        for (const bool leastSquares : { false, true })
        {
            // Far sources are seen under a/(D - a), a = sqrt(3)/2 cells, D = ws + 1 cells.
            const double rho = std::sqrt(0.75) / (directRange + 1 - std::sqrt(0.75));
            double previous  = 2 * rms;
            // every order once
            const int step = leastSquares ? 4 : directRange == 2 && !isLong() ? 2 : 1;
            for (int order = 0; order <= c_maxOrder; order += step)
            {
                Options options      = TypeParam::options();
                options.order        = order;
                options.directRange  = directRange;
                options.cellSize     = 2.0 / 6;
                options.leastSquares = leastSquares;
                Solver<Real> solver(options);
                load(solver, system);
                const Evaluation result = evaluate(solver, system);
                SCOPED_TRACE(describe(system, solver.setup()));
                ASSERT_EQ(solver.setup().order, order);
                predictTruncation(solver.setup().cells,
                                  system.box,
                                  directRange,
                                  1,
                                  c_maxOrder); // for all orders at once
                const Bounds bounds = boundsFor<Real>(system, solver.setup(), reference);
                const double floor  = roundingFloor<Real>() * rms;
                const double error  = relativeError(result.forces, reference.forces) * rms;
                this->RecordProperty("error_" + std::to_string(order), std::to_string(error / rms));
                if (order > 0 && order <= 12)
                {
                    // Higher orders leave an error that few particles in corners of their cells
                    // decide; Order.IsThatOfTheBipolarExpansion has those.
                    EXPECT_LE(error, bounds.force);
                }
                if (order > 0)
                {
                    EXPECT_LE(std::abs(result.energy - reference.energy), bounds.energy);
                    EXPECT_LE(largestDifference(result.virial, reference.virial), bounds.virial);
                }
                // Worst case, every source in a corner towards its target: the near field alone is
                // off by less than the RMS force, and every order gains rho.
                EXPECT_LE(error, rms * (order + 1) * std::pow(rho, order) + floor);
                // Each order improves on the one before.
                EXPECT_LE(error, previous + floor);
                previous = error;
                if (order == c_maxOrder && directRange == 2)
                {
                    EXPECT_LE(error / rms, 1e-8);
                }
            }
        }
    }
}

TYPED_TEST(Order, IsThatOfTheBipolarExpansion)
{
    using Real = typename TypeParam::Real;
    for (const std::string box : { "rectangular", "triclinic" })
    {
        const System system        = randomCharges(namedBox(box, 6.0), 100, 17);
        const Evaluation reference = ewald(system);
        for (const int directRange : { 1, 2 })
        {
            for (const int order : { 4, 7, 12, 20 })
            {
                Options options      = TypeParam::options();
                options.order        = order;
                options.directRange  = directRange;
                options.cellSize     = 0.3;
                options.m2l          = M2lEngine::Fft;
                options.leastSquares = false;
                Solver<Real> solver(options);
                load(solver, system);
                const Evaluation result = evaluate(solver, system);
                SCOPED_TRACE(box + ": " + describe(system, solver.setup()));
                const Evaluation expected =
                        truncationError(system, solver.setup().cells, directRange, order);
                std::vector<Vector> forces = reference.forces;
                for (int i = 0; i < system.size(); ++i)
                {
                    for (int k = 0; k < 3; ++k)
                    {
                        forces[i][k] += expected.forces[i][k];
                    }
                }
                // Not just the size of the error, but the error of every particle. What the
                // expectation neglects starts at ws + 5 cells instead of ws + 1.
                const double rest = std::pow((directRange + 1) / (directRange + 5.0), order - 1);
                const double rms  = rootMeanSquare(reference.forces);
                EXPECT_LE(relativeError(result.forces, forces) * rms,
                          rest * rootMeanSquare(expected.forces) + roundingFloor<Real>() * rms);
                const double energyScale =
                        c_coulomb * system.meanSquareCharge() * system.size() / 0.2;
                EXPECT_NEAR(result.energy - reference.energy,
                            expected.energy,
                            rest * energyScale * rootMeanSquare(expected.forces) / rms
                                    + roundingFloor<Real>() * energyScale);
            }
        }
    }
}

TYPED_TEST(Order, LeastSquaresOperatorsHaveSmallerErrors)
{
    using Real = typename TypeParam::Real;
    for (const bool water : { false, true })
    {
        const Matrix box           = namedBox("cube", 8.0);
        const System system        = water ? pseudoWater(box, 14) : randomCharges(box, 800, 14);
        const Evaluation reference = ewald(system);
        for (const int order : { 4, 6, 8 })
        {
            double errors[2];
            for (const bool leastSquares : { false, true })
            {
                Options options      = TypeParam::options();
                options.order        = order;
                options.directRange  = 1;
                options.cellSize     = 2.0 / 5;
                options.leastSquares = leastSquares;
                Solver<Real> solver(options);
                load(solver, system);
                errors[leastSquares] =
                        relativeError(evaluate(solver, system).forces, reference.forces);
                EXPECT_EQ(solver.setup().leastSquares, leastSquares);
            }
            // The projection takes what is smooth over a cell: everywhere something, most in
            // water at p = 8, where it halves the error.
            SCOPED_TRACE(system.name + ", p = " + std::to_string(order));
            EXPECT_LT(errors[1], errors[0]);
            if (water && order == 8)
            {
                EXPECT_LT(errors[1], 0.75 * errors[0]);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
