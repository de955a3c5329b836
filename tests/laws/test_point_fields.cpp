/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Solver::evaluateAt(): potentials and fields at points, against Ewald sums with a probe there
 *         and against sums over the charges.
 */
#include <limits>
#include <random>

#include "open_systems.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Potential, kJ/mol/e, and field, kJ/mol/nm/e.
struct AtPoint
{
    double potential;
    Vector field;
};

//! Of charges without images.
AtPoint direct(const System& system, const Vector& point)
{
    AtPoint result = { 0, { 0, 0, 0 } };
    for (int i = 0; i < system.size(); ++i)
    {
        Vector d;
        for (int k = 0; k < 3; ++k)
        {
            d[k] = point[k] - system.positions[i][k];
        }
        const double r2        = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        const double potential = c_coulomb * system.charges[i] / std::sqrt(r2);
        result.potential += potential;
        for (int k = 0; k < 3; ++k)
        {
            result.field[k] += potential * d[k] / r2;
        }
    }
    return result;
}

//! Of a periodic system: energy and force are a quadratic form of the charges, whose differences
//! between probes of 1 e and -1 e are exact.
AtPoint byProbe(const System& system, const Vector& point)
{
    System with = system;
    with.positions.push_back(point);
    with.charges.push_back(1);
    const Evaluation plus  = ewald(with);
    with.charges.back()    = -1;
    const Evaluation minus = ewald(with);
    AtPoint result         = { 0.5 * (plus.energy - minus.energy), {} };
    for (int k = 0; k < 3; ++k)
    {
        result.field[k] = 0.5 * (plus.forces.back()[k] - minus.forces.back()[k]);
    }
    return result;
}

template<class Real>
struct Fields
{
    std::vector<Real> potentials, fields;
};

template<class Real>
Fields<Real> fieldsAt(Solver<Real>& solver, const System& system, const std::vector<Vector>& points)
{
    System probes;
    probes.positions           = points;
    const std::vector<Real> x  = flatPositions<Real>(system);
    const std::vector<Real> at = flatPositions<Real>(probes);
    Fields<Real> result        = { std::vector<Real>(points.size(), Real(7)),
                                   std::vector<Real>(at.size(), Real(7)) };
    solver.evaluateAt(x.data(),
                      Box(system.box).rows,
                      at.data(),
                      static_cast<int>(points.size()),
                      result.potentials.data(),
                      result.fields.data());
    return result;
}

std::vector<Vector> randomPoints(int count, const Vector& low, const Vector& high)
{
    std::mt19937 generator(5);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<Vector> points(count);
    for (Vector& point : points)
    {
        for (int k = 0; k < 3; ++k)
        {
            point[k] = low[k] + (high[k] - low[k]) * uniform(generator);
        }
    }
    return points;
}

//! As a solver reads them.
template<class Real>
std::vector<Vector> roundedPoints(const std::vector<Vector>& points)
{
    System system;
    system.positions = points;
    system.charges.assign(points.size(), 0.0);
    return rounded<Real>(system).positions;
}

template<class Config>
class PointFields : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static constexpr double c_accuracy = sizeof(Real) == 4 ? 1e-5 : 1e-7;

    static Options options(M2lEngine engine)
    {
        Options options  = Config::options();
        options.m2l      = engine;
        options.accuracy = c_accuracy;
        return options;
    }
    //! The error is that of forces on particles of the charge of others.
    static void expectFields(const Fields<Real>& found,
                             const std::vector<AtPoint>& expected,
                             const System& system,
                             double rmsForce)
    {
        const double field = rmsForce / std::sqrt(system.meanSquareCharge());
        double squares     = 0;
        for (size_t i = 0; i < expected.size(); ++i)
        {
            // of an error that varies over a distance of the size of molecules
            const double tolerance = c_accuracy * field * c_molecularDistance
                                     + roundingFloor<Real>() * std::abs(expected[i].potential);
            EXPECT_NEAR(found.potentials[i], expected[i].potential, c_deviations * tolerance) << i;
            for (int k = 0; k < 3; ++k)
            {
                squares += std::pow(found.fields[3 * i + k] - expected[i].field[k], 2);
            }
        }
        EXPECT_LE(std::sqrt(squares / expected.size()), c_accuracy * field);
    }
};
TYPED_TEST_SUITE(PointFields, Configurations);

TYPED_TEST(PointFields, AreThoseOfEwald)
{
    using Real = typename TypeParam::Real;
    for (const char* box : { "cube", "triclinic" })
    {
        const System system = rounded<Real>(pseudoWater(namedBox(box, 3.0), 51));
        // some far outside the box, and two at one place
        auto points = roundedPoints<Real>(randomPoints(5, { -3, -3, -3 }, { 6, 6, 6 }));
        std::vector<AtPoint> expected;
        for (const Vector& point : points)
        {
            expected.push_back(byProbe(system, point));
        }
        points.push_back(points.front());
        expected.push_back(expected.front());
        const double force = rootMeanSquare(ewald(system).forces);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            const bool isCpu = TypeParam::device == Device::Cpu;
            if (isCpu && engine == M2lEngine::Hierarchy && box == std::string("cube") && !isLong())
            {
                continue; // takes long there, and in the other box the tree has all that a cube has
            }
            Solver<Real> solver(TestFixture::options(engine));
            load(solver, system);
            SCOPED_TRACE(std::string(box) + ", " + nameOf(engine));
            TestFixture::expectFields(fieldsAt(solver, system, points), expected, system, force);
        }
    }
}

//! Where there are no particles, too, and cells have no expansions.
TYPED_TEST(PointFields, AreThereWhereNoParticlesAre)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(molecules("block", { 0, 0, 0 }, { 9, 9, 9 }, 0.01));
    const auto points   = roundedPoints<Real>(randomPoints(400, { -8, -8, -8 }, { 12, 9, 30 }));
    std::vector<AtPoint> expected;
    for (const Vector& point : points)
    {
        expected.push_back(direct(system, point));
    }
    const double force = rootMeanSquare(allPairs(system).forces);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options  = TestFixture::options(engine);
        options.boundary = Boundary::Open;
        Solver<Real> solver(options);
        load(solver, system);
        SCOPED_TRACE(nameOf(engine));
        TestFixture::expectFields(fieldsAt(solver, system, points), expected, system, force);
    }
}

//! Other charges, another number of points, evaluations in between, and none of them.
TYPED_TEST(PointFields, FollowTheCharges)
{
    using Real       = typename TypeParam::Real;
    System system    = rounded<Real>(molecules("block", { 0, 0, 0 }, { 5, 5, 5 }, 0.01));
    Options options  = TestFixture::options(M2lEngine::Auto);
    options.boundary = Boundary::Open;
    Solver<Real> solver(options);
    load(solver, system);
    for (const int count : { 20, 20, 3, 0, 20 })
    {
        const auto points = roundedPoints<Real>(randomPoints(count, { -1, -1, -1 }, { 3, 3, 3 }));
        std::vector<AtPoint> expected;
        for (const Vector& point : points)
        {
            expected.push_back(direct(system, point));
        }
        const Evaluation pairs = allPairs(system);
        if (count > 0)
        {
            TestFixture::expectFields(fieldsAt(solver, system, points),
                                      expected,
                                      system,
                                      rootMeanSquare(pairs.forces));
        }
        EXPECT_LE(relativeError(evaluate(solver, system).forces, pairs.forces),
                  TestFixture::c_accuracy);
        for (double& q : system.charges)
        {
            q *= -1.5;
        }
        system = rounded<Real>(system);
        load(solver, system);
    }
    std::fill(system.charges.begin(), system.charges.end(), 0.0);
    load(solver, system);
    const auto none = fieldsAt(solver, system, { { 1, 1, 1 } });
    EXPECT_EQ(none.potentials, std::vector<Real>(1, 0));
    EXPECT_EQ(none.fields, std::vector<Real>(3, 0));
}

TYPED_TEST(PointFields, HaveClearErrors)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("cube", 3.0), 51));
    Solver<Real> solver(TestFixture::options(M2lEngine::Auto));
    load(solver, system);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expectError(ErrorCode::InvalidArgument,
                { "point 1", "not finite" },
                [&] {
                    fieldsAt(solver, system, { { 0, 0, 0 }, { 0, nan, 0 } });
                });
    expectError(ErrorCode::InvalidArgument,
                { "point 0", "a billion cells" },
                [&] {
                    fieldsAt(solver, system, { { 1e15, 0, 0 }, { 0, 0, 0 } });
                });
    const std::vector<Real> x = flatPositions<Real>(system);
    Real potential            = 7;
    expectError(ErrorCode::InvalidArgument,
                { "number of points", "-1" },
                [&] {
                    solver.evaluateAt(
                            x.data(), Box(system.box).rows, x.data(), -1, &potential, nullptr);
                });
    System broken    = system;
    broken.box[1][1] = -1;
    expectError(ErrorCode::InvalidArgument,
                { "box" },
                [&] {
                    fieldsAt(solver, broken, { { 0, 0, 0 } });
                });
    const std::vector<Real> q(system.charges.begin(), system.charges.end());
    std::vector<Real> other = q;
    other[3]                = 0;
    solver.setPerturbedCharges(q.data(), other.data(), system.size());
    expectError(ErrorCode::Unsupported,
                { "one state", "setCharges" },
                [&] {
                    fieldsAt(solver, system, { { 0, 0, 0 } });
                });
}

} // namespace
} // namespace test
} // namespace farfield
