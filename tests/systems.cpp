/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "systems.h"

#include <cmath>

#include <algorithm>
#include <map>
#include <numeric>

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_pi        = 3.14159265358979323846;
constexpr double c_liquid    = 33.4;         //!< molecules of water per nm^3
constexpr double c_closest   = 0.15;         //!< sites of different molecules, nm
constexpr double c_boltzmann = 0.0083144626; //!< kJ/mol/K

double dot(const Vector& a, const Vector& b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector plus(const Vector& a, const Vector& b, double factor = 1)
{
    return { a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2] };
}

Vector at(const Matrix& rows, double a, double b, double c)
{
    Vector r = {};
    for (int k = 0; k < 3; ++k)
    {
        r[k] = a * rows[0][k] + b * rows[1][k] + c * rows[2][k];
    }
    return r;
}

//! Fractional coordinates in a lower triangular box.
Vector fractional(const Matrix& box, const Vector& x)
{
    Vector s;
    s[2] = x[2] / box[2][2];
    s[1] = (x[1] - s[2] * box[2][1]) / box[1][1];
    s[0] = (x[0] - s[2] * box[2][0] - s[1] * box[1][0]) / box[0][0];
    return s;
}

//! The image of a displacement with fractional coordinates in [-1/2, 1/2].
Vector nearImage(const Matrix& box, const Vector& d)
{
    const Vector s = fractional(box, d);
    return plus(d, at(box, std::round(s[0]), std::round(s[1]), std::round(s[2])), -1);
}

double uniform(std::mt19937& random, double low = 0, double high = 1)
{
    return std::uniform_real_distribution<double>(low, high)(random);
}

Vector gaussian(std::mt19937& random, double width = 1)
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

//! A random rotation: rows of an orthonormal right-handed frame.
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

//! Sites in a periodic box, looked up by place.
class Places
{
public:
    Places(const Matrix& box, double closest) : box_(box), closest_(closest)
    {
        // A cell is at least as wide as the distance, measured across its faces; few are used.
        const double widths[3] = { across(0), across(1), across(2) };
        for (int k = 0; k < 3; ++k)
        {
            lengths_[k] = std::max(1LL, static_cast<long long>(widths[k] / closest));
        }
    }
    bool isFree(const Vector& x) const
    {
        const Vector s = fractional(box_, x);
        std::array<long long, 3> home;
        Vector inside;
        wrap(s, &home, &inside);
        for (int c = 0; c < 27; ++c)
        {
            std::array<long long, 3> cell, turns;
            const int offset[3] = { c / 9 - 1, c / 3 % 3 - 1, c % 3 - 1 };
            for (int k = 0; k < 3; ++k)
            {
                const long long i = home[k] + offset[k];
                turns[k]          = i < 0 ? -1 : i >= lengths_[k] ? 1 : 0;
                cell[k]           = i - turns[k] * lengths_[k];
            }
            const auto found = sites_.find(cell);
            if (found == sites_.end())
            {
                continue;
            }
            for (const Vector& other : found->second)
            {
                const Vector d = at(box_,
                                    inside[0] - other[0] - turns[0],
                                    inside[1] - other[1] - turns[1],
                                    inside[2] - other[2] - turns[2]);
                if (dot(d, d) < closest_ * closest_)
                {
                    return false;
                }
            }
        }
        return true;
    }
    void add(const Vector& x)
    {
        std::array<long long, 3> home;
        Vector inside;
        wrap(fractional(box_, x), &home, &inside);
        sites_[home].push_back(inside);
    }

private:
    double across(int k) const
    {
        // 1 / |g_k|, the rows of the inverse of a lower triangular box
        Vector g = {};
        for (int j = 0; j < 3; ++j)
        {
            Vector e = {};
            e[j]     = 1;
            g[j]     = fractional(box_, e)[k];
        }
        return 1 / std::sqrt(dot(g, g));
    }
    void wrap(const Vector& s, std::array<long long, 3>* cell, Vector* inside) const
    {
        for (int k = 0; k < 3; ++k)
        {
            (*inside)[k] = s[k] - std::floor(s[k]);
            (*cell)[k] =
                    std::min(static_cast<long long>((*inside)[k] * lengths_[k]), lengths_[k] - 1);
        }
    }
    Matrix box_;
    double closest_;
    std::array<long long, 3> lengths_;
    std::map<std::array<long long, 3>, std::vector<Vector>> sites_;
};

//! Adds a molecule; all its pairs are excluded.
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
        sites.push_back(plus(centre, at(orientation, site[0], site[1], site[2])));
    }
    return sites;
}

//! Tries orientations near a place until the molecule fits; takes the last one if none does.
std::vector<Vector> fitted(const Molecule& molecule,
                           const Vector& site,
                           double jitter,
                           const Places& places,
                           std::mt19937& random)
{
    std::vector<Vector> sites;
    for (int attempt = 0; attempt < 100; ++attempt)
    {
        const Vector centre = plus(site,
                                   { uniform(random, -jitter, jitter),
                                     uniform(random, -jitter, jitter),
                                     uniform(random, -jitter, jitter) });
        sites               = placed(molecule, centre, rotation(random));
        if (std::all_of(
                    sites.begin(), sites.end(), [&](const Vector& x) { return places.isFree(x); }))
        {
            break;
        }
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

bool everywhere(const Vector& /*x*/)
{
    return true;
}

//! Numbers the molecules: what exclusions connect.
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

} // namespace

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
                                 at(region,
                                    (c / sites[2] / sites[1] + 0.5) / sites[0],
                                    (c / sites[2] % sites[1] + 0.5) / sites[1],
                                    (c % sites[2] + 0.5) / sites[2]));
        if (!inside(site))
        {
            continue;
        }
        const Molecule& molecule = molecules[next++ % molecules.size()];
        const auto positions     = fitted(molecule, site, 0.19 * spacing, places, random);
        for (const Vector& x : positions)
        {
            places.add(x);
        }
        append(system, positions, molecule.charges);
    }
}

void scatter(System* system,
             const Molecule& molecule,
             int count,
             double closest,
             std::mt19937& random)
{
    Places places = placesOf(*system, closest);
    for (int m = 0; m < count; ++m)
    {
        std::vector<Vector> sites;
        for (int attempt = 0; attempt < 200; ++attempt)
        {
            const Vector centre =
                    at(system->box, uniform(random), uniform(random), uniform(random));
            sites = placed(molecule, centre, rotation(random));
            if (std::all_of(sites.begin(),
                            sites.end(),
                            [&](const Vector& x) { return places.isFree(x); }))
            {
                break;
            }
        }
        for (const Vector& x : sites)
        {
            places.add(x);
        }
        append(system, sites, molecule.charges);
    }
}

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
            const double before = energyOf(m);
            const Vector shift  = { uniform(random, -0.025, 0.025),
                                    uniform(random, -0.025, 0.025),
                                    uniform(random, -0.025, 0.025) };
            // a small rotation about a random axis through the first site
            const Vector axis  = direction(random);
            const double angle = uniform(random, -0.6, 0.6);
            for (size_t k = 0; k < old.size(); ++k)
            {
                const Vector d     = plus(old[k], old[0], -1);
                const Vector cross = { axis[1] * d[2] - axis[2] * d[1],
                                       axis[2] * d[0] - axis[0] * d[2],
                                       axis[0] * d[1] - axis[1] * d[0] };
                Vector turned      = { 0, 0, 0 };
                turned             = plus(turned, d, std::cos(angle));
                turned             = plus(turned, cross, std::sin(angle));
                turned             = plus(turned, axis, dot(axis, d) * (1 - std::cos(angle)));
                s.positions[molecules[m][k]] = plus(plus(old[0], turned), shift);
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

Sample supercell(const System& unit, int repeats)
{
    const auto round = [](double x) { return std::ldexp(std::round(std::ldexp(x, 19)), -19); };
    Sample sample;
    sample.unit = unit;
    for (int k = 0; k < 3; ++k)
    {
        for (int j = 0; j < 3; ++j)
        {
            sample.unit.box[k][j] = round(unit.box[k][j]);
        }
    }
    for (Vector& x : sample.unit.positions)
    {
        const Vector s = fractional(sample.unit.box, x);
        x = plus(x, at(sample.unit.box, std::floor(s[0]), std::floor(s[1]), std::floor(s[2])), -1);
        for (double& component : x)
        {
            component = round(component);
        }
    }
    sample.copies  = repeats * repeats * repeats;
    System& system = sample.system;
    const int n    = unit.size();
    system.name    = unit.name;
    for (int k = 0; k < 3; ++k)
    {
        for (int j = 0; j < 3; ++j)
        {
            system.box[k][j] = repeats * sample.unit.box[k][j];
        }
    }
    // Molecules may be cut at the boundary of the unit: partners are those of the same copy, which
    // the closest image of the whole box does not always make the neighbour. The copy that is
    // closest takes its place.
    const auto copyOf = [&](int a, int b, int c)
    {
        const auto turn = [&](int t) { return (t % repeats + repeats) % repeats; };
        return (turn(a) * repeats + turn(b)) * repeats + turn(c);
    };
    for (int c = 0; c < sample.copies; ++c)
    {
        const int a = c / repeats / repeats, b = c / repeats % repeats, d = c % repeats;
        const Vector shift = at(sample.unit.box, a, b, d);
        for (int i = 0; i < n; ++i)
        {
            system.positions.push_back(plus(sample.unit.positions[i], shift));
            system.charges.push_back(unit.charges[i]);
        }
        for (const auto& [i, j] : unit.exclusions)
        {
            const Vector s = fractional(
                    sample.unit.box, plus(sample.unit.positions[i], sample.unit.positions[j], -1));
            const int partner = copyOf(a + static_cast<int>(std::round(s[0])),
                                       b + static_cast<int>(std::round(s[1])),
                                       d + static_cast<int>(std::round(s[2])));
            system.exclusions.emplace_back(c * n + i, partner * n + j);
        }
    }
    return sample;
}

double forceScale(const System& system, const std::vector<Vector>& forces)
{
    double squares = 0;
    int charged    = 0;
    for (const double q : system.charges)
    {
        squares += q * q;
        charged += q != 0;
    }
    if (charged == 0)
    {
        return 0;
    }
    const double typical =
            c_coulomb * squares / charged / std::pow(system.volume() / charged, 2.0 / 3);
    return std::max(rootMeanSquare(forces), 0.01 * typical);
}

template<class Real>
ReferenceSystem withReference(const Sample& sample)
{
    ReferenceSystem result;
    result.system                   = rounded<Real>(sample.system);
    const bool isRepeated           = sample.copies > 1;
    const System small              = isRepeated ? rounded<Real>(sample.unit) : result.system;
    const CheckedEvaluation checked = checkedEwald(small);
    for (int c = 0; c < sample.copies; ++c)
    {
        result.forces.insert(
                result.forces.end(), checked.value.forces.begin(), checked.value.forces.end());
    }
    result.forceError = checked.forceError;
    result.energy     = sample.copies * checked.value.energy;
    return result;
}

template ReferenceSystem withReference<float>(const Sample& sample);
template ReferenceSystem withReference<double>(const Sample& sample);

namespace
{

Sample single(const std::string& name, System system)
{
    system.name = name;
    Sample sample;
    sample.system = std::move(system);
    return sample;
}

//! 216 molecules of relaxed water, 1.86 nm; some are replaced by ions.
System relaxedWater(const Molecule& molecule, int ions = 0)
{
    std::mt19937 random(1901);
    const double edge = 1.8633;
    System system     = emptySystem(boxOf(edge, edge, edge));
    std::vector<Molecule> mixture(216, molecule);
    for (int i = 0; i < ions; ++i)
    {
        mixture[(i * 216) / ions] = ion(i % 2 == 0 ? 1 : -1);
    }
    fill(&system, mixture, { 0, 0, 0 }, system.box, everywhere, c_liquid, random);
    relax(&system, 40, 300, random);
    return system;
}

System randomWater(const Matrix& box, unsigned seed, const Molecule& molecule = threeSiteWater())
{
    std::mt19937 random(seed);
    System system = emptySystem(box);
    fill(&system, { molecule }, { 0, 0, 0 }, box, everywhere, c_liquid, random);
    return system;
}

System moltenSalt(int n)
{
    std::mt19937 random(1902);
    const double edge = 2 * n * 0.32;
    System system     = emptySystem(boxOf(edge, edge, edge));
    std::vector<Molecule> ions;
    for (int i = 0; i < 8 * n * n * n; ++i)
    {
        ions.push_back(ion((i / (4 * n * n) + i / (2 * n) + i) % 2 == 0 ? 1 : -1));
    }
    fill(&system, ions, { 0, 0, 0 }, system.box, everywhere, 1 / std::pow(0.32, 3), random);
    relax(&system, 60, 1200, random);
    return system;
}

//! Moved off the origin, so that no site is on a face of a cell.
System offTheFaces(const System& crystal)
{
    return shifted(crystal, { 0.0371, 0.0529, 0.0813 });
}

System coldSalt(int n, double width)
{
    std::mt19937 random(1903);
    System system = offTheFaces(rockSalt(n, 0.282));
    for (Vector& x : system.positions)
    {
        x = plus(x, gaussian(random, width));
    }
    return system;
}

System ionsAtRandom(const Matrix& box, int n, double closest, unsigned seed)
{
    std::mt19937 random(seed);
    System system = emptySystem(box);
    scatter(&system, ion(1), n / 2, closest, random);
    scatter(&system, ion(-1), n - n / 2, closest, random);
    return system;
}

//! A chain of charged beads 0.15 nm apart; first and second neighbours are excluded.
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

System chainInWater()
{
    std::mt19937 random(1904);
    System system = emptySystem(boxOf(2.8, 2.8, 2.8));
    addChain(&system, 240, { 1.4, 1.4, 1.4 }, 0.4, random);
    const Places chain = placesOf(system, 0.3);
    fill(
            &system,
            { threeSiteWater() },
            { 0, 0, 0 },
            system.box,
            [&](const Vector& x) { return chain.isFree(x); },
            c_liquid,
            random);
    return system;
}

//! Water between two planes perpendicular to an axis, or inside a cylinder along it, or a ball.
System partOfBox(const Matrix& box,
                 const Vector& centre,
                 const Vector& halves,
                 const std::function<bool(const Vector&)>& inside,
                 unsigned seed)
{
    std::mt19937 random(seed);
    System system = emptySystem(box);
    fill(
            &system,
            { threeSiteWater() },
            plus(centre, halves, -1),
            boxOf(2 * halves[0], 2 * halves[1], 2 * halves[2]),
            [&](const Vector& x) { return inside(plus(x, centre, -1)); },
            c_liquid,
            random);
    return system;
}

System film(int axis, double lateral, double thickness, double height, unsigned seed)
{
    Vector edges  = { lateral, lateral, lateral },
           halves = { lateral / 2, lateral / 2, lateral / 2 };
    edges[axis]   = height;
    halves[axis]  = thickness / 2;
    Vector centre = { lateral / 2, lateral / 2, lateral / 2 };
    centre[axis]  = 0.37 * height;
    return partOfBox(boxOf(edges[0], edges[1], edges[2]), centre, halves, everywhere, seed);
}

System fibre()
{
    return partOfBox(
            boxOf(14, 14, 5),
            { 6.1, 7.7, 2.5 },
            { 0.7, 0.7, 2.5 },
            [](const Vector& x) { return x[0] * x[0] + x[1] * x[1] < 0.7 * 0.7; },
            1910);
}

System droplet(double radius, double edge, const Vector& centre)
{
    return partOfBox(
            boxOf(edge, edge, edge),
            centre,
            { radius, radius, radius },
            [&](const Vector& x) { return dot(x, x) < radius * radius; },
            1911);
}

System twoSheets(double distance)
{
    System system = partOfBox(boxOf(4, 4, 20), { 2, 2, 4 }, { 2, 2, 0.2 }, everywhere, 1912);
    const System other =
            partOfBox(boxOf(4, 4, 20), { 2, 2, 4 + distance }, { 2, 2, 0.2 }, everywhere, 1913);
    for (size_t m = 0; m < moleculesOf(other).size(); ++m)
    {
        append(&system,
               { other.positions[3 * m], other.positions[3 * m + 1], other.positions[3 * m + 2] },
               { -0.834, 0.417, 0.417 });
    }
    return system;
}

//! Two walls of opposite charge: the field between them is that of a capacitor.
System chargedWalls()
{
    std::mt19937 random(1914);
    System system = emptySystem(boxOf(5, 5, 15));
    for (int wall = 0; wall < 2; ++wall)
    {
        for (int i = 0; i < 144; ++i)
        {
            system.positions.push_back({ 5.0 * (i / 12 + 0.3 + 0.4 * uniform(random)) / 12,
                                         5.0 * (i % 12 + 0.3 + 0.4 * uniform(random)) / 12,
                                         4 + 3.5 * wall });
            system.charges.push_back(wall == 0 ? 0.5 : -0.5);
        }
    }
    return system;
}

System clusters(int count, int members, double edge, unsigned seed)
{
    std::mt19937 random(seed);
    System system = emptySystem(boxOf(edge, edge, edge));
    for (int c = 0; c < count; ++c)
    {
        const Vector centre = at(system.box, uniform(random), uniform(random), uniform(random));
        const double radius = std::cbrt(members / (c_liquid * 4.19));
        fill(
                &system,
                { threeSiteWater() },
                plus(centre, { radius, radius, radius }, -1),
                boxOf(2 * radius, 2 * radius, 2 * radius),
                [&](const Vector& x)
                { return dot(plus(x, centre, -1), plus(x, centre, -1)) < radius * radius; },
                c_liquid,
                random);
    }
    return system;
}

//! Polarisable ions: a core and a shell of charge -2.5 e at 0.005 to 0.01 nm, excluded.
System drude(const Matrix& box, int n, double shortest, double longest, unsigned seed)
{
    const System cores = ionsAtRandom(box, n, 0.25, seed);
    std::mt19937 random(seed + 1);
    System system = emptySystem(box);
    for (int i = 0; i < n; ++i)
    {
        const Vector shell =
                plus(cores.positions[i], direction(random), uniform(random, shortest, longest));
        append(&system, { cores.positions[i], shell }, { cores.charges[i] + 2.5, -2.5 });
    }
    return system;
}

System vapour(int n, double edge, unsigned seed)
{
    std::mt19937 random(seed);
    System system = emptySystem(boxOf(edge, edge, edge));
    scatter(&system, threeSiteWater(), n, 0.3, random);
    return system;
}

System unitedAtoms()
{
    std::mt19937 random(1916);
    System system = emptySystem(boxOf(4, 4, 4));
    fill(&system,
         { ion(0), ion(0), ion(0), ion(0), ion(0), ion(0.4), ion(0), ion(0), ion(-0.4) },
         { 0, 0, 0 },
         system.box,
         everywhere,
         30,
         random);
    return system;
}

//! Two molecules of water 0.3 nm apart near the origin.
System twoWaters(double edge, const Vector& place = { 0.7, 0.6, 0.5 })
{
    std::mt19937 random(1917);
    System system        = emptySystem(boxOf(edge, edge, edge));
    const Molecule water = threeSiteWater();
    append(&system, placed(water, place, rotation(random)), water.charges);
    append(&system, placed(water, plus(place, { 0.2, 0.2, 0.1 }), rotation(random)), water.charges);
    return system;
}

System oneWater(double edge)
{
    std::mt19937 random(1918);
    System system        = emptySystem(boxOf(edge, edge, edge));
    const Molecule water = threeSiteWater();
    append(&system,
           placed(water, { 0.41 * edge, 0.3 * edge, 0.77 * edge }, rotation(random)),
           water.charges);
    return system;
}

System few(const Matrix& box, const std::vector<Vector>& positions, const std::vector<double>& q)
{
    System system    = emptySystem(box);
    system.positions = positions;
    system.charges   = q;
    return system;
}

System excludedDipole(double edge)
{
    System system     = few(boxOf(edge, edge, edge),
                        { { 0.31 * edge, 0.42 * edge, 0.56 * edge },
                              { 0.31 * edge + 0.06, 0.42 * edge + 0.05, 0.56 * edge + 0.06 } },
                        { 1, -1 });
    system.exclusions = { { 0, 1 } };
    return system;
}

System macroIons()
{
    std::mt19937 random(1919);
    System system = emptySystem(boxOf(40, 40, 40));
    scatter(&system, ion(-20), 6, 6, random);
    const int first = system.size();
    for (int i = 0; i < 120; ++i)
    {
        // counter-ions condense on the surface
        const double r = i % 4 == 0 ? uniform(random, 3, 9) : uniform(random, 1.5, 1.9);
        system.positions.push_back(plus(system.positions[i % first], direction(random), r));
        system.charges.push_back(1);
    }
    return system;
}

//! A droplet in equilibrium with its vapour: dense and dilute in one box.
System dropletInVapour()
{
    System system = droplet(0.9, 25, { 9, 12, 14 });
    std::mt19937 random(1920);
    scatter(&system, threeSiteWater(), 60, 0.4, random);
    return system;
}

} // namespace

std::vector<SystemKind> systemKinds()
{
    std::vector<SystemKind> kinds;
    const auto add = [&](const std::string& name, const std::function<System()>& make) {
        kinds.push_back({ name, [name, make] { return single(name, make()); } });
    };
    const auto stacked =
            [&](const std::string& name, int repeats, const std::function<System()>& make)
    {
        kinds.push_back({ name,
                          [name, repeats, make]
                          {
                              Sample sample      = supercell(make(), repeats);
                              sample.system.name = name;
                              return sample;
                          } });
    };
    // Liquids; the relaxation takes most of the time, so what is needed twice is kept.
    const auto water = []
    {
        static const System c_water = relaxedWater(threeSiteWater());
        return c_water;
    };
    const auto melt = []
    {
        static const System c_melt = moltenSalt(4);
        return c_melt;
    };
    add("water", water);
    stacked("water, 17k", 3, water);
    add("water, 4 sites", [] { return relaxedWater(fourSiteWater()); });
    add("salt water", [] { return relaxedWater(threeSiteWater(), 16); });
    add("molten salt", melt);
    stacked("molten salt, 14k", 3, melt);
    add("chain in water", [] { return chainInWater(); });
    // Crystals.
    add("cold salt, 0.01 nm", [] { return coldSalt(4, 0.01); });
    add("cold salt, 0.001 nm", [] { return coldSalt(4, 0.001); });
    stacked("cold salt, 14k", 3, [] { return coldSalt(4, 0.005); });
    add("rock salt", [] { return offTheFaces(rockSalt(4, 0.282)); });
    stacked("rock salt, 14k", 3, [] { return offTheFaces(rockSalt(4, 0.282)); });
    add("caesium chloride", [] { return offTheFaces(caesiumChloride(6, 0.357)); });
    // Charges without correlation, and with a background.
    add("random charges", [] { return randomCharges(namedBox("cube", 10), 500, 1921); });
    add("net charge", [] { return randomCharges(namedBox("cube", 10), 300, 1922, 40); });
    add("charges of one sign",
        []
        {
            std::mt19937 random(1923);
            System system = emptySystem(boxOf(3, 3, 3));
            fill(&system, { ion(1) }, { 0, 0, 0 }, system.box, everywhere, 20, random);
            return system;
        });
    add("united atoms", [] { return unitedAtoms(); });
    add("drude", [] { return drude(boxOf(2.4, 2.4, 2.4), 250, 0.005, 0.01, 1924); });
    add("coinciding sites", [] { return drude(boxOf(2.4, 2.4, 2.4), 250, 0, 0, 1925); });
    // Boxes.
    for (const auto& named : allBoxes(8.0))
    {
        if (named.name != "cube" && named.name != "flat" && named.name != "long")
        {
            add("water, " + named.name, [named] { return randomWater(named.box, 1926); });
        }
    }
    add("water, skewed",
        [] {
            return randomWater({ { { 2.4, 0, 0 }, { 1.15, 1.7, 0 }, { -1.1, 0.8, 1.9 } } }, 1927);
        });
    add("water, 1:1:50", [] { return randomWater(boxOf(0.8, 0.8, 40), 1928); });
    add("water, 12 x 12 x 0.4", [] { return randomWater(boxOf(12, 12, 0.4), 1929); });
    add("4 charges in 0.3 nm",
        [] { return randomCharges(boxOf(0.3, 0.3, 0.3), 4, 1930, 0, 0.08); });
    add("6 charges in 0.5 nm",
        [] { return randomCharges(boxOf(0.5, 0.4, 0.6), 6, 1931, 1, 0.08); });
    add("30 charges in 1 nm", [] { return randomCharges(namedBox("octahedron", 1), 30, 1932); });
    // Vacuum beside matter.
    add("slab, 3 of 9 nm", [] { return film(2, 2.5, 3, 9, 1933); });
    add("film, 1 nm, x", [] { return film(0, 3, 1, 14, 1934); });
    add("film, 3 nm, y", [] { return film(1, 2.5, 3, 20, 1935); });
    add("film, 6 nm, z", [] { return film(2, 2.1, 6, 40, 1936); });
    add("fibre", [] { return fibre(); });
    add("two sheets", [] { return twoSheets(7); });
    add("charged walls", [] { return chargedWalls(); });
    add("droplet in 12 nm", [] { return droplet(1.3, 12, { 5, 6, 7 }); });
    add("droplet in 100 nm", [] { return droplet(1.3, 100, { 33, 61, 70 }); });
    add("droplet and vapour", [] { return dropletInVapour(); });
    add("clusters in 60 nm", [] { return clusters(10, 12, 60, 1937); });
    add("clusters in 300 nm", [] { return clusters(6, 20, 300, 1938); });
    add("macro-ions", [] { return macroIons(); });
    // Dilute matter.
    add("vapour, 30 nm", [] { return vapour(300, 30, 1939); });
    add("vapour, 12 nm", [] { return vapour(200, 12, 1940); });
    add("200 ions in 50 nm", [] { return ionsAtRandom(boxOf(50, 50, 50), 200, 0.25, 1941); });
    add("10 ions in 1000 nm", [] { return ionsAtRandom(boxOf(1000, 1000, 1000), 10, 0.25, 1942); });
    add("500 ions in 200 x 200 x 2 nm",
        [] { return ionsAtRandom(boxOf(200, 200, 2), 500, 0.25, 1943); });
    add("ions in 2 x 2 x 200 nm", [] { return ionsAtRandom(boxOf(2, 2, 200), 100, 0.25, 1944); });
    add("ions in a skewed box",
        [] {
            return ionsAtRandom(
                    { { { 20, 0, 0 }, { 9.5, 17, 0 }, { -9, 8, 15 } } }, 100, 0.25, 1945);
        });
    for (const double edge : { 20.0, 100.0, 1000.0 })
    {
        add("two waters in " + std::to_string(static_cast<int>(edge)) + " nm",
            [edge] { return twoWaters(edge); });
    }
    add("two waters in the middle of 1000 nm",
        [] {
            return twoWaters(1000, { 417.3, 503.9, 611.1 });
        });
    add("one water in 10 nm", [] { return oneWater(10); });
    add("one water in 300 nm", [] { return oneWater(300); });
    add("excluded dipole in 10 nm", [] { return excludedDipole(10); });
    add("ion pair in 30 nm",
        [] {
            return few(boxOf(30, 30, 30), { { 11, 13, 17 }, { 11.2, 13.1, 17.1 } }, { 1, -1 });
        });
    add("far ion pair in 20 nm",
        [] {
            return few(boxOf(20, 20, 20), { { 1, 3, 7 }, { 7.2, 9.1, 15.1 } }, { 1, -1 });
        });
    add("one ion in 3 nm", [] { return few(boxOf(3, 3, 3), { { 1, 2, 0.7 } }, { 1 }); });
    add("three charges in 2 nm",
        []
        {
            return few(boxOf(2, 2.2, 1.9),
                       { { 0.3, 0.2, 1.4 }, { 1.1, 1.3, 0.2 }, { 1.6, 2.1, 1.1 } },
                       { 1, -2, 0.5 });
        });
    return kinds;
}

System randomSystem(std::mt19937& random, int most)
{
    const auto chance = [&](double p) { return uniform(random) < p; };
    const auto length = [&](double low, double high)
    { return low * std::pow(high / low, uniform(random)); };
    // Many sizes, small ones often: they are as likely to show a fault, and faster.
    const int n = static_cast<int>(chance(0.05) ? uniform(random, 0, 4)
                                                : length(2, std::max(3, most + 1)));
    // A box around n sites of a density between that of a liquid and nothing.
    const double density = chance(0.6) ? length(20, 110) : length(1e-8, 50);
    double volume        = std::clamp(std::max(n, 1) / density, 0.03, 1e9);
    Matrix box           = boxOf(1, 1, 1);
    if (chance(0.5))
    {
        const auto shapes = allBoxes(1);
        box               = shapes[random() % shapes.size()].box;
    }
    else if (chance(0.6))
    {
        const double stretch = chance(0.3) ? 12 : 2.5;
        for (int k = 0; k < 3; ++k)
        {
            box[k][k] = length(1 / stretch, stretch);
        }
        if (chance(0.5))
        {
            box[1][0] = uniform(random, -0.5, 0.5) * box[0][0];
            box[2][0] = uniform(random, -0.5, 0.5) * box[0][0];
            box[2][1] = uniform(random, -0.5, 0.5) * box[1][1];
        }
    }
    const double scale = std::cbrt(volume / (box[0][0] * box[1][1] * box[2][2]));
    for (Vector& row : box)
    {
        for (double& component : row)
        {
            component *= scale;
        }
    }
    System system        = emptySystem(box);
    const double spacing = std::cbrt(volume / std::max(n, 1));
    const double closest = std::min(0.25, 0.5 * spacing);
    // What fills it, and how: at random, in a part of the box, or as clusters.
    std::vector<Molecule> molecules;
    const int kind = random() % 8;
    switch (kind)
    {
        case 0:
            molecules = { threeSiteWater() };
            break;
        case 1:
            molecules = { fourSiteWater() };
            break;
        case 2:
            molecules = { ion(1), ion(-1) };
            break;
        case 3:
            molecules = { ion(uniform(random, -1, 1)), ion(uniform(random, -1, 1)) };
            break;
        case 4:
            molecules = { threeSiteWater(), ion(1), threeSiteWater(), ion(-1) };
            break;
        case 5:
            molecules = { ion(0), ion(0), ion(0.4), ion(0), ion(-0.4) };
            break;
        case 6:
        {
            const double d = chance(0.3) ? 0 : length(1e-4, 0.02);
            molecules      = { { { { 0, 0, 0 }, { d, 0, 0 } }, { 3.5, -2.5 } },
                               { { { 0, 0, 0 }, { d, 0, 0 } }, { 1.5, -2.5 } } };
            break;
        }
        default:
            molecules = { ion(2), ion(-1), ion(-1) };
            break;
    }
    double part         = chance(0.3) ? uniform(random, 0.02, 0.5) : 1;
    const Vector corner = { uniform(random), uniform(random), uniform(random) };
    const int axes      = chance(0.5) ? 7 : 1 + static_cast<int>(random() % 7);
    Places places(box, closest);
    for (int m = 0; system.size() < n; ++m)
    {
        const Molecule& molecule = molecules[m % molecules.size()];
        std::vector<Vector> sites;
        for (int attempt = 0; attempt < 20; ++attempt)
        {
            Vector s;
            for (int k = 0; k < 3; ++k)
            {
                s[k] = corner[k] + uniform(random) * ((axes >> k) & 1 ? part : 1);
            }
            sites = placed(molecule, at(box, s[0], s[1], s[2]), rotation(random));
            if (std::all_of(sites.begin(),
                            sites.end(),
                            [&](const Vector& x) { return places.isFree(x); }))
            {
                break;
            }
        }
        for (const Vector& x : sites)
        {
            places.add(x);
        }
        append(&system, sites, molecule.charges);
    }
    // Whole molecules at any image of the box.
    if (chance(0.3))
    {
        const double reach = chance(0.3) ? 50 : 1.5;
        for (const auto& members : moleculesOf(system))
        {
            const Vector shift = at(box,
                                    std::round(uniform(random, -reach, reach)),
                                    std::round(uniform(random, -reach, reach)),
                                    std::round(uniform(random, -reach, reach)));
            for (const int i : members)
            {
                system.positions[i] = plus(system.positions[i], shift);
            }
        }
    }
    static const char* const c_names[] = { "water",      "4-site water", "ions",  "charges",
                                           "salt water", "united atoms", "drude", "2:1 salt" };
    system.name                        = c_names[kind];
    return system;
}

} // namespace test
} // namespace farfield
