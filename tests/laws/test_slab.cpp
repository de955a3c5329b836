/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boundary::Slab: images along two box vectors, none along z, against sums over the plane.
 */
#include <cmath>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "evaporation.h"
#include "open_systems.h"
#include "slab_sum.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_nan = std::numeric_limits<double>::quiet_NaN();

//! A film between two charged plates, which see each other as well as the film.
System capacitor()
{
    System system = film("capacitor", { 5, 5, 4 });
    for (int k = 0; k < 50; ++k)
    {
        const bool isUpper = k >= 25;
        system.positions.push_back({ 0.31 * (k % 5), 0.31 * (k / 5 % 5), isUpper ? 1.6 : -0.9 });
        system.charges.push_back(isUpper ? 0.3 : -0.3);
    }
    return system;
}

//! The same molecules, all turned to one side: a film with a dipole across it.
System polar()
{
    System system = film("polar film", { 6, 6, 2 }, 0.3);
    for (int i = 0; i < system.size(); i += 3)
    {
        for (int site = 1; site < 3; ++site)
        {
            system.positions[i + site] = system.positions[i];
            system.positions[i + site][0] += site == 1 ? 0.08 : -0.08;
            system.positions[i + site][2] += 0.06;
        }
    }
    return system;
}

std::vector<System> systems()
{
    return { film("film", { 6, 6, 3 }),
             film("skewed film", { 6, 5, 3 }, -0.45),
             film("charged film", { 5, 6, 3 }, 0.2, 0.02),
             film("column", { 2, 2, 24 }),
             film("monolayer", { 11, 11, 1 }),
             capacitor(),
             polar() };
}

template<class Config>
class Slab : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options options()
    {
        Options options  = Config::options();
        options.boundary = Boundary::Slab;
        return options;
    }
    static void expectAccurate(const Evaluation& result, const Evaluation& exact, double accuracy)
    {
        EXPECT_LE(relativeError(result.forces, exact.forces), accuracy);
        EXPECT_NEAR(
                result.energy, exact.energy, c_deviations * energyError(exact.forces, accuracy));
    }
};
TYPED_TEST_SUITE(Slab, Configurations);

TYPED_TEST(Slab, HasTheForcesOfSumsOverThePlane)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const System& exact : systems())
    {
        if (!isTurnOf<Real>(number++))
        {
            continue;
        }
        const System system  = rounded<Real>(exact);
        const Evaluation sum = slabSum(system, 2);
        evaluateWithEachEngine<Real>(TestFixture::options(),
                                     system,
                                     [&](const Evaluation& result, double accuracy)
                                     { TestFixture::expectAccurate(result, sum, accuracy); });
    }
}

//! All components: those along z follow from forces, the others from images that move with the box.
TYPED_TEST(Slab, HasTheVirialOfAStrain)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const System& exact : { film("film", { 4, 4, 2 }),
                                 film("skewed film", { 4, 4, 2 }, 0.4),
                                 film("charged film", { 4, 3, 3 }, 0, 0.05) })
    {
        ++number;
        const System system = rounded<Real>(exact);
        const Matrix virial = virialOfSlab(system, 3);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            if (!isTurnOf<Real>(number + (engine == M2lEngine::Fft ? 0 : 1)))
            {
                continue;
            }
            Options options  = TestFixture::options();
            options.m2l      = engine;
            options.accuracy = sizeof(Real) == 4 ? 1e-5 : 1e-7;
            Solver<Real> solver(options);
            load(solver, system);
            const Evaluation result = evaluate(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            // of errors of forces, each with its lever; sums have less
            const double tolerance = energyError(result.forces, options.accuracy);
            EXPECT_LE(largestDifference(result.virial, virial), c_deviations * tolerance);
        }
    }
}

//! Waves of charge along a film that is wider than it is thick: what tilts with its planes counts.
TYPED_TEST(Slab, HasTheVirialOfForcesAlongZ)
{
    using Real   = typename TypeParam::Real;
    System exact = film("film with a wave", { 40, 4, 5 });
    for (int i = 0; i < exact.size(); i += 3)
    {
        const Vector& r = exact.positions[i];
        exact.charges[i] += 0.2 * std::sin(2 * M_PI * r[0] / exact.box[0][0] + r[2]);
    }
    const System system = rounded<Real>(exact);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options  = TestFixture::options();
        options.m2l      = engine;
        options.accuracy = 1e-5;
        Solver<Real> solver(options);
        load(solver, system);
        const Evaluation result = evaluate(solver, system);
        SCOPED_TRACE(describe(system, solver.setup()));
        Vector levers = {};
        for (int i = 0; i < system.size(); ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                levers[k] -= 0.5 * (system.positions[i][2] - 0.3) * result.forces[i][k];
            }
        }
        const double tolerance = c_deviations * energyError(result.forces, options.accuracy);
        for (int k = 0; k < 3; ++k)
        {
            EXPECT_NEAR(result.virial[2][k], levers[k], tolerance) << k;
        }
    }
}

/*! \brief Trees of several levels, against three-dimensional sums with vacuum and a correction.
 *
 *  Nothing in that sum is cut off along z, and nothing in the slab has vacuum. */
TYPED_TEST(Slab, HasTheForcesOfSlabsFarApart)
{
    using Real             = typename TypeParam::Real;
    const System system    = rounded<Real>(film("large film", { 15, 14, 10 }));
    System stacked         = system;
    stacked.box[2]         = {};
    const Evaluation exact = stackedSlabs(stacked, 25);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const double accuracy : { 3e-4, 1e-5 })
        {
            if (!isTurnOf<Real>((engine == M2lEngine::Fft ? 0 : 1) + (accuracy > 1e-4 ? 0 : 1)))
            {
                continue;
            }
            Options options  = TestFixture::options();
            options.m2l      = engine;
            options.accuracy = accuracy;
            Solver<Real> solver(options);
            load(solver, system);
            SCOPED_TRACE(describe(system, solver.setup()));
            TestFixture::expectAccurate(evaluate(solver, system), exact, accuracy);
        }
    }
}

//! Where the film is along z has no meaning; what it and its box do is followed.
TYPED_TEST(Slab, FollowsTheParticlesAndTheBox)
{
    using Real        = typename TypeParam::Real;
    const System rest = film("film", { 5, 5, 3 }, 0.2);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options = TestFixture::options();
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, rest);
        const struct
        {
            double ofPlane, shear, ofHeight;
            Vector shift;
        } motions[] = { { 1, 0, 1, { 0, 0, 0 } },         { 1.001, 0, 1, { 0.1, 0, 7 } },
                        { 1.001, 1e-3, 1, { 0, 0, -3 } }, { 1.02, 0.01, 1.03, { 0, -9, 0 } },
                        { 1.02, 0.01, 1.3, { 0, 0, 0 } }, { 1.3, 0, 8, { 0, 0, 500 } },
                        { 0.98, -0.1, 1, { 3, 3, 3 } } };
        for (const auto& motion : motions)
        {
            System moved    = rest;
            const auto move = [&](Vector* r)
            {
                (*r)[0] = motion.ofPlane * ((*r)[0] + motion.shear * (*r)[1]);
                (*r)[1] *= motion.ofPlane;
            };
            move(&moved.box[0]);
            move(&moved.box[1]);
            for (Vector& r : moved.positions)
            {
                move(&r);
                r[2] *= motion.ofHeight;
                for (int k = 0; k < 3; ++k)
                {
                    r[k] += motion.shift[k];
                }
            }
            moved = rounded<Real>(moved);
            SCOPED_TRACE(describe(moved, solver.setup()) + ", height times "
                         + std::to_string(motion.ofHeight));
            TestFixture::expectAccurate(evaluate(solver, moved), slabSum(moved, 2), 3e-4);
        }
    }
}

//! A box that becomes longer and flatter while the film grows has other cells, also of an order that is given.
TYPED_TEST(Slab, HasOtherCellsWhereThePlaneIsStretchedAsWell)
{
    using Real             = typename TypeParam::Real;
    const System rest      = film("film", { 3, 3, 3 }, 0.2);
    Matrix stretch         = unitMatrix();
    stretch[0][0]          = 6;
    stretch[1][1]          = 0.7;
    stretch[2][2]          = 8;
    const System moved     = rounded<Real>(deformed(rest, stretch));
    const Evaluation exact = slabSum(moved, 2);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options  = TestFixture::options();
        options.m2l      = engine;
        options.order    = 8;
        options.cellSize = 0.6;
        Solver<Real> solver(options), fresh(options);
        load(solver, rest);
        load(fresh, moved);
        evaluate(solver, rest);
        SCOPED_TRACE(nameOf(engine));
        const double error = relativeError(evaluate(solver, moved).forces, exact.forces);
        EXPECT_LE(error, 3 * relativeError(evaluate(fresh, moved).forces, exact.forces) + 1e-6);
    }
}

//! What evaporates costs other cells as often as its distance doubles, not at every step.
TYPED_TEST(Slab, SeldomHasOtherCellsForWhatEvaporates)
{
    using Real           = typename TypeParam::Real;
    const System rest    = film("film", { 6, 6, 3 });
    const double doubled = 4;
    size_t number        = 0;
    for (const M2lEngine engine : { M2lEngine::Auto, M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        if (!isTurnOf<Real>(number++))
        {
            continue;
        }
        Options options = TestFixture::options();
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, rest);
        expectFewChoices(solver,
                         rest,
                         doubled,
                         [](const System& moved, const Evaluation& result)
                         { TestFixture::expectAccurate(result, slabSum(moved, 2), 3e-4); });
    }
}

/*! \brief A film, and molecules far from it: cells are for the particles, not for what is in between.
 *
 *  Forces, energies, virials, potentials are those of the distances that were given. */
TYPED_TEST(Slab, HasNoCellsForEmptyLayers)
{
    using Real        = typename TypeParam::Real;
    const System rest = film("film", { 4, 4, 2 }, 0.3, 0.02);
    for (const double height : { 150.0, -12000.0 })
    {
        System exact = rest;
        // one molecule, and a charge that molecules in the film exclude
        for (int site = 1; site <= 3; ++site)
        {
            exact.positions[rest.size() - site][2] += height;
        }
        exact.positions[4][2] -= 0.5 * height;
        exact.exclusions.emplace_back(4, 3);
        exact.exclusions.emplace_back(4, 7);
        const System system  = rounded<Real>(exact);
        const Evaluation sum = slabSum(system, 2);
        Solver<Real> solver(TestFixture::options());
        load(solver, system);
        const std::vector<Real> x = flatPositions<Real>(system);
        std::vector<Real> forces(x.size()), potentials(system.size());
        const Totals totals = solver.evaluate(
                x.data(), Box(system.box).rows, forces.data(), Request(), potentials.data());
        const Evaluation result = evaluationOf(totals, forces);
        SCOPED_TRACE(describe(system, solver.setup()) + ", height " + std::to_string(height));
        EXPECT_LE(solver.setup().leafCells, 4 * system.size());
        EXPECT_LE(relativeError(result.forces, sum.forces), 3e-4);
        // planes of charge: forces beyond the film have levers as long as the distances
        const double tolerance = c_deviations * energyError(sum.forces, 3e-4)
                                 + roundingFloor<Real>() * std::abs(sum.energy);
        EXPECT_NEAR(result.energy, sum.energy, tolerance);
        if (height > 0) // one of them: finite differences take time
        {
            EXPECT_LE(largestDifference(result.virial, virialOfSlab(system, 2)),
                      tolerance + 1e-6 * std::abs(sum.energy));
        }
        double twice = 0, scale = 0;
        for (int i = 0; i < system.size(); ++i)
        {
            const double energy = system.charges[i] * static_cast<double>(potentials[i]);
            twice += energy;
            scale += std::abs(energy);
        }
        EXPECT_NEAR(twice, 2 * totals.energy, roundingFloor<Real>() * scale);
    }
}

//! What flies away costs other cells once, however far and fast it goes, and comes back.
TYPED_TEST(Slab, KeepsItsCellsForWhatFliesAway)
{
    using Real        = typename TypeParam::Real;
    const System rest = film("film", { 4, 4, 4 });
    Solver<Real> solver(TestFixture::options());
    load(solver, rest);
    int choices                             = 0;
    std::array<std::array<int, 3>, 3> known = {};
    for (const double height : { 30.0, 45.0, 300.0, 310.0, 1e4, 9e5, 60.0, 28.0 })
    {
        System moved = rest;
        moved.positions.back()[2] += height;
        moved = rounded<Real>(moved);
        SCOPED_TRACE(describe(moved, solver.setup()) + ", height " + std::to_string(height));
        TestFixture::expectAccurate(evaluate(solver, moved), slabSum(moved, 2), 3e-4);
        choices += solver.setup().cells != known ? 1 : 0;
        known = solver.setup().cells;
    }
    EXPECT_EQ(choices, 1);
}

TYPED_TEST(Slab, ContinuesExactly)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(film("film", { 9, 8, 4 }));
    const auto widened  = [&](double factor)
    {
        System next    = system;
        next.box[0][0] = static_cast<Real>(factor * next.box[0][0]);
        return next;
    };
    const System next    = widened(1.0005);
    Options options      = TestFixture::options();
    options.threads      = 2;
    options.reproducible = true;
    Solver<Real> solver(options), continued(options);
    load(solver, system);
    load(continued, system);
    evaluate(solver, system);
    for (const double factor : { 1.0003, 0.9994, 1.0002, 1.0005 })
    {
        evaluate(solver, widened(factor));
    }
    continued.restore(solver.state());
    expectSameBits(evaluate(continued, next), evaluate(solver, next));
    // what was saved is for these boundaries
    Options open  = options;
    open.boundary = Boundary::Open;
    Solver<Real> other(open);
    load(other, system);
    expectError(ErrorCode::InvalidArgument,
                { "boundary", "open", "slab" },
                [&] { other.restore(solver.state()); });
}

TYPED_TEST(Slab, HasPotentialsAndFieldsAnywhere)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(film("film", { 5, 5, 3 }, 0.1, 0.01));
    Options options     = TestFixture::options();
    options.accuracy    = 1e-5;
    Solver<Real> solver(options);
    load(solver, system);
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> forces(x.size()), potentials(system.size());
    const Totals totals = solver.evaluate(
            x.data(), Box(system.box).rows, forces.data(), Request(), potentials.data());
    double twice = 0, scale = 0;
    for (int i = 0; i < system.size(); ++i)
    {
        const double energy = system.charges[i] * static_cast<double>(potentials[i]);
        twice += energy;
        scale += std::abs(energy);
    }
    EXPECT_NEAR(twice, 2 * totals.energy, roundingFloor<Real>() * scale);
    // what a charge would feel far from the film, and in it
    const std::vector<Real> at = { Real(0.4), Real(0.3), 30, Real(0.7), Real(0.8), Real(0.07) };
    std::vector<Real> values(2), fields(6);
    solver.evaluateAt(x.data(), Box(system.box).rows, at.data(), 2, values.data(), fields.data());
    const double rms =
            rootMeanSquare(slabSum(system, 2).forces) / std::sqrt(system.meanSquareCharge());
    for (int k = 0; k < 2; ++k)
    {
        const auto energyOf = [&](double q, Vector* force)
        {
            System more = system;
            more.positions.push_back({ static_cast<double>(at[3 * k]),
                                       static_cast<double>(at[3 * k + 1]),
                                       static_cast<double>(at[3 * k + 2]) });
            more.charges.push_back(q);
            const Evaluation sum = slabSum(more, 2);
            *force               = sum.forces.back();
            return sum.energy;
        };
        Vector force, opposite;
        const double up = energyOf(1, &force), down = energyOf(-1, &opposite);
        EXPECT_NEAR(static_cast<double>(values[k]), 0.5 * (up - down), 1e-4 * rms);
        for (int c = 0; c < 3; ++c)
        {
            const double field = 0.5 * (force[c] - opposite[c]);
            EXPECT_NEAR(static_cast<double>(fields[3 * k + c]), field, 1e-4 * rms) << c;
        }
    }
}

TYPED_TEST(Slab, HasChargesOfTwoStates)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = discharged<Real>(film("film", { 5, 5, 3 }), 3);
    Solver<Real> solver(TestFixture::options());
    load(solver, states);
    const Evaluation a = slabSum(states.a, 2), b = slabSum(states.b, 2);
    Request request;
    request.lambda            = 0.3;
    request.dEnergyDLambda    = true;
    const std::vector<Real> x = flatPositions<Real>(states.a);
    std::vector<Real> forces(x.size());
    const Totals totals = solver.evaluate(x.data(), Box(states.a.box).rows, forces.data(), request);
    TestFixture::expectAccurate(evaluationOf(totals, forces), mixed(a, b, 0.3), 3e-4);
    EXPECT_NEAR(
            totals.dEnergyDLambda, b.energy - a.energy, c_deviations * energyError(a.forces, 3e-4));
}

//! Few particles, in odd places.
TYPED_TEST(Slab, HasFewParticles)
{
    using Real = typename TypeParam::Real;
    System ions;
    ions.box        = { { { 2, 0, 0 }, { 0, 3, 0 }, { 0, 0, 0 } } };
    const auto with = [&](const std::vector<Vector>& positions, const std::vector<double>& charges)
    {
        System system    = ions;
        system.positions = positions;
        system.charges   = charges;
        return system;
    };
    for (const System& exact :
         { with({ { 0, 0, 0 }, { 0.2, 0, 0 } }, { 1, -1 }),
           with({ { 0, 0, 0 }, { 1.9, 0, 700 } }, { 1, -1 }),
           with({ { 0, 0, 1e5 }, { 0.2, 0.1, 1e5 }, { 1, 1, 1e5 } }, { 1, 1, 1 }),
           with({ { 0, 0, 0 }, { 0, 0, 0.01 }, { 0, 2.9, 0 } }, { 1, -1, 1 }),
           with({ { 0, 0, 0 }, { 7, 8, 9 } }, { 1, 0 }) })
    {
        const System system = rounded<Real>(exact);
        Solver<Real> solver(TestFixture::options());
        load(solver, system);
        const Evaluation result = evaluate(solver, system), sum = slabSum(system, 2);
        SCOPED_TRACE(describe(system, solver.setup()));
        // where forces cancel, of what Options::accuracy says, in 2 x 3 x 9 nm
        const double least = 3e-4 * 0.01 * c_coulomb / std::pow(54, 2.0 / 3);
        for (int i = 0; i < system.size(); ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                EXPECT_NEAR(result.forces[i][k],
                            sum.forces[i][k],
                            3e-4 * std::sqrt(system.size()) * rootMeanSquare(sum.forces) + least);
            }
        }
        EXPECT_NEAR(result.energy, sum.energy, 1e-3 * std::abs(sum.energy));
    }
}

TYPED_TEST(Slab, HasClearErrors)
{
    using Real           = typename TypeParam::Real;
    const System system  = film("film", { 4, 4, 2 });
    Options options      = TestFixture::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation before = evaluate(solver, system);
    System broken           = system;
    broken.positions[17][1] = c_nan;
    expectError(ErrorCode::InvalidArgument,
                { "particle 17", "not finite" },
                [&] { evaluate(solver, broken); });
    broken                  = system;
    broken.positions[17][2] = 1e9;
    expectError(ErrorCode::InvalidArgument,
                { "nm apart", "flown away" },
                [&] { evaluate(solver, broken); });
    broken        = system;
    broken.box[1] = { 0.1, -1, 0 };
    expectError(ErrorCode::InvalidArgument, { "box vectors" }, [&] { evaluate(solver, broken); });
    expectSameBits(evaluate(solver, system), before);
}

} // namespace
} // namespace test
} // namespace farfield
