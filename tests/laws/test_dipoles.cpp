/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Dipoles as sources, gradients and second derivatives of potentials, tangents.
 */
#include "multipole_sites.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Dipoles : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(Dipoles, Configurations);

//! Forces of charges and dipoles have no larger error than asked for; gradients have none, either.
TYPED_TEST(Dipoles, KeepTheAccuracy)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const Case& c : allCases())
    {
        ++number;
        const Sites sites             = rounded<Real>(c.sites);
        const SiteEvaluation expected = reference(sites, c.sum);
        for (const double accuracy : { 3e-4, 1e-5 })
        {
            if (!isTurnOf<Real>(number + (accuracy > 1e-4 ? 0 : 1)))
            {
                continue;
            }
            expectAccuracy<TypeParam>(c, sites, expected, accuracy);
        }
    }
}

//! All that is computed, by all engines, at an order that leaves little error.
TYPED_TEST(Dipoles, MatchEwald)
{
    using Real = typename TypeParam::Real;
    int number = 0;
    for (const Case& c : allCases())
    {
        ++number;
        if (!isTurnOf<Real>(number / 2))
        {
            continue;
        }
        const Sites sites             = rounded<Real>(c.sites);
        const SiteEvaluation expected = reference(sites, c.sum);
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            // in turn
            if (!isLong() && number % 2 == (engine == M2lEngine::Fft ? 0 : 1))
            {
                continue;
            }
            expectAll<TypeParam>(c, sites, expected, engine, 9, 5e-4);
        }
    }
}

//! Derivatives of potentials of charges alone are those of a solver without dipoles.
TYPED_TEST(Dipoles, AreNotNeededForDerivatives)
{
    using Real         = typename TypeParam::Real;
    const Sites sites  = rounded<Real>(bonded(namedBox("triclinic", 6.0), 240));
    const System& only = sites.charges;
    Options options    = this->options();
    options.order      = 8;
    Solver<Real> solver(options);
    load(solver, only);
    const All<Real> all      = evaluateAll(solver, only);
    const Evaluation charges = evaluate(solver, only);
    const double part        = 16 * roundingFloor<Real>();
    EXPECT_LE(relativeError(vectorsOf(all.forces), charges.forces), part);
    EXPECT_NEAR(all.totals.energy, charges.energy, roundingFloor<Real>() * pairEnergies(only));
    EXPECT_LE(largestDifference(evaluationOf(all.totals, all.forces).virial, charges.virial),
              roundingFloor<Real>() * pairEnergies(only));
    // and after dipoles have come and gone all is as before
    const std::vector<Real> dipoles = flat<Real>(sites.dipoles);
    solver.setDipoles(dipoles.data(), only.size());
    EXPECT_GT(relativeError(evaluate(solver, only).forces, charges.forces), 0.01);
    solver.setDipoles(nullptr, only.size());
    expectSameBits(evaluate(solver, only), charges);
}

TYPED_TEST(Dipoles, OfOneParticleFeelItsImages)
{
    using Real = typename TypeParam::Real;
    Sites sites;
    sites.charges         = randomCharges(namedBox("triclinic", 1.0), 1, 5, 0.0);
    sites.charges.charges = { 0.0 };
    sites.dipoles         = { { 0.02, -0.01, 0.03 } };
    sites                 = rounded<Real>(sites);
    const auto expected   = reference(sites, [](const System& s) { return fastEwald(s); });
    Options options       = TypeParam::options();
    options.accuracy      = 1e-5;
    Solver<Real> solver(options);
    loadSites(solver, sites);
    const SiteEvaluation result = evaluateSites(solver, sites);
    EXPECT_LE(relativeError(result.gradients, expected.gradients), 1e-4);
    EXPECT_NEAR(result.energy, expected.energy, 1e-4 * std::abs(expected.energy));
    EXPECT_LE(rootMeanSquare(result.forces), 1e-4 * rootMeanSquare(expected.gradients));
}

TYPED_TEST(Dipoles, AreRefusedWhereTheyHaveNoMeaning)
{
    using Real        = typename TypeParam::Real;
    const Sites sites = bonded(namedBox("cube", 4.0), 60);
    const int n       = sites.charges.size();
    Solver<Real> solver(TypeParam::options());
    load(solver, sites.charges);
    std::vector<Real> dipoles = flat<Real>(sites.dipoles);
    const auto set            = [&] { solver.setDipoles(dipoles.data(), n); };
    expectError(ErrorCode::InvalidArgument,
                { "59", "60", "charges" },
                [&] { solver.setDipoles(dipoles.data(), n - 1); });
    dipoles[7] = std::numeric_limits<Real>::quiet_NaN();
    expectError(ErrorCode::InvalidArgument, { "dipole", "particle 2", "finite" }, set);
    dipoles[7] = Real(2e12);
    expectError(ErrorCode::InvalidArgument, { "dipole", "particle 2", "1e12" }, set);
    dipoles[7] = Real(0.01);
    set();
    const std::vector<Real> x = flatPositions<Real>(sites.charges);
    const Box box(sites.charges.box);
    std::vector<Real> f(x.size()), values(n);
    const std::vector<int> group(n, 0);
    expectError(ErrorCode::Unsupported,
                { "groups", "dipoles" },
                [&] { solver.groupEnergies(x.data(), box.rows, group.data(), 1); });
    expectError(ErrorCode::Unsupported,
                { "points", "dipoles" },
                [&]
                { solver.evaluateAt(x.data(), box.rows, x.data(), 1, values.data(), nullptr); });
    expectError(ErrorCode::Unsupported,
                { "tangents", "dipoles" },
                [&] {
                    solver.evaluateTangent(x.data(), box.rows, {}, { f.data(), nullptr });
                });
    const std::vector<Real> widths(n, Real(0.05));
    solver.setNearFunction({ PairFunction::Gaussian }, widths.data(), n);
    expectError(ErrorCode::Unsupported,
                { "dipoles", "near function" },
                [&] { evaluate(solver, sites.charges); });
    solver.setNearFunction({}, nullptr, n);
    const std::vector<Real> q(sites.charges.charges.begin(), sites.charges.charges.end());
    const std::vector<Real> none(n, Real(0));
    solver.setPerturbedCharges(q.data(), none.data(), n);
    expectError(ErrorCode::Unsupported,
                { "dipoles", "one state" },
                [&] { evaluate(solver, sites.charges); });
    solver.setCharges(q.data(), n);
    evaluate(solver, sites.charges); // all is well again
}

//! So near that powers of 1/r overflow.
TYPED_TEST(Dipoles, OfExcludedPairsMayBeAtOnePlace)
{
    using Real      = typename TypeParam::Real;
    Sites sites     = bonded(namedBox("cube", 4.0), 60);
    Options options = TypeParam::options();
    options.order   = 8;
    for (const double apart : { 0.0, 1e-7, 1e-5 })
    {
        sites.charges.positions[0] = { 0, 0, 0 };
        sites.charges.positions[1] = { apart, 0, 0 };
        const Sites given          = rounded<Real>(sites);
        Solver<Real> solver(options);
        loadSites(solver, given);
        const SiteEvaluation pair = evaluateSites(solver, given);
        // without each other they are as one particle
        Sites alone = given;
        alone.charges.charges[0] += alone.charges.charges[1];
        alone.charges.charges[1] = 0;
        for (int k = 0; k < 3; ++k)
        {
            alone.dipoles[0][k] += alone.dipoles[1][k];
            alone.dipoles[1][k] = 0;
        }
        Solver<Real> other(options);
        loadSites(other, alone);
        const SiteEvaluation one = evaluateSites(other, alone);
        SCOPED_TRACE(apart);
        EXPECT_LE(relativeError(std::vector<Vector>(pair.forces.begin() + 2, pair.forces.end()),
                                std::vector<Vector>(one.forces.begin() + 2, one.forces.end())),
                  1e-3);
        for (int k = 0; k < 3; ++k)
        {
            EXPECT_NEAR(pair.forces[0][k] + pair.forces[1][k],
                        one.forces[0][k] + one.forces[1][k],
                        1e-3 * rootMeanSquare(one.forces));
        }
    }
    // what is not excluded has an energy that tells of it, as charges do
    sites.charges.exclusions.clear();
    sites.charges.positions[1] = sites.charges.positions[0];
    Solver<Real> solver(options);
    loadSites(solver, rounded<Real>(sites));
    const All<Real> all = evaluateAll(solver, rounded<Real>(sites).charges);
    EXPECT_GT(std::abs(all.potentials[0]), 1e10);
    EXPECT_GT(std::abs(all.totals.energy), 1e8);
}

//! Forces and potentials of charges, and how they change.
struct Change
{
    std::vector<Vector> forces;
    std::vector<double> potentials;
};

//! A direction of positions and charges.
struct Way
{
    std::vector<Vector> x;
    std::vector<double> q;
};

Way randomWay(int n, unsigned seed)
{
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    Way way = { randomDipoles(n, 1, seed + 1), {} };
    for (int i = 0; i < n; ++i)
    {
        way.q.push_back(uniform(generator));
    }
    return way;
}

Change tangentOf(Solver<double>& solver, const System& system, const Way& way)
{
    const std::vector<double> x = flatPositions<double>(system), dx = flat<double>(way.x);
    std::vector<double> forces(x.size()), potentials(system.size());
    solver.evaluateTangent(x.data(),
                           Box(system.box).rows,
                           { dx.data(), way.q.data() },
                           { forces.data(), potentials.data() });
    return { vectorsOf(forces), potentials };
}

double product(const Change& change, const Way& way)
{
    double sum = 0;
    for (size_t i = 0; i < way.q.size(); ++i)
    {
        sum += way.q[i] * change.potentials[i] - dot(way.x[i], change.forces[i]);
    }
    return sum;
}

std::vector<Case> chargesAlone()
{
    std::vector<Case> cases = allCases();
    for (Case& c : cases)
    {
        // "dipoles alone" has no charges at all, but they change
        c.sites.dipoles.clear();
    }
    return cases;
}

//! Exact for a poor approximation.
Options optionsOfTangents(Options options, const Case& c, M2lEngine engine)
{
    options.boundary = c.boundary;
    options.m2l      = engine;
    options.order    = 4;
    options.cellSize = 0.5;
    return options;
}

template<class Config>
class DipoleTangents : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(DipoleTangents, DoubleConfigurations);

//! Tangents are the differences of the solver's own forces and potentials.
TYPED_TEST(DipoleTangents, AreDifferencesOfForces)
{
    for (const Case& c : chargesAlone())
    {
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            const System& system = c.sites.charges;
            Solver<double> solver(optionsOfTangents(this->options(), c, engine));
            load(solver, system);
            const Way way    = randomWay(system.size(), 17);
            const Change own = tangentOf(solver, system, way);
            // four points: of the fifth order in the step
            constexpr double c_step = 2e-5;
            Change change           = own;
            for (int i = 0; i < system.size(); ++i)
            {
                change.forces[i]     = {};
                change.potentials[i] = 0;
            }
            for (const auto& [multiple, weight] : { std::pair(1, 2.0 / 3),
                                                    std::pair(-1, -2.0 / 3),
                                                    std::pair(2, -1.0 / 12),
                                                    std::pair(-2, 1.0 / 12) })
            {
                System moved = system;
                for (int i = 0; i < system.size(); ++i)
                {
                    moved.charges[i] += multiple * c_step * way.q[i];
                    for (int k = 0; k < 3; ++k)
                    {
                        moved.positions[i][k] += multiple * c_step * way.x[i][k];
                    }
                }
                loadCharges(solver, moved);
                const All<double> all = evaluateAll(solver, moved);
                const auto forces     = vectorsOf(all.forces);
                for (int i = 0; i < system.size(); ++i)
                {
                    change.potentials[i] += weight / c_step * all.potentials[i];
                    for (int k = 0; k < 3; ++k)
                    {
                        change.forces[i][k] += weight / c_step * forces[i][k];
                    }
                }
            }
            SCOPED_TRACE(c.name + ": " + describe(system, solver.setup()));
            // without charges there are no forces
            const double rms = rootMeanSquare(change.forces);
            EXPECT_LE(relativeError(own.forces, change.forces) * rms, 1e-9 * (rms + 1));
            double wrong = 0, all = 0;
            for (int i = 0; i < system.size(); ++i)
            {
                wrong += std::pow(own.potentials[i] - change.potentials[i], 2);
                all += std::pow(change.potentials[i], 2);
            }
            EXPECT_LE(std::sqrt(wrong / all), 1e-9);
            // and nothing is left behind
            loadCharges(solver, system);
            const Evaluation before = evaluate(solver, system);
            tangentOf(solver, system, way);
            expectSameBits(evaluate(solver, system), before);
        }
    }
}

TYPED_TEST(DipoleTangents, AreSymmetric)
{
    for (const Case& c : chargesAlone())
    {
        const System& system = c.sites.charges;
        Solver<double> solver(optionsOfTangents(this->options(), c, M2lEngine::Auto));
        load(solver, system);
        const Way a = randomWay(system.size(), 17), b = randomWay(system.size(), 71);
        const double ab = product(tangentOf(solver, system, a), b);
        const double ba = product(tangentOf(solver, system, b), a);
        SCOPED_TRACE(c.name + ": " + describe(system, solver.setup()));
        EXPECT_NEAR(ab, ba, 1e-12 * (std::abs(ab) + pairEnergies(system) / std::pow(0.15, 2)));
    }
}

//! However small a direction is, and where it is that of one charge.
TYPED_TEST(DipoleTangents, AreInProportionToTheDirection)
{
    Case c               = allCases().front();
    const System& system = c.sites.charges;
    Solver<double> solver(optionsOfTangents(this->options(), c, M2lEngine::Auto));
    load(solver, system);
    Way way  = { std::vector<Vector>(system.size()), std::vector<double>(system.size(), 0.0) };
    way.q[3] = 1;
    const Change one = tangentOf(solver, system, way);
    for (const double scale : { 1e-14, 1e14 })
    {
        way.q[3]           = scale;
        const Change other = tangentOf(solver, system, way);
        for (int i = 0; i < system.size(); ++i)
        {
            EXPECT_NEAR(other.potentials[i] / scale,
                        one.potentials[i],
                        1e-9 * std::abs(one.potentials[i]) + 1e-9);
        }
    }
}

//! Along charges alone, and along positions alone.
TYPED_TEST(DipoleTangents, AddUp)
{
    const Case c         = allCases().front();
    const System& system = c.sites.charges;
    const Box box(system.box);
    Solver<double> solver(optionsOfTangents(this->options(), c, M2lEngine::Auto));
    load(solver, system);
    const std::vector<double> x  = flatPositions<double>(system);
    const Way way                = randomWay(system.size(), 17);
    const std::vector<double> dx = flat<double>(way.x);
    const Change both            = tangentOf(solver, system, way);
    std::vector<double> ofX(x.size()), ofQ(x.size());
    solver.evaluateTangent(x.data(), box.rows, { dx.data(), nullptr }, { ofX.data(), nullptr });
    solver.evaluateTangent(x.data(), box.rows, { nullptr, way.q.data() }, { ofQ.data(), nullptr });
    std::vector<double> sum(x.size());
    std::transform(ofX.begin(), ofX.end(), ofQ.begin(), sum.begin(), std::plus<>());
    EXPECT_LE(relativeError(vectorsOf(sum), both.forces), 1e-12);
}

} // namespace
} // namespace test
} // namespace farfield
