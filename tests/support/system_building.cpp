/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "system_building.h"

#include <cmath>

#include <algorithm>
#include <numeric>

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_closest   = 0.15;         //!< sites of different molecules, nm
constexpr double c_boltzmann = 0.0083144626; //!< kJ/mol/K

} // namespace

Vector plus(const Vector& a, const Vector& b, double factor)
{
    return { a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2] };
}

Vector fractional(const Matrix& box, const Vector& x)
{
    Vector s;
    s[2] = x[2] / box[2][2];
    s[1] = (x[1] - s[2] * box[2][1]) / box[1][1];
    s[0] = (x[0] - s[2] * box[2][0] - s[1] * box[1][0]) / box[0][0];
    return s;
}

Vector nearImage(const Matrix& box, const Vector& d)
{
    const Vector s = fractional(box, d);
    return plus(d, combine(box, std::round(s[0]), std::round(s[1]), std::round(s[2])), -1);
}

double uniform(std::mt19937& random, double low, double high)
{
    return std::uniform_real_distribution<double>(low, high)(random);
}

bool chance(std::mt19937& random, double p)
{
    return uniform(random) < p;
}

double logUniform(std::mt19937& random, double low, double high)
{
    return low * std::pow(high / low, uniform(random));
}

int below(std::mt19937& random, int n)
{
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

Vector gaussian(std::mt19937& random, double width)
{
    std::normal_distribution<double> normal(0, width);
    const double x = normal(random), y = normal(random), z = normal(random);
    return { x, y, z };
}

Vector direction(std::mt19937& random)
{
    Vector u;
    double length;
    do
    {
        u      = gaussian(random);
        length = std::sqrt(dot(u, u));
    } while (length < 1e-3);
    return { u[0] / length, u[1] / length, u[2] / length };
}

Matrix rotation(std::mt19937& random)
{
    const Vector a = direction(random);
    Vector b;
    double length;
    do
    {
        b      = direction(random);
        b      = plus(b, a, -dot(a, b));
        length = std::sqrt(dot(b, b));
    } while (length < 1e-3);
    b = { b[0] / length, b[1] / length, b[2] / length };
    return { a,
             b,
             { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] } };
}

void append(System* system, const std::vector<Vector>& sites, const std::vector<double>& charges)
{
    const int first = system->size();
    for (size_t s = 0; s < sites.size(); ++s)
    {
        system->positions.push_back(sites[s]);
        system->charges.push_back(charges[s]);
        for (size_t t = 0; t < s; ++t)
        {
            system->exclusions.emplace_back(first + static_cast<int>(t),
                                            first + static_cast<int>(s));
        }
    }
}

std::vector<Vector> placed(const Molecule& molecule,
                           const Vector& centre,
                           const Matrix& orientation)
{
    std::vector<Vector> sites;
    for (const Vector& site : molecule.sites)
    {
        sites.push_back(plus(centre, combine(orientation, site[0], site[1], site[2])));
    }
    return sites;
}

Places placesOf(const System& system, double closest)
{
    Places places(system.box, closest);
    for (const Vector& x : system.positions)
    {
        places.add(x);
    }
    return places;
}

System emptySystem(const Matrix& box)
{
    System system;
    system.box = box;
    return system;
}

std::vector<std::vector<int>> moleculesOf(const System& system)
{
    std::vector<int> root(system.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int i)
    {
        while (root[i] != i)
        {
            i = root[i] = root[root[i]];
        }
        return i;
    };
    for (const auto& [i, j] : system.exclusions)
    {
        root[find(i)] = find(j);
    }
    std::map<int, std::vector<int>> members;
    for (int i = 0; i < system.size(); ++i)
    {
        members[find(i)].push_back(i);
    }
    std::vector<std::vector<int>> result;
    for (auto& entry : members)
    {
        result.push_back(std::move(entry.second));
    }
    return result;
}

void insert(System* system,
            const Molecule& molecule,
            int attempts,
            const std::function<Vector()>& centre,
            Places* places,
            std::mt19937& random)
{
    const auto isFree = [&](const Vector& x) { return places->isFree(x); };
    std::vector<Vector> sites;
    do
    {
        const Vector place = centre();
        sites              = placed(molecule, place, rotation(random));
    } while (--attempts > 0 && !std::all_of(sites.begin(), sites.end(), isFree));
    for (const Vector& x : sites)
    {
        places->add(x);
    }
    append(system, sites, molecule.charges);
}

Matrix boxOf(double x, double y, double z)
{
    return { { { x, 0, 0 }, { 0, y, 0 }, { 0, 0, z } } };
}

Molecule threeSiteWater()
{
    const double bond = 0.09572, half = 0.5 * 104.52 * c_pi / 180;
    const double along = bond * std::cos(half), aside = bond * std::sin(half);
    return { { { 0, 0, 0 }, { along, aside, 0 }, { along, -aside, 0 } }, { -0.834, 0.417, 0.417 } };
}

Molecule fourSiteWater()
{
    Molecule water = threeSiteWater();
    water.sites.push_back({ 0.015, 0, 0 });
    water.charges = { 0, 0.52, 0.52, -1.04 };
    return water;
}

Molecule ion(double charge)
{
    return { { { 0, 0, 0 } }, { charge } };
}

void fill(System* system,
          const std::vector<Molecule>& molecules,
          const Vector& origin,
          const Matrix& region,
          const std::function<bool(const Vector&)>& inside,
          double density,
          std::mt19937& random)
{
    const double spacing = std::cbrt(1 / density);
    Places places        = placesOf(*system, c_closest);
    std::array<int, 3> sites;
    for (int k = 0; k < 3; ++k)
    {
        sites[k] = std::max(1, static_cast<int>(std::lround(region[k][k] / spacing)));
    }
    size_t next = 0;
    for (int c = 0; c < sites[0] * sites[1] * sites[2]; ++c)
    {
        const Vector site = plus(origin,
                                 combine(region,
                                         (c / sites[2] / sites[1] + 0.5) / sites[0],
                                         (c / sites[2] % sites[1] + 0.5) / sites[1],
                                         (c % sites[2] + 0.5) / sites[2]));
        if (!inside(site))
        {
            continue;
        }
        const Molecule& molecule = molecules[next++ % molecules.size()];
        const double jitter      = 0.19 * spacing;
        const auto centre        = [&]
        {
            return plus(site,
                        { uniform(random, -jitter, jitter),
                          uniform(random, -jitter, jitter),
                          uniform(random, -jitter, jitter) });
        };
        insert(system, molecule, 100, centre, &places, random);
    }
}

void scatter(System* system,
             const Molecule& molecule,
             int count,
             double closest,
             std::mt19937& random)
{
    Places places     = placesOf(*system, closest);
    const auto centre = [&]
    { return combine(system->box, uniform(random), uniform(random), uniform(random)); };
    for (int m = 0; m < count; ++m)
    {
        insert(system, molecule, 200, centre, &places, random);
    }
}

namespace
{

//! Sites of a molecule after a small step and a small rotation about a random axis through the
//! first.
std::vector<Vector> movedSites(const std::vector<Vector>& old, std::mt19937& random)
{
    const Vector shift = { uniform(random, -0.025, 0.025),
                           uniform(random, -0.025, 0.025),
                           uniform(random, -0.025, 0.025) };
    const Vector axis  = direction(random);
    const double angle = uniform(random, -0.6, 0.6);
    std::vector<Vector> sites;
    for (const Vector& site : old)
    {
        const Vector d = plus(site, old[0], -1);
        Vector turned  = { 0, 0, 0 };
        turned         = plus(turned, d, std::cos(angle));
        turned         = plus(turned, cross(axis, d), std::sin(angle));
        turned         = plus(turned, axis, dot(axis, d) * (1 - std::cos(angle)));
        sites.push_back(plus(plus(old[0], turned), shift));
    }
    return sites;
}

} // namespace

void relax(System* system, int sweeps, double temperature, std::mt19937& random)
{
    System& s            = *system;
    const auto molecules = moleculesOf(s);
    const double shortest =
            std::min({ s.box[0][0], s.box[1][1], s.box[2][2] }); // boxes of little shear only
    const double cutoff = std::min(0.9, 0.5 * shortest);
    std::vector<int> moleculeOf(s.size());
    std::vector<double> sizes(s.size());
    for (size_t m = 0; m < molecules.size(); ++m)
    {
        for (size_t k = 0; k < molecules[m].size(); ++k)
        {
            // ions and oxygen come first, then hydrogen; a massless site has no size
            const int i   = molecules[m][k];
            moleculeOf[i] = static_cast<int>(m);
            sizes[i]      = k == 0 ? 0.13 : k < 3 ? 0.04 : -1;
        }
    }
    // A Coulomb interaction whose force vanishes at the cut-off, as that in a cavity of a
    // conductor, and a repulsion that keeps ions 0.28 and hydrogen bonds 0.18 nm apart.
    const double inverse = 1 / cutoff;
    const auto pair      = [&](int i, int j)
    {
        const Vector d  = nearImage(s.box, plus(s.positions[i], s.positions[j], -1));
        const double r2 = dot(d, d);
        if (r2 > cutoff * cutoff)
        {
            return 0.0;
        }
        const double r     = std::max(std::sqrt(r2), 0.02);
        const double qq    = s.charges[i] * s.charges[j];
        const double size  = std::max(sizes[i] + sizes[j], 0.0);
        const double cubed = size * size * size / (r * r * r);
        return c_coulomb * qq * (1 / r + inverse * (0.5 * r2 * inverse * inverse - 1.5))
               + 8 * cubed * cubed * cubed;
    };
    const auto energyOf = [&](size_t m)
    {
        const Vector centre = s.positions[molecules[m].front()];
        const double reach  = cutoff + 0.25;
        double sum          = 0;
        for (int j = 0; j < s.size(); ++j)
        {
            if (moleculeOf[j] == static_cast<int>(m))
            {
                continue;
            }
            const Vector d = nearImage(s.box, plus(centre, s.positions[j], -1));
            if (dot(d, d) > reach * reach)
            {
                continue;
            }
            for (const int i : molecules[m])
            {
                sum += pair(i, j);
            }
        }
        return sum;
    };
    for (int sweep = 0; sweep < sweeps; ++sweep)
    {
        for (size_t m = 0; m < molecules.size(); ++m)
        {
            std::vector<Vector> old;
            for (const int i : molecules[m])
            {
                old.push_back(s.positions[i]);
            }
            const double before            = energyOf(m);
            const std::vector<Vector> next = movedSites(old, random);
            for (size_t k = 0; k < old.size(); ++k)
            {
                s.positions[molecules[m][k]] = next[k];
            }
            const double change = energyOf(m) - before;
            if (change > 0 && uniform(random) > std::exp(-change / (c_boltzmann * temperature)))
            {
                for (size_t k = 0; k < old.size(); ++k)
                {
                    s.positions[molecules[m][k]] = old[k];
                }
            }
        }
    }
}

void addChain(System* system, int beads, const Vector& start, double charge, std::mt19937& random)
{
    constexpr double c_bond = 0.15;
    const int first         = system->size();
    Places places           = placesOf(*system, 0.14);
    Vector x                = start;
    for (int b = 0; b < beads; ++b)
    {
        system->positions.push_back(x);
        // groups of three are neutral; now and then a charged one, of either sign in turn
        const int place = b % 3;
        double q        = place == 0 ? charge : place == 1 ? -1.6 * charge : 0.6 * charge;
        q += b % 30 == 2 ? 1 : b % 30 == 17 ? -1 : 0;
        system->charges.push_back(q);
        places.add(x);
        for (int back = 1; back <= std::min(b, 2); ++back)
        {
            system->exclusions.emplace_back(first + b - back, first + b);
        }
        Vector next;
        for (int attempt = 0; attempt < 60; ++attempt)
        {
            // drawn back to the start, so that the chain folds
            const Vector home = nearImage(system->box, plus(start, x, -1));
            Vector u          = plus(direction(random), home, 0.6);
            const double l    = std::sqrt(dot(u, u));
            next              = plus(x, u, c_bond / l);
            if (places.isFree(next))
            {
                break;
            }
        }
        x = next;
    }
}

} // namespace test
} // namespace farfield
