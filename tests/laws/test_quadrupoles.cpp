/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Quadrupoles as sources, and torques.
 */
#include <set>

#include "multipole_sites.h"

namespace farfield
{
namespace test
{
namespace
{

//! Square of the distance of the nearest images of two particles.
double nearestImage2(const System& system, int i, int j)
{
    double nearest = std::numeric_limits<double>::infinity();
    for (int image = 0; image < 27; ++image)
    {
        const int shift[3] = { image / 9 - 1, image / 3 % 3 - 1, image % 3 - 1 };
        Vector d;
        for (int k = 0; k < 3; ++k)
        {
            d[k] = system.positions[i][k] - system.positions[j][k] + shift[0] * system.box[0][k]
                   + shift[1] * system.box[1][k] + shift[2] * system.box[2][k];
        }
        nearest = std::min(nearest, dot(d, d));
    }
    return nearest;
}

//! Takes quadrupoles from pairs that interact and are so near that the charges of the reference are no multipoles.
void keepFarQuadrupoles(Sites* sites)
{
    constexpr double c_near = 0.2; // nm
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : sites->charges.exclusions)
    {
        excluded.insert({ std::min(i, j), std::max(i, j) });
    }
    for (int i = 0; i < sites->charges.size(); ++i)
    {
        for (int j = i + 1; j < sites->charges.size(); ++j)
        {
            if (excluded.count({ i, j }) == 0
                && nearestImage2(sites->charges, i, j) < c_near * c_near)
            {
                sites->quadrupoles[i] = sites->quadrupoles[j] = {};
            }
        }
    }
}

//! Hardly more than quadrupoles, about the places of a cubic lattice, so that forces are of one size.
Sites quadrupolesAlone()
{
    constexpr int c_edge       = 4;
    constexpr double c_spacing = 0.3, c_off = 0.05;
    std::mt19937 generator(575);
    std::uniform_real_distribution<double> uniform(-c_off, c_off);
    Sites sites;
    sites.charges.name = "quadrupoles about a lattice";
    for (int k = 0; k < 3; ++k)
    {
        sites.charges.box[k][k] = c_edge * c_spacing;
    }
    for (int i = 0; i < c_edge * c_edge * c_edge; ++i)
    {
        sites.charges.positions.push_back({ c_spacing * (i / 16) + uniform(generator),
                                            c_spacing * (i / 4 % 4) + uniform(generator),
                                            c_spacing * (i % 4) + uniform(generator) });
        sites.charges.charges.push_back(0);
    }
    sites.dipoles = randomDipoles(sites.charges.size(), 1e-5, 573);
    return sites;
}

//! Those of dipoles, with quadrupoles; with fewer particles, as the reference has seven times as many charges.
std::vector<Case> casesWithQuadrupoles()
{
    std::vector<Case> cases;
    for (Case& c : allCases())
    {
        if (c.name == "water")
        {
            if (!isLong())
            {
                continue;
            }
            c.sites = polarWater(namedBox("cube", 1.6));
        }
        else if (c.name == "dipoles alone")
        {
            c.name  = "quadrupoles alone";
            c.sites = quadrupolesAlone();
        }
        else if (c.sites.charges.size() > 16)
        {
            Matrix box = c.sites.charges.box;
            for (int k = 0; k < 9; ++k)
            {
                box[k / 3][k % 3] *= 0.6;
            }
            c.sites = bonded(box, c.boundary == Boundary::Slab ? 12 : 48);
        }
        c.sites.quadrupoles = randomQuadrupoles(c.sites.charges.size(), 574);
        keepFarQuadrupoles(&c.sites);
        cases.push_back(std::move(c));
    }
    return cases;
}

template<class Config>
class Quadrupoles : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(Quadrupoles, Configurations);

TYPED_TEST(Quadrupoles, MatchEwald)
{
    using Real = typename TypeParam::Real;
    int number = 0;
    for (const Case& c : casesWithQuadrupoles())
    {
        ++number;
        const Sites sites             = rounded<Real>(c.sites);
        const SiteEvaluation expected = reference(sites, c.sum);
        for (const double accuracy : { 3e-4, 1e-5 })
        {
            if (isLong() || (accuracy > 1e-4) == std::is_same_v<Real, float>)
            {
                expectAccuracy<TypeParam>(c, sites, expected, accuracy);
            }
        }
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            // in turn
            if (!isLong() && number % 2 == (engine == M2lEngine::Fft ? 0 : 1))
            {
                continue;
            }
            expectAll<TypeParam>(c, sites, expected, engine, 10, 1e-3);
        }
    }
}

TYPED_TEST(Quadrupoles, ComeAndGo)
{
    using Real        = typename TypeParam::Real;
    const Sites sites = rounded<Real>(bonded(namedBox("triclinic", 4.0), 60));
    Options options   = this->options();
    options.order     = 8;
    Solver<Real> solver(options);
    loadSites(solver, sites);
    const All<Real> dipoles = evaluateAll(solver, sites.charges);
    Sites all               = sites;
    all.quadrupoles         = randomQuadrupoles(sites.charges.size(), 574);
    loadSites(solver, all);
    EXPECT_GT(relativeError(vectorsOf(evaluateAll(solver, all.charges).forces),
                            vectorsOf(dipoles.forces)),
              0.01);
    // without dipoles they are as with dipoles of no size
    const std::vector<Real> none(3 * sites.charges.size(), Real(0));
    solver.setDipoles(none.data(), sites.charges.size());
    const All<Real> zero = evaluateAll(solver, all.charges);
    solver.setDipoles(nullptr, sites.charges.size());
    EXPECT_EQ(zero.forces, evaluateAll(solver, all.charges).forces);
    loadSites(solver, sites);
    EXPECT_EQ(dipoles.forces, evaluateAll(solver, sites.charges).forces);
    EXPECT_EQ(dipoles.torques, evaluateAll(solver, sites.charges).torques);
}

TYPED_TEST(Quadrupoles, AreRefusedWhereTheyHaveNoMeaning)
{
    using Real        = typename TypeParam::Real;
    const Sites sites = bonded(namedBox("cube", 4.0), 60);
    const int n       = sites.charges.size();
    Solver<Real> solver(TypeParam::options());
    load(solver, sites.charges);
    std::vector<Real> quadrupoles(6 * n, Real(0));
    const auto set = [&] { solver.setQuadrupoles(quadrupoles.data(), n); };
    expectError(ErrorCode::InvalidArgument,
                { "59", "60", "quadrupoles", "charges" },
                [&] { solver.setQuadrupoles(quadrupoles.data(), n - 1); });
    quadrupoles[13] = std::numeric_limits<Real>::quiet_NaN();
    expectError(ErrorCode::InvalidArgument, { "quadrupole", "particle 2", "finite" }, set);
    quadrupoles[13] = Real(0.01);
    expectError(ErrorCode::InvalidArgument, { "quadrupole", "particle 2", "trace 0.01" }, set);
    quadrupoles[14] = Real(-0.01);
    set();
    const std::vector<Real> x = flatPositions<Real>(sites.charges);
    const Box box(sites.charges.box);
    std::vector<Real> f(x.size());
    expectError(ErrorCode::Unsupported,
                { "tangents", "quadrupoles" },
                [&] {
                    solver.evaluateTangent(x.data(), box.rows, {}, { f.data(), nullptr });
                });
    const std::vector<Real> widths(n, Real(0.05));
    solver.setNearFunction({ PairFunction::Thole }, widths.data(), n);
    expectError(ErrorCode::Unsupported,
                { "quadrupoles", "near functions" },
                [&] { evaluateAll(solver, sites.charges); });
    solver.setNearFunction({}, nullptr, n);
    evaluateAll(solver, sites.charges); // all is well again
}

template<class Config>
class QuadrupoleEnergies : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(QuadrupoleEnergies, DoubleConfigurations);

//! Multipoles of one site, turned about an axis.
Sites turned(Sites sites, int i, int axis, double angle)
{
    Matrix turn = {};
    const int a = (axis + 1) % 3, b = (axis + 2) % 3;
    turn[axis][axis] = 1;
    turn[a][a] = turn[b][b] = std::cos(angle);
    turn[a][b]              = -std::sin(angle);
    turn[b][a]              = std::sin(angle);
    const Vector mu         = sites.dipoles[i];
    auto& Theta             = sites.quadrupoles[i];
    const Matrix before     = { Vector{ Theta[0], Theta[3], Theta[4] },
                                Vector{ Theta[3], Theta[1], Theta[5] },
                                Vector{ Theta[4], Theta[5], Theta[2] } };
    Matrix after            = {};
    for (int k = 0; k < 81; ++k)
    {
        const int p = k / 27, q = k / 9 % 3, r = k / 3 % 3, s = k % 3;
        after[p][q] += turn[p][r] * before[r][s] * turn[q][s];
    }
    for (int k = 0; k < 3; ++k)
    {
        sites.dipoles[i][k] = dot(turn[k], mu);
    }
    Theta = { after[0][0], after[1][1], after[2][2], after[0][1], after[0][2], after[1][2] };
    return sites;
}

//! Forces and torques are the slopes of the energy, where no site changes its cell.
TYPED_TEST(QuadrupoleEnergies, HaveForcesAndTorquesAsSlopes)
{
    constexpr double c_step = 1e-4;
    for (const Boundary boundary : { Boundary::Open, Boundary::Periodic })
    {
        Options options   = TypeParam::options();
        options.boundary  = boundary;
        options.order     = 4; // a poor approximation, whose slopes are exact
        options.cellSize  = 0.5;
        Sites sites       = bonded(namedBox("triclinic", 3.0), 40);
        sites.quadrupoles = randomQuadrupoles(40, 574);
        Solver<double> solver(options);
        loadSites(solver, sites);
        const All<double> all = evaluateAll(solver, sites.charges);
        const double rms      = rootMeanSquare(vectorsOf(all.forces));
        const auto energyOf   = [&](const Sites& changed)
        {
            loadSites(solver, changed);
            return evaluateAll(solver, changed.charges).totals.energy;
        };
        for (const int i : { 0, 7, 39 })
        {
            for (int axis = 0; axis < 3; ++axis)
            {
                Sites up = sites, down = sites;
                up.charges.positions[i][axis] += c_step;
                down.charges.positions[i][axis] -= c_step;
                EXPECT_NEAR(all.forces[3 * i + axis],
                            -(energyOf(up) - energyOf(down)) / (2 * c_step),
                            1e-4 * rms);
                EXPECT_NEAR(all.torques[3 * i + axis],
                            -(energyOf(turned(sites, i, axis, c_step))
                              - energyOf(turned(sites, i, axis, -c_step)))
                                    / (2 * c_step),
                            1e-5 * rms);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
