/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges of two states and the coupling parameter that mixes their energies.
 */
#include <cmath>

#include <algorithm>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "changing_systems.h"
#include "system_building.h"
#include "test_support.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

//! Sum of a and factor times b.
Evaluation sum(Evaluation a, double factor, const Evaluation& b)
{
    a.energy += factor * b.energy;
    for (size_t i = 0; i < a.forces.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            a.forces[i][k] += factor * b.forces[i][k];
        }
    }
    for (int k = 0; k < 9; ++k)
    {
        a.virial[k / 3][k % 3] += factor * b.virial[k / 3][k % 3];
    }
    return a;
}

//! Evaluates at a lambda. \param[out] slope  dV/dlambda
template<class Real>
Evaluation evaluateAt(Solver<Real>& solver, const System& system, double lambda, double* slope)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> f(x.size());
    Request request;
    request.lambda         = lambda;
    request.dEnergyDLambda = slope != nullptr;
    const Totals totals    = solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
    if (slope != nullptr)
    {
        *slope = totals.dEnergyDLambda;
    }
    return evaluationOf(totals, f);
}

template<class Config>
class PerturbedCharges : public ReproducibleTest<Config>
{
public:
    static Options options(M2lEngine engine = M2lEngine::Auto)
    {
        return withCells(ReproducibleTest<Config>::options(), engine, 9, 0.4);
    }
};
TYPED_TEST_SUITE(PerturbedCharges, Configurations);

/*! \brief Ions in two halves of opposite charge, whose fields are strong, and the same ions mixed.
 *
 *  So many that errors are measured in these very places alone. What suffices for the strong fields
 *  does not for the weak ones. */
TYPED_TEST(PerturbedCharges, MeetTheAccuracyInBothStates)
{
    using Real           = typename TypeParam::Real;
    constexpr int across = 28;
    std::mt19937 random(7);
    System mixed = emptySystem(boxOf(0.3 * across, 0.3 * across, 0.3 * across)), halves;
    for (int i = 0; i < across * across * across; ++i)
    {
        const int a = i % across, b = i / across % across, c = i / across / across;
        mixed.positions.push_back({ 0.3 * a + uniform(random, -0.05, 0.05),
                                    0.3 * b + uniform(random, -0.05, 0.05),
                                    0.3 * c + uniform(random, -0.05, 0.05) });
        mixed.charges.push_back((a + b + c) % 2 == 0 ? 1 : -1);
    }
    mixed  = rounded<Real>(mixed);
    halves = mixed;
    for (int i = 0; i < halves.size(); ++i)
    {
        halves.charges[i] = i < halves.size() / 2 ? 1 : -1;
    }
    Options options  = ReproducibleTest<TypeParam>::options();
    options.accuracy = 3e-4;
    Solver<Real> solver(options);
    load(solver, TwoStates{ "halves, mixed", halves, mixed });
    Options fine  = options;
    fine.accuracy = 1e-5;
    Solver<Real> reference(fine);
    for (const int lambda : { 0, 1 })
    {
        SCOPED_TRACE("lambda " + std::to_string(lambda));
        const System& state = lambda == 0 ? halves : mixed;
        loadCharges(reference, state);
        const double error = relativeError(evaluateAt(solver, state, lambda, nullptr).forces,
                                           evaluate(reference, state).forces);
        EXPECT_LE(error, options.accuracy);
        EXPECT_LE(error, 2 * solver.setup().estimatedError);
    }
    EXPECT_FALSE(solver.setup().isBestEffort);
}

//! Otherwise cells for many would be measured at all the places that few need, and be chosen for these.
TYPED_TEST(PerturbedCharges, HaveTheCellsOfManyBesideAStateOfFew)
{
    using Real       = typename TypeParam::Real;
    const System all = rounded<Real>(randomCharges(boxOf(4, 4, 4), 3000, 23));
    System few       = all;
    std::fill(few.charges.begin() + 2, few.charges.end(), 0.0);
    Options options  = ReproducibleTest<TypeParam>::options();
    options.accuracy = 1e-3;
    Solver<Real> alone(options), both(options);
    loadCharges(alone, all);
    evaluate(alone, all);
    load(both, TwoStates{ "all, two", all, few });
    evaluateAt(both, all, 0, nullptr);
    EXPECT_EQ(both.setup().order, alone.setup().order);
    EXPECT_EQ(both.setup().leafCells, alone.setup().leafCells);
}

//! Beyond both states, too, where GROMACS goes with init-lambda, delta-lambda and coul-lambdas above 1.
TYPED_TEST(PerturbedCharges, MixEnergiesForcesAndVirials)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const TwoStates& states : twoStates<Real>())
    {
        ++number;
        const Evaluation a = ewald(states.a), b = ewald(states.b);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            if (!isTurnOf<Real>(number + (engine == M2lEngine::Fft ? 0 : 1)))
            {
                continue;
            }
            Solver<Real> solver(this->options(engine));
            load(solver, states);
            Bounds bounds;
            for (const double lambda : { 0.0, 0.3, 0.9, 1.0, -0.5, 1.5 })
            {
                SCOPED_TRACE(states.name + " at lambda " + std::to_string(lambda));
                double slope            = 0;
                const Evaluation result = evaluateAt(solver, states.a, lambda, &slope);
                if (lambda == 0)
                {
                    // errors of the states and of their difference
                    const Setup setup = solver.setup();
                    for (const System& part : { states.a, states.b, states.difference() })
                    {
                        const Bounds own = boundsFor<Real>(part, setup, sum(a, 1, b));
                        bounds.force += own.force;
                        bounds.energy += own.energy;
                        bounds.virial += own.virial;
                    }
                }
                // errors of both states add up
                const double weight = std::abs(1 - lambda) + std::abs(lambda);
                expectClose(
                        result,
                        mixed(a, b, lambda),
                        { weight * bounds.force, weight * bounds.energy, weight * bounds.virial });
                EXPECT_NEAR(slope, b.energy - a.energy, 2 * weight * bounds.energy);
            }
        }
    }
}

//! Asking for dV/dlambda changes nothing else, and neither do other values of lambda in between.
TYPED_TEST(PerturbedCharges, HaveNoMemory)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = twoStates<Real>()[0];
    Solver<Real> solver(this->options());
    load(solver, states);
    double slope           = 0;
    const Evaluation first = evaluateAt(solver, states.a, 0.3, nullptr);
    evaluateAt(solver, states.a, 0.9, &slope);
    evaluateAt(solver,
               deformed(states.a, { { { 1.01, 0, 0 }, { 0, 1.01, 0 }, { 0, 0, 1.01 } } }),
               0,
               &slope);
    expectSameBits(evaluateAt(solver, states.a, 0.3, &slope), first);
    // one state after two
    load(solver, states.b);
    Solver<Real> ordinary(this->options());
    load(ordinary, states.b);
    expectSameBits(evaluate(solver, states.b), evaluate(ordinary, states.b));
    // equal charges
    load(solver, { "none", states.b, states.b });
    const Evaluation same = evaluateAt(solver, states.b, 0.5, &slope);
    expectSameBits(same, evaluate(ordinary, states.b));
    EXPECT_EQ(slope, 0);
}

//! dV/dlambda takes potentials, but none of particles without a charge.
TYPED_TEST(PerturbedCharges, HaveASlopeWithTheSameCells)
{
    using Real       = typename TypeParam::Real;
    TwoStates states = twoStates<Real>()[0];
    std::fill_n(states.a.charges.begin() + 110, 60, 0.0);
    std::fill_n(states.b.charges.begin() + 110, 60, 0.0);
    Solver<Real> solver(ReproducibleTest<TypeParam>::options());
    load(solver, states);
    evaluateAt(solver, states.a, 0.2, nullptr);
    const std::vector<double> chosen = solver.state();
    double slope                     = 0;
    evaluateAt(solver, states.a, 0.2, &slope);
    EXPECT_EQ(solver.state(), chosen);
}

TYPED_TEST(PerturbedCharges, ContinueExactly)
{
    using Real       = typename TypeParam::Real;
    Options options  = ReproducibleTest<TypeParam>::options();
    options.accuracy = 1e-3;
    for (const TwoStates& states : twoStates<Real>())
    {
        double slopes[3] = {};
        Solver<Real> solver(options), before(options), after(options);
        load(solver, states);
        solver.prepare(flatPositions<Real>(states.a).data(), Box(states.a.box).rows);
        const Evaluation expected = evaluateAt(solver, states.a, 0.2, &slopes[0]);
        before.restore(solver.state());
        load(before, states);
        load(after, states);
        after.restore(solver.state());
        expectSameBits(evaluateAt(before, states.a, 0.2, &slopes[1]), expected);
        expectSameBits(evaluateAt(after, states.a, 0.2, &slopes[2]), expected);
        EXPECT_EQ(slopes[1], slopes[0]);
        EXPECT_EQ(slopes[2], slopes[0]);
        EXPECT_EQ(after.state(), solver.state());
    }
}

TYPED_TEST(PerturbedCharges, AreCheckedAsOthers)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = twoStates<Real>()[1];
    Solver<Real> solver(this->options());
    load(solver, states);
    const Evaluation expected = evaluateAt(solver, states.a, 0.5, nullptr);
    std::vector<Real> x       = flatPositions<Real>(states.a);
    std::vector<Real> forces(x.size(), Real(3)), q(states.a.size(), Real(1));
    const Box box(states.a.box);
    Request request;
    request.lambda = std::nan("");
    expectError(ErrorCode::InvalidArgument,
                { "lambda" },
                [&] { solver.evaluate(x.data(), box.rows, forces.data(), request); });
    request.lambda    = 0.5;
    const Real before = std::exchange(x[3 * 77 + 1], static_cast<Real>(std::nan("")));
    expectError(ErrorCode::InvalidArgument,
                { "77" },
                [&] { solver.evaluate(x.data(), box.rows, forces.data(), request); });
    x[3 * 77 + 1] = before;
    EXPECT_EQ(forces, std::vector<Real>(x.size(), Real(3)));
    q[5] = std::numeric_limits<Real>::infinity();
    const std::vector<Real> ones(q.size(), Real(1));
    expectError(ErrorCode::InvalidArgument,
                { "5" },
                [&] { solver.setPerturbedCharges(ones.data(), q.data(), states.a.size()); });
    expectSameBits(evaluateAt(solver, states.a, 0.5, nullptr), expected);
}

template<class Config>
class DoublePerturbedCharges : public PerturbedCharges<Config>
{
};
TYPED_TEST_SUITE(DoublePerturbedCharges, DoubleConfigurations);

//! The slope is that of the very energy that is computed, a square function of lambda.
TYPED_TEST(DoublePerturbedCharges, HaveTheSlopeOfTheEnergy)
{
    using Real = typename TypeParam::Real;
    for (const TwoStates& states : twoStates<Real>())
    {
        Options options = this->options();
        options.order   = 3;
        Solver<Real> solver(options);
        load(solver, states);
        for (const double lambda : { 0.0, 0.35, 1.0 })
        {
            double slope = 0;
            evaluateAt(solver, states.a, lambda, &slope);
            const double up   = evaluateAt(solver, states.a, lambda + 0.25, nullptr).energy;
            const double down = evaluateAt(solver, states.a, lambda - 0.25, nullptr).energy;
            EXPECT_NEAR(slope, (up - down) / 0.5, 1e-12 * pairEnergies(states.a))
                    << states.name << " at lambda " << lambda;
        }
    }
}

/*! What differs are 18 atoms that exclude each other, as a molecule with couple-intramol = no does: by
 *  themselves they have hardly any force, but what counts is the error of the forces of all. */
TYPED_TEST(PerturbedCharges, OfASoluteAreJudgedByTheForcesOfAll)
{
    using Real           = typename TypeParam::Real;
    constexpr int c_size = 18;
    System water         = rounded<float>(pseudoWater(namedBox("cube", 64.0), 5));
    for (int i = 0; i < c_size; ++i)
    {
        for (int j = 0; j < i; ++j)
        {
            water.exclusions.emplace_back(i, j);
        }
    }
    Options options  = TypeParam::options();
    options.accuracy = 1e-5;
    Request request;
    request.lambda         = 0.5;
    request.dEnergyDLambda = true;
    const Box box(water.box);
    const auto forcesOf = [&](auto& solver, const auto& zero)
    {
        using Number = std::decay_t<decltype(zero)>;
        const std::vector<Number> a(water.charges.begin(), water.charges.end());
        std::vector<Number> b = a;
        std::fill_n(b.begin(), c_size, zero);
        solver.setPerturbedCharges(a.data(), b.data(), water.size());
        loadExclusions(solver, water, false);
        const std::vector<Number> x = flatPositions<Number>(water);
        std::vector<Number> f(x.size(), zero);
        solver.evaluate(x.data(), box.rows, f.data(), request);
        return f;
    };
    Solver<Real> solver(options);
    const auto forces = forcesOf(solver, Real(0));
    options.accuracy  = 1e-8;
    Solver<double> converged(options);
    const auto exact = forcesOf(converged, 0.0);
    double errors = 0, squares = 0;
    for (size_t k = 0; k < exact.size(); ++k)
    {
        errors += (forces[k] - exact[k]) * (forces[k] - exact[k]);
        squares += exact[k] * exact[k];
    }
    EXPECT_LE(std::sqrt(errors / squares), 1e-5);
}

/*! Errors of what is perturbed are relative to all forces. Most of these are those of pairs that touch at
 *  first, and part. */
TYPED_TEST(PerturbedCharges, MeetTheAccuracyOncePairsHavePartedElsewhere)
{
    using Real               = typename TypeParam::Real;
    const PartingPairs pairs = partingPairs<Real>();
    Options options          = TypeParam::options();
    options.accuracy         = 1e-4;
    Solver<Real> solver(options);
    load(solver, pairs.states);
    for (int k = 0; k < 3; ++k)
    {
        evaluateAt(solver, pairs.touching, 0.5, nullptr);
    }
    const Evaluation exact = mixed(ewald(pairs.states.a), ewald(pairs.states.b), 0.5);
    for (int k = 0; k < 3; ++k)
    {
        const Evaluation f = evaluateAt(solver, pairs.states.a, 0.5, nullptr);
        EXPECT_LE(relativeError(f.forces, exact.forces), options.accuracy) << k;
    }
}

//! Forces become weaker twice: what was measured after the first time is compared with the second.
TYPED_TEST(PerturbedCharges, MeetTheAccuracyWhereForcesBecomeWeakerTwice)
{
    using Real           = typename TypeParam::Real;
    const System crystal = rockSalt(4, 0.3);
    TwoStates states     = { "crystal", crystal, crystal };
    states.b.charges[0] = states.b.charges[1] = 0;
    for (const double accuracy : { 2e-3, 7e-4 })
    {
        Options options  = TypeParam::options();
        options.accuracy = accuracy;
        Solver<Real> solver(options);
        load(solver, states);
        for (const double width : { 0.09, 0.03, 0.01 })
        {
            std::mt19937 random(31);
            states.a               = rounded<Real>(displaced(crystal, width, random));
            states.b.positions     = states.a.positions;
            const Evaluation exact = mixed(fastEwald(states.a), fastEwald(states.b), 0.1);
            // once: the second one at a place would be what the next is compared with
            const Evaluation f = evaluateAt(solver, states.a, 0.1, nullptr);
            EXPECT_LE(relativeError(f.forces, exact.forces), 1.05 * accuracy)
                    << width << ": " << describe(states.a, solver.setup());
        }
    }
}

/*! Positions that are prepared for have strong forces, and those of the first evaluation weak ones: it is
 *  compared with what was measured. So it is where a state was saved before it. */
TYPED_TEST(PerturbedCharges, MeetTheAccuracyWhereTheyWereNotPrepared)
{
    using Real           = typename TypeParam::Real;
    const System crystal = rockSalt(4, 0.3);
    std::mt19937 random(31);
    const System start  = rounded<Real>(displaced(crystal, 0.09, random));
    const System weaker = rounded<Real>(displaced(crystal, 0.01, random));
    TwoStates states    = { "crystal", weaker, weaker };
    states.b.charges[0] = states.b.charges[1] = 0;
    const Evaluation exact = mixed(fastEwald(states.a), fastEwald(states.b), 0.1);
    Options options        = ReproducibleTest<TypeParam>::options();
    options.accuracy       = 7e-4;
    Solver<Real> solver(options), continued(options);
    load(solver, states);
    load(continued, states);
    solver.prepare(flatPositions<Real>(start).data(), Box(start.box).rows);
    continued.restore(solver.state());
    const Evaluation first = evaluateAt(solver, weaker, 0.1, nullptr);
    EXPECT_LE(relativeError(first.forces, exact.forces), 1.05 * options.accuracy)
            << describe(weaker, solver.setup());
    expectSameBits(evaluateAt(continued, weaker, 0.1, nullptr), first);
    EXPECT_EQ(continued.state(), solver.state());
}

/*! Two ions at nearly one place, each in a state of its own, act on each other in E(q) and in the difference of
 *  the states. The sum has none of it, but for rounding of both. Single precision says where that is too much. */
TYPED_TEST(PerturbedCharges, SayWhereTheirDifferenceMissesTheAccuracy)
{
    using Real       = typename TypeParam::Real;
    Options options  = TypeParam::options();
    options.accuracy = 3e-4;
    for (const double distance : { 0.1, 0.01, 1e-3, 1e-4 })
    {
        System ions       = randomCharges(boxOf(3, 3, 3), 1000, 11);
        ions.positions[1] = ions.positions[0];
        ions.positions[1][0] += distance;
        ions.charges[0] = ions.charges[1] = 1;
        ions                              = rounded<float>(ions);
        TwoStates states                  = { "two ions", ions, ions };
        states.a.charges[1] = states.b.charges[0] = 0;
        Solver<Real> solver(options);
        load(solver, states);
        solver.prepare(flatPositions<Real>(ions).data(), Box(ions.box).rows);
        const Evaluation exact = mixed(fastEwald(states.a), fastEwald(states.b), 0.5);
        const Evaluation f     = evaluateAt(solver, states.a, 0.5, nullptr);
        const double error     = relativeError(f.forces, exact.forces);
        const Setup setup      = solver.setup();
        SCOPED_TRACE(std::to_string(distance) + " nm, error " + std::to_string(error));
        // that of both, at a position of the grid that is not the worst
        EXPECT_LE(error, 2 * setup.largestError);
        EXPECT_EQ(setup.isBestEffort, setup.largestError > 1.05 * options.accuracy);
        EXPECT_TRUE(setup.isBestEffort || error <= 1.05 * options.accuracy);
        EXPECT_EQ(setup.isBestEffort, sizeof(Real) == 4 && distance < 5e-4);
    }
}

//! Where one of the states has no charges, a state that is saved at its lambda is of use.
TYPED_TEST(PerturbedCharges, CanBeSavedWhereNoneHasACharge)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("cube", 8), 61));
    const std::vector<Real> q(system.charges.begin(), system.charges.end());
    const std::vector<Real> none(q.size(), Real(0));
    for (const bool atTheEnd : { false, true })
    {
        Solver<Real> solver(TypeParam::options()), next(TypeParam::options());
        for (Solver<Real>* each : { &solver, &next })
        {
            each->setPerturbedCharges(atTheEnd ? q.data() : none.data(),
                                      atTheEnd ? none.data() : q.data(),
                                      system.size());
        }
        evaluateAt(solver, system, atTheEnd ? 1 : 0, nullptr);
        next.restore(solver.state());
        // charges of 1e-16 e or less stand for none
        const Evaluation again = evaluateAt(next, system, atTheEnd ? 1 : 0, nullptr);
        EXPECT_LE(rootMeanSquare(again.forces), 1e-9);
    }
}

} // namespace
} // namespace test
} // namespace farfield
