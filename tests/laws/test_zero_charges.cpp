/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles without charge, as the oxygen of four-site water, and their excluded pairs.
 */
#include <limits>

#include "accuracy_case.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class ZeroCharges : public ReproducibleTest<Config>
{
public:
    using typename ReproducibleTest<Config>::Real;

    //! TIP4P: the charge of the oxygen sits 0.015 nm from it; every tenth one sits on it.
    static System fourSiteWater()
    {
        const System three = pseudoWater(namedBox("triclinic", 8), 371);
        System four;
        four.name = "four-site water";
        four.box  = three.box;
        for (int o = 0; o + 2 < three.size(); o += 3)
        {
            const int first = four.size();
            for (int k = 0; k < 3; ++k)
            {
                four.positions.push_back(three.positions[o + k]);
                four.charges.push_back(k == 0 ? 0 : 0.52);
            }
            Vector site = three.positions[o];
            site[0] += (o % 10 == 0) ? 0 : 0.015;
            four.positions.push_back(site);
            four.charges.push_back(-1.04);
            for (int i = 0; i < 4; ++i)
            {
                for (int j = i + 1; j < 4; ++j)
                {
                    four.exclusions.emplace_back(first + i, first + j);
                }
            }
        }
        return rounded<Real>(four);
    }

    static std::vector<Real> chargesOf(const System& system)
    {
        return { system.charges.begin(), system.charges.end() };
    }
};
TYPED_TEST_SUITE(ZeroCharges, Configurations);

TYPED_TEST(ZeroCharges, FeelNothingAndDoNothing)
{
    using Real          = typename TypeParam::Real;
    const System water  = this->fourSiteWater();
    System chargesAlone = water; // the oxygen is moved far from everything that it was close to
    for (int i = 0; i < water.size(); i += 4)
    {
        chargesAlone.positions[i] = { 0.01 * (i % 37), 0, 0 };
    }
    chargesAlone              = rounded<Real>(chargesAlone);
    const Evaluation expected = ewald(water);
    for (const System* system : { &water, static_cast<const System*>(&chargesAlone) })
    {
        Solver<Real> solver(this->options());
        load(solver, *system);
        const Evaluation result = evaluate(solver, *system);
        expectClose(result, expected, boundsFor<Real>(water, solver.setup(), expected));
        for (int i = 0; i < system->size(); i += 4)
        {
            EXPECT_EQ(result.forces[i], (Vector{ 0, 0, 0 }));
        }
    }
}

//! The same cells are chosen, and the same forces come out, as if they were not there.
TYPED_TEST(ZeroCharges, CostNothing)
{
    using Real         = typename TypeParam::Real;
    const System water = this->fourSiteWater();
    System three; // the same without the oxygen
    three.box = water.box;
    for (int i = 0; i < water.size(); ++i)
    {
        if (i % 4 != 0)
        {
            three.positions.push_back(water.positions[i]);
            three.charges.push_back(water.charges[i]);
        }
    }
    for (int first = 0; first < three.size(); first += 3)
    {
        three.exclusions.insert(
                three.exclusions.end(),
                { { first, first + 1 }, { first, first + 2 }, { first + 1, first + 2 } });
    }
    Solver<Real> with(this->options()), without(this->options());
    load(with, water);
    load(without, three);
    const Evaluation a = evaluate(with, water), b = evaluate(without, three);
    EXPECT_EQ(with.setup().cells, without.setup().cells);
    EXPECT_EQ(with.setup().order, without.setup().order);
    std::vector<Vector> ofCharges;
    for (int i = 0; i < water.size(); ++i)
    {
        if (i % 4 != 0)
        {
            ofCharges.push_back(a.forces[i]);
        }
    }
    EXPECT_LE(relativeError(ofCharges, b.forces), roundingFloor<Real>());
    if (TypeParam::device == Device::Cpu)
    {
        EXPECT_EQ(ofCharges, b.forces); // nothing was computed with them
    }
}

//! On every engine, also after charges that were not zero.
TYPED_TEST(ZeroCharges, MayBeAllThereAre)
{
    using Real         = typename TypeParam::Real;
    const System water = this->fourSiteWater();
    System neutral     = water;
    neutral.charges    = std::vector<double>(water.size(), 0);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options = this->options();
        options.m2l     = engine;
        Solver<Real> solver(options), fresh(options);
        load(solver, water);
        evaluate(solver, water);
        loadCharges(solver, neutral);
        load(fresh, neutral);
        for (Solver<Real>* each : { &solver, &fresh })
        {
            const Evaluation result = evaluate(*each, neutral);
            EXPECT_EQ(result.forces, std::vector<Vector>(water.size(), Vector{ 0, 0, 0 }));
            EXPECT_EQ(result.energy, 0);
        }
    }
}

/*! Particles without a charge have no error that could be measured: what was chosen for them does
 *  not stand once they have charges, nor does a saved state of it. */
TYPED_TEST(ZeroCharges, AreNoneToChooseFor)
{
    using Real = typename TypeParam::Real;
    System ions;
    ions.box       = { { { 34.4, 0, 0 }, { 0, 34.4, 0 }, { 0, 0, 10.3 } } };
    ions.positions = { { 22.21, 26.24, 5.1 }, { 1.47, 9.5, 9.13 }, { 25.5, 3.66, 1.57 } };
    ions.charges   = { 2, -1, -1 };
    ions           = rounded<Real>(ions);
    System neutral = ions;
    neutral.charges.assign(ions.size(), 0);
    const Evaluation expected = ewald(ions);
    Options options           = this->options();
    options.accuracy          = 1e-4;
    options.threads           = 1;
    Solver<Real> first(options), restored(options);
    load(first, neutral);
    evaluate(first, neutral);
    restored.restore(first.state());
    for (Solver<Real>* solver : { &first, &restored })
    {
        load(*solver, ions);
        for (int k = 0; k < 20; ++k)
        {
            Request request;
            request.gridOffset      = gridPosition(k);
            const Evaluation result = evaluate(*solver, ions, request);
            EXPECT_LE(relativeError(result.forces, expected.forces), options.accuracy);
        }
    }
}

//! Forces that replace what was there are zero, those that are added leave it; so for all results.
TYPED_TEST(ZeroCharges, ClearWhatIsReplacedAndAddNothing)
{
    using Real   = typename TypeParam::Real;
    const int n  = 12;
    System water = this->fourSiteWater();
    water.positions.resize(n);
    const std::vector<Real> x = flatPositions<Real>(water), none(n, Real(0));
    const Box box(water.box);
    const std::vector<int> group(n, 0);
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Slab, Boundary::Open })
    {
        for (const bool twoStates : { false, true })
        {
            Options options  = this->options();
            options.boundary = boundary;
            options.accuracy = 1e-2; // quick to set up
            Solver<Real> solver(options);
            twoStates ? solver.setPerturbedCharges(none.data(), none.data(), n)
                      : solver.setCharges(none.data(), n);
            for (const bool replaces : { false, true })
            {
                Request request        = {};
                request.replaceForces  = replaces;
                request.lambda         = 0.5;
                request.dEnergyDLambda = twoStates;
                std::vector<Real> f(3 * n, Real(1)), potentials(n, Real(1));
                const Totals totals =
                        solver.evaluate(x.data(), box.rows, f.data(), request, potentials.data());
                EXPECT_EQ(f, std::vector<Real>(3 * n, replaces ? Real(0) : Real(1)));
                EXPECT_EQ(potentials, none);
                EXPECT_EQ(totals.energy, 0);
                EXPECT_EQ(totals.dEnergyDLambda, 0);
                for (const auto& row : totals.virial)
                {
                    EXPECT_EQ(std::vector<double>(row, row + 3), std::vector<double>(3, 0));
                }
            }
            EXPECT_EQ(solver.groupEnergies(x.data(), box.rows, group.data(), 1),
                      std::vector<double>(1, 0));
            std::vector<Real> potentials(2, Real(1)), fields(6, Real(1));
            const Real at[] = { 0.5, 0.6, 0.7, 0.1, 0.2, 0.3 };
            solver.evaluateAt(x.data(), box.rows, at, 2, potentials.data(), fields.data());
            EXPECT_EQ(potentials, std::vector<Real>(2, Real(0)));
            EXPECT_EQ(fields, std::vector<Real>(6, Real(0)));
        }
    }
}

//! Which of the excluded pairs count is decided by the charges at hand, whatever came first.
TYPED_TEST(ZeroCharges, MayBeSetBeforeAndAfterTheExclusions)
{
    using Real         = typename TypeParam::Real;
    const System water = this->fourSiteWater();
    System charged     = water;
    for (int i = 0; i < water.size(); i += 4)
    {
        charged.charges[i] = 0.25;
        charged.positions[i][2] += 0.05;
    }
    charged              = rounded<Real>(charged);
    const auto resultsOf = [&](Solver<Real>& solver)
    {
        std::vector<Evaluation> results;
        for (const System* system : { &water, static_cast<const System*>(&charged) })
        {
            solver.setCharges(this->chargesOf(*system).data(), system->size());
            results.push_back(evaluate(solver, *system));
        }
        return results;
    };
    // excluded first for one, then for the other; the choice of cells depends on the charges
    Options options     = this->options();
    options.order       = 8;
    options.directRange = 1;
    options.cellSize    = 0.5;
    Solver<Real> one(options), other(options);
    load(one, water);
    evaluate(one, water);
    load(other, charged);
    evaluate(other, water);
    const std::vector<Evaluation> a = resultsOf(one), b = resultsOf(other), again = resultsOf(one);
    for (int k = 0; k < 2; ++k)
    {
        EXPECT_EQ(a[k].forces, b[k].forces);
        EXPECT_EQ(a[k].energy, b[k].energy);
        EXPECT_EQ(a[k].forces, again[k].forces);
    }
    const Evaluation expected = ewald(charged);
    expectClose(a[1], expected, boundsFor<Real>(charged, one.setup(), expected));
}

TYPED_TEST(ZeroCharges, OfAllDoNotHideAPositionThatIsNotFinite)
{
    using Real             = typename TypeParam::Real;
    const double box[3][3] = { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } };
    const Real q[]         = { 0, 0 };
    const Real x[]         = { 1, 1, 1, std::numeric_limits<Real>::quiet_NaN(), 1, 1 };
    Real f[6];
    Solver<Real> solver(TypeParam::options());
    solver.setCharges(q, 2);
    expectError(ErrorCode::InvalidArgument,
                { "position of particle 1" },
                [&] { solver.prepare(x, box); });
    expectError(ErrorCode::InvalidArgument,
                { "position of particle 1" },
                [&] { solver.evaluate(x, box, f); });
}

} // namespace
} // namespace test
} // namespace farfield
