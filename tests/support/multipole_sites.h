/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges with dipoles and quadrupoles, and what they have by sums over charges.
 *
 *  The references have no multipoles: each is charges close to each other. Two distances of the charges,
 *  extrapolated to zero, leave 1e-8 of dipoles and 1e-6 of quadrupoles.
 */
#ifndef FARFIELD_TESTS_SUPPORT_MULTIPOLE_SITES_H
#define FARFIELD_TESTS_SUPPORT_MULTIPOLE_SITES_H

#include "fast_ewald.h"
#include "slab_sum.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

using Sum = std::function<Evaluation(const System&)>;

inline double dot(const Vector& a, const Vector& b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

//! Charges, dipoles, e nm, and traceless quadrupoles, e nm^2: xx yy zz xy xz yz; the latter may be none.
struct Sites
{
    System charges;
    std::vector<Vector> dipoles;
    std::vector<std::array<double, 6>> quadrupoles;
};

//! What evaluate() gives of sites.
struct SiteEvaluation
{
    double energy = 0;
    Matrix virial = {};
    std::vector<Vector> forces, gradients, torques;
    std::vector<Vector> along; //!< second derivatives times the direction of the dipole
};

inline SiteEvaluation
combined(const SiteEvaluation& a, double fa, const SiteEvaluation& b, double fb)
{
    SiteEvaluation result = a;
    result.energy         = fa * a.energy + fb * b.energy;
    for (int k = 0; k < 9; ++k)
    {
        result.virial[k / 3][k % 3] = fa * a.virial[k / 3][k % 3] + fb * b.virial[k / 3][k % 3];
    }
    for (size_t i = 0; i < a.forces.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            result.forces[i][k]    = fa * a.forces[i][k] + fb * b.forces[i][k];
            result.gradients[i][k] = fa * a.gradients[i][k] + fb * b.gradients[i][k];
            result.torques[i][k]   = fa * a.torques[i][k] + fb * b.torques[i][k];
            result.along[i][k]     = fa * a.along[i][k] + fb * b.along[i][k];
        }
    }
    return result;
}

//! A charge that is a part of a site. \param at  from the site
struct Part
{
    Vector at;
    double charge;
};

/*! \brief A site as its charge and two charges a distance of 2 delta apart, and as two more for each direction of
 *         its quadrupole, 32 delta apart.
 *
 *  Of the second derivatives theta:grad grad, theta = Theta/3, each is a difference of three points; that along
 *  two axes is half the difference of those along their diagonals. The sum at the middle is the trace, 0. */
inline std::vector<Part> partsOf(const Sites& sites, int i, double delta)
{
    const Vector& mu        = sites.dipoles[i];
    const double length     = std::sqrt(dot(mu, mu));
    std::vector<Part> parts = { { {}, sites.charges.charges[i] } };
    const auto addPair      = [&](const Vector& way, double distance, double charge, double other)
    {
        for (const int sign : { 1, -1 })
        {
            Vector at;
            for (int k = 0; k < 3; ++k)
            {
                at[k] = sign * distance * way[k];
            }
            parts.push_back({ at, sign > 0 ? charge : other });
        }
    };
    const double ofDipole = length / (2 * delta);
    addPair({ mu[0] / length, mu[1] / length, mu[2] / length }, delta, ofDipole, -ofDipole);
    if (sites.quadrupoles.empty())
    {
        return parts;
    }
    const auto& Theta     = sites.quadrupoles[i];
    const double distance = 16 * delta, half = std::sqrt(0.5);
    const auto addSecond = [&](const Vector& way, double theta)
    { addPair(way, distance, theta / (distance * distance), theta / (distance * distance)); };
    const double trace = Theta[0] + Theta[1] + Theta[2];
    for (int a = 0; a < 3; ++a)
    {
        Vector along = {}, up = {}, down = {};
        along[a] = 1;
        addSecond(along, (Theta[a] - trace / 3) / 3);
        const int first = a < 2 ? 0 : 1, second = a < 1 ? 1 : 2;
        up[first] = up[second] = down[first] = half;
        down[second]                         = -half;
        addSecond(up, Theta[3 + a] / 3);
        addSecond(down, -Theta[3 + a] / 3);
    }
    return parts;
}

inline Vector cross(const Vector& a, const Vector& b)
{
    return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

//! Each site as partsOf() it; all sites have dipoles.
inline SiteEvaluation ofCharges(const Sites& sites, double delta, const Sum& sum)
{
    System all;
    all.name    = sites.charges.name;
    all.box     = sites.charges.box;
    const int n = sites.charges.size();
    std::vector<std::vector<Part>> parts(n);
    for (int i = 0; i < n; ++i)
    {
        parts[i] = partsOf(sites, i, delta);
        for (const Part& part : parts[i])
        {
            Vector x = sites.charges.positions[i];
            for (int k = 0; k < 3; ++k)
            {
                x[k] += part.at[k];
            }
            all.positions.push_back(x);
            all.charges.push_back(part.charge);
        }
    }
    const int each     = static_cast<int>(parts[0].size());
    const auto exclude = [&](int i, int j)
    {
        for (int a = 0; a < each; ++a)
        {
            for (int b = i == j ? a + 1 : 0; b < each; ++b)
            {
                all.exclusions.emplace_back(each * i + a, each * j + b);
            }
        }
    };
    for (int i = 0; i < n; ++i)
    {
        exclude(i, i);
    }
    for (const auto& [i, j] : sites.charges.exclusions)
    {
        exclude(i, j);
    }
    const Evaluation of = sum(all);
    SiteEvaluation result;
    result.energy = of.energy;
    result.virial = of.virial;
    for (int i = 0; i < n; ++i)
    {
        const double length = std::sqrt(dot(sites.dipoles[i], sites.dipoles[i]));
        const Vector* f     = of.forces.data() + static_cast<size_t>(each) * i;
        const Vector &up = f[1], &down = f[2];
        Vector force{}, torque{}, gradient, along;
        for (int k = 0; k < 3; ++k)
        {
            gradient[k] = -(up[k] - down[k]) * delta / length;
            along[k]    = -(up[k] + down[k]) / length;
        }
        for (int part = 0; part < each; ++part)
        {
            const Vector& at  = parts[i][part].at;
            const Vector turn = cross(at, f[part]);
            for (int k = 0; k < 3; ++k)
            {
                force[k] += f[part][k];
                torque[k] += turn[k];
            }
            // strains turn and stretch the charges, but leave the multipoles
            for (int k = 0; k < 9; ++k)
            {
                const int a = k / 3, b = k % 3;
                result.virial[a][b] += 0.25 * (at[a] * f[part][b] + at[b] * f[part][a]);
            }
        }
        result.forces.push_back(force);
        result.torques.push_back(torque);
        result.gradients.push_back(gradient);
        result.along.push_back(along);
    }
    return result;
}

inline SiteEvaluation reference(const Sites& sites, const Sum& sum)
{
    return combined(ofCharges(sites, 2.5e-4, sum), 4.0 / 3, ofCharges(sites, 5e-4, sum), -1.0 / 3);
}

//! Sites that the precision holds, so that both sides see the same.
template<class Real>
Sites rounded(Sites sites)
{
    sites.charges = test::rounded<Real>(sites.charges);
    for (Vector& mu : sites.dipoles)
    {
        for (double& component : mu)
        {
            component = static_cast<double>(static_cast<Real>(component));
        }
    }
    for (auto& Theta : sites.quadrupoles)
    {
        for (double& component : Theta)
        {
            component = static_cast<double>(static_cast<Real>(component));
        }
    }
    return sites;
}

//! Random dipoles, e nm.
inline std::vector<Vector> randomDipoles(int n, double length, unsigned seed)
{
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<Vector> dipoles(n);
    for (Vector& mu : dipoles)
    {
        mu = { length * uniform(generator),
               length * uniform(generator),
               length * uniform(generator) };
    }
    return dipoles;
}

template<class Real>
std::vector<Real> flat(const std::vector<Vector>& vectors)
{
    std::vector<Real> result;
    for (const Vector& v : vectors)
    {
        result.insert(result.end(), v.begin(), v.end());
    }
    return result;
}

template<class Real>
void loadSites(Solver<Real>& solver, const Sites& sites)
{
    load(solver, sites.charges);
    const std::vector<Real> dipoles = flat<Real>(sites.dipoles);
    solver.setDipoles(dipoles.data(), sites.charges.size());
    std::vector<Real> quadrupoles;
    for (const auto& Theta : sites.quadrupoles)
    {
        quadrupoles.insert(quadrupoles.end(), Theta.begin(), Theta.end());
    }
    solver.setQuadrupoles(quadrupoles.empty() ? nullptr : quadrupoles.data(), sites.charges.size());
}

//! All outputs.
template<class Real>
struct All
{
    Totals totals;
    std::vector<Real> forces, potentials, gradients, hessians, torques;
};

template<class Real>
All<Real> evaluateAll(Solver<Real>& solver, const System& system, const Request& request = {})
{
    const std::vector<Real> x = flatPositions<Real>(system);
    const size_t n            = system.size();
    All<Real> all;
    all.forces.assign(3 * n, Real(0));
    all.potentials.assign(n, Real(7)); // written, not added to
    all.gradients.assign(3 * n, Real(7));
    all.hessians.assign(6 * n, Real(7));
    all.torques.assign(3 * n, Real(7));
    all.totals = solver.evaluate(x.data(),
                                 Box(system.box).rows,
                                 all.forces.data(),
                                 request,
                                 Outputs<Real>{ all.potentials.data(),
                                                all.gradients.data(),
                                                all.hessians.data(),
                                                all.torques.data() });
    return all;
}

template<class Real>
SiteEvaluation siteEvaluation(const All<Real>& all, const Sites& sites)
{
    SiteEvaluation result;
    result.energy = all.totals.energy;
    for (int k = 0; k < 9; ++k)
    {
        result.virial[k / 3][k % 3] = all.totals.virial[k / 3][k % 3];
    }
    result.forces    = vectorsOf(all.forces);
    result.gradients = vectorsOf(all.gradients);
    result.torques   = vectorsOf(all.torques);
    for (size_t i = 0; i < sites.dipoles.size(); ++i)
    {
        const Vector& mu    = sites.dipoles[i];
        const double length = std::sqrt(dot(mu, mu));
        const Real* h       = all.hessians.data() + 6 * i;
        result.along.push_back({ (h[0] * mu[0] + h[3] * mu[1] + h[4] * mu[2]) / length,
                                 (h[3] * mu[0] + h[1] * mu[1] + h[5] * mu[2]) / length,
                                 (h[4] * mu[0] + h[5] * mu[1] + h[2] * mu[2]) / length });
    }
    return result;
}

template<class Real>
SiteEvaluation evaluateSites(Solver<Real>& solver, const Sites& sites)
{
    return siteEvaluation(evaluateAll(solver, sites.charges), sites);
}

inline Evaluation openSum(const System& system)
{
    Evaluation result;
    result.forces.assign(system.size(), Vector{});
    std::vector<std::vector<char>> excluded(system.size(), std::vector<char>(system.size(), 0));
    for (const auto& [i, j] : system.exclusions)
    {
        excluded[i][j] = excluded[j][i] = 1;
    }
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = 0; j < system.size(); ++j)
        {
            if (i == j || excluded[i][j])
            {
                continue;
            }
            Vector d;
            for (int k = 0; k < 3; ++k)
            {
                d[k] = system.positions[i][k] - system.positions[j][k];
            }
            const double e =
                    c_coulomb * system.charges[i] * system.charges[j] / std::sqrt(dot(d, d));
            result.energy += 0.5 * e;
            for (int k = 0; k < 3; ++k)
            {
                result.forces[i][k] += e / dot(d, d) * d[k];
            }
        }
    }
    return result;
}

//! A kind of sites, and the sum that knows their forces.
struct Case
{
    std::string name;
    Sites sites;
    Boundary boundary = Boundary::Periodic;
    Sum sum           = [](const System& system) { return fastEwald(system); };
};

//! Traceless, e nm^2: about that of an atom in water.
inline std::vector<std::array<double, 6>> randomQuadrupoles(int n, unsigned seed)
{
    constexpr double c_size = 1e-3;
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-c_size, c_size);
    std::vector<std::array<double, 6>> quadrupoles(n);
    for (auto& Theta : quadrupoles)
    {
        for (double& component : Theta)
        {
            component = uniform(generator);
        }
        Theta[2] = -Theta[0] - Theta[1];
    }
    return quadrupoles;
}

//! A net charge, excluded pairs, some of them through the boundary, one that is all but one site.
inline Sites bonded(const Matrix& box, int n, double length = 0.03)
{
    Sites sites;
    sites.charges = randomCharges(box, n, 571, 2.0, 0.15);
    for (int i = 0; i < n / 4; i += 2)
    {
        for (int k = 0; k < 3; ++k)
        {
            const double shift = (i == 0) ? 0.004 : 0.05 + 0.01 * k;
            sites.charges.positions[i + 1][k] =
                    sites.charges.positions[i][k] + shift + (i < 4 ? box[2][k] : 0);
        }
        sites.charges.exclusions.emplace_back(i, i + 1);
    }
    // far from each other
    sites.charges.exclusions.emplace_back(n - 1, n - 2);
    sites.dipoles = randomDipoles(n, length, 572);
    return sites;
}

//! Water with a dipole on each atom, as of a polarizable model.
inline Sites polarWater(const Matrix& box)
{
    Sites sites;
    sites.charges = pseudoWater(box, 91);
    sites.dipoles = randomDipoles(sites.charges.size(), 0.02, 92);
    return sites;
}

//! Periodic boxes, slab and open; all sites have dipoles.
inline std::vector<Case> allCases()
{
    const Matrix cube = namedBox("cube", 8.0);
    std::vector<Case> cases;
    for (const auto& named : allBoxes(6.0))
    {
        if (!isLong() && named.name != "flat" && named.name != "dodecahedron_square")
        {
            continue;
        }
        cases.push_back({ named.name, bonded(named.box, 240) });
    }
    cases.push_back({ "water", polarWater(cube) });
    Sites alone = bonded(cube, 300);
    std::fill(alone.charges.charges.begin(), alone.charges.charges.end(), 0.0);
    cases.push_back({ "dipoles alone", alone });
    cases.push_back({ "few", bonded(namedBox("triclinic", 2.0), 16) });
    cases.push_back({ "open", bonded(cube, 240), Boundary::Open, openSum });
    cases.push_back(
            { "slab", bonded(namedBox("flat", 4.0), 60), Boundary::Slab, [](const System& system) {
                 return slabSum(system, 3.0);
             } });
    return cases;
}

/*! \brief Expects that forces, gradients and torques have no larger error than is asked for, and second derivatives
 *         at most twice as much. */
template<class Config>
void expectAccuracy(const Case& c,
                    const Sites& sites,
                    const SiteEvaluation& expected,
                    double accuracy)
{
    using Real       = typename Config::Real;
    Options options  = Config::options();
    options.boundary = c.boundary;
    options.accuracy = accuracy;
    Solver<Real> solver(options);
    loadSites(solver, sites);
    const SiteEvaluation result = evaluateSites(solver, sites);
    SCOPED_TRACE(c.name + ": " + describe(sites.charges, solver.setup()));
    const double ofForces    = relativeError(result.forces, expected.forces);
    const double ofGradients = relativeError(result.gradients, expected.gradients);
    const double ofTorques   = relativeError(result.torques, expected.torques);
    const double ofHessians  = relativeError(result.along, expected.along);
    EXPECT_LE(ofForces, accuracy);
    EXPECT_LE(ofGradients, accuracy);
    EXPECT_LE(ofTorques, accuracy);
    EXPECT_LE(ofHessians, 2 * accuracy);
    if (isLong())
    {
        std::printf("%-20s %g: forces %.1e gradients %.1e torques %.1e second %.1e said %.1e\n",
                    c.name.c_str(),
                    accuracy,
                    ofForces / accuracy,
                    ofGradients / accuracy,
                    ofTorques / accuracy,
                    ofHessians / accuracy,
                    solver.setup().largestError / accuracy);
    }
}

/*! \brief Expects all that an engine computes, and the laws of it.
 *  \param[in] order  leaves little error
 *  \param[in] part   of the forces, that is left */
template<class Config>
void expectAll(const Case& c,
               const Sites& sites,
               const SiteEvaluation& expected,
               M2lEngine engine,
               int order,
               double part)
{
    using Real = typename Config::Real;
    // between neighbours
    const double usual =
            c_coulomb * sites.charges.size() * (sites.charges.meanSquareCharge() + 0.05);
    Options options  = Config::options();
    options.boundary = c.boundary;
    options.m2l      = engine;
    options.order    = order;
    options.cellSize = 0.4;
    Solver<Real> solver(options);
    loadSites(solver, sites);
    const All<Real> all         = evaluateAll(solver, sites.charges);
    const SiteEvaluation result = siteEvaluation(all, sites);
    SCOPED_TRACE(c.name + ": " + describe(sites.charges, solver.setup()));
    EXPECT_LE(relativeError(result.forces, expected.forces), part);
    EXPECT_LE(relativeError(result.gradients, expected.gradients), part);
    EXPECT_LE(relativeError(result.torques, expected.torques), part);
    EXPECT_LE(relativeError(result.along, expected.along), 4 * part);
    EXPECT_NEAR(result.energy, expected.energy, part * usual);
    if (c.boundary == Boundary::Periodic) // the other references have no virial
    {
        EXPECT_LE(largestDifference(result.virial, expected.virial), 10 * part * usual);
    }
    // the energy is that of all multipoles, the trace that of their degrees
    double energies[3] = {}, laplacian = 0;
    for (int i = 0; i < sites.charges.size(); ++i)
    {
        energies[0] += 0.5 * sites.charges.charges[i] * double(all.potentials[i]);
        energies[1] += 0.5 * dot(sites.dipoles[i], result.gradients[i]);
        const Real* second = all.hessians.data() + 6 * static_cast<size_t>(i);
        laplacian += double(second[0] + second[1] + second[2]) / sites.charges.size();
        for (int k = 0; k < 6 && !sites.quadrupoles.empty(); ++k)
        {
            energies[2] += (k < 3 ? 1.0 : 2.0) / 6 * sites.quadrupoles[i][k] * double(second[k]);
        }
    }
    const double rounding = roundingFloor<Real>() * usual;
    EXPECT_NEAR(result.energy, energies[0] + energies[1] + energies[2], rounding);
    EXPECT_NEAR(result.virial[0][0] + result.virial[1][1] + result.virial[2][2],
                -0.5 * (energies[0] + 3 * energies[1] + 5 * energies[2]),
                c.boundary == Boundary::Open ? 10 * part * usual : rounding);
    // Poisson's equation in the background
    const double background =
            c.boundary == Boundary::Periodic
                    ? 4 * M_PI * c_coulomb * sites.charges.netCharge() / sites.charges.volume()
                    : 0;
    const double curvature = rootMeanSquare(result.along);
    EXPECT_NEAR(laplacian, background, roundingFloor<Real>() * (curvature + background));
}

} // namespace test
} // namespace farfield

#endif
