/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <cmath>

#include "system_building.h"
#include "systems.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_liquid = 33.4; //!< molecules of water per nm^3

constexpr auto everywhere = [](const Vector& /*x*/) { return true; };

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
        const Vector centre =
                combine(system.box, uniform(random), uniform(random), uniform(random));
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

System waterDroplet(double radius)
{
    return droplet(radius, 4 * radius, { 2 * radius, 2 * radius, 2 * radius });
}

System foldedChain(int beads)
{
    std::mt19937 random(1948);
    System system = emptySystem(boxOf(20, 20, 20));
    addChain(&system, beads, { 10, 10, 10 }, 0.4, random);
    return system;
}

// Longer than other functions: a table, one entry a kind.
std::vector<SystemKind> systemKinds()
{
    std::vector<SystemKind> kinds;
    const auto add = [&](const std::string& name, const std::function<System()>& make) {
        kinds.push_back({ name, [name, make] { return single(name, make()); } });
    };
    const auto stacked = [&](const std::string& name,
                             const std::array<int, 3>& repeats,
                             const std::function<System()>& make)
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
    stacked("water, 17k", { 3, 3, 3 }, water);
    add("water, 4 sites", [] { return relaxedWater(fourSiteWater()); });
    add("water, 4 sites, random",
        [] { return randomWater(boxOf(2, 2, 2), 1947, fourSiteWater()); });
    add("salt water", [] { return relaxedWater(threeSiteWater(), 16); });
    add("molten salt", melt);
    stacked("molten salt, 14k", { 3, 3, 3 }, melt);
    add("chain in water", [] { return chainInWater(); });
    // Crystals.
    add("cold salt, 0.01 nm", [] { return coldSalt(4, 0.01); });
    add("cold salt, 0.001 nm", [] { return coldSalt(4, 0.001); });
    stacked("cold salt, 14k", { 3, 3, 3 }, [] { return coldSalt(4, 0.005); });
    add("rock salt", [] { return offTheFaces(rockSalt(4, 0.282)); });
    stacked("rock salt, 14k", { 3, 3, 3 }, [] { return offTheFaces(rockSalt(4, 0.282)); });
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
    // wide enough for several levels on a GPU too
    stacked("film, 48k", { 8, 8, 1 }, [] { return film(2, 2.5, 1.2, 60, 1946); });
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
    const Vector middle = { 417.3, 503.9, 611.1 };
    add("two waters in the middle of 1000 nm", [middle] { return twoWaters(1000, middle); });
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

} // namespace test
} // namespace farfield
