/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <cmath>

#include <algorithm>

#include "changing_systems.h"
#include "system_building.h"
#include "systems.h"

namespace farfield
{
namespace test
{

namespace
{

//! Any kind of box of a volume: named, rectangular or skewed.
Matrix randomBox(std::mt19937& random, double volume)
{
    Matrix box = boxOf(1, 1, 1);
    if (chance(random, 0.5))
    {
        const auto shapes = allBoxes(1);
        box               = shapes[random() % shapes.size()].box;
    }
    else if (chance(random, 0.6))
    {
        const double stretch = chance(random, 0.3) ? 12 : 2.5;
        for (int k = 0; k < 3; ++k)
        {
            box[k][k] = logUniform(random, 1 / stretch, stretch);
        }
        if (chance(random, 0.5))
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
    return box;
}

//! What fills a system of a kind, 0 to 7.
std::vector<Molecule> randomMolecules(std::mt19937& random, int kind)
{
    switch (kind)
    {
        case 0:
            return { threeSiteWater() };
        case 1:
            return { fourSiteWater() };
        case 2:
            return { ion(1), ion(-1) };
        case 3:
            return { ion(uniform(random, -1, 1)), ion(uniform(random, -1, 1)) };
        case 4:
            return { threeSiteWater(), ion(1), threeSiteWater(), ion(-1) };
        case 5:
            return { ion(0), ion(0), ion(0.4), ion(0), ion(-0.4) };
        case 6:
        {
            const double d = chance(random, 0.3) ? 0 : logUniform(random, 1e-4, 0.02);
            return { { { { 0, 0, 0 }, { d, 0, 0 } }, { 3.5, -2.5 } },
                     { { { 0, 0, 0 }, { d, 0, 0 } }, { 1.5, -2.5 } } };
        }
        default:
            return { ion(2), ion(-1), ion(-1) };
    }
}

//! Whole molecules at any image of the box.
void moveToImages(std::mt19937& random, System* system)
{
    const double reach = chance(random, 0.3) ? 50 : 1.5;
    for (const auto& members : moleculesOf(*system))
    {
        const Vector shift = combine(system->box,
                                     std::round(uniform(random, -reach, reach)),
                                     std::round(uniform(random, -reach, reach)),
                                     std::round(uniform(random, -reach, reach)));
        for (const int i : members)
        {
            system->positions[i] = plus(system->positions[i], shift);
        }
    }
}

//! A crystal whose ions are at their sites, or next to them: forces cancel.
System randomCrystal(std::mt19937& random, int mostIons)
{
    static constexpr double c_ions[] = { 8, 2, 8, 12 }; // in a cell
    const int kind                   = below(random, 4);
    const double most                = std::max(1.0, std::cbrt(mostIons / c_ions[kind]));
    const int cells       = static_cast<int>(logUniform(random, 1, most + 1)); // small ones often
    const double distance = logUniform(random, 0.2, chance(random, 0.8) ? 1 : 30);
    System system         = kind == 0   ? rockSalt(cells, distance)
                            : kind == 1 ? caesiumChloride(cells, distance)
                                        : facesAndTetrahedra(cells, 2 * distance, kind == 3);
    system.name           = "crystal";
    const double factor   = chance(random, 0.5) ? 1 : uniform(random, 0.1, 3);
    for (double& q : system.charges)
    {
        q *= factor;
    }
    if (chance(random, 0.5))
    {
        // off the faces of the box
        const Vector shift = combine(system.box, uniform(random), uniform(random), uniform(random));
        for (Vector& x : system.positions)
        {
            x = plus(x, shift);
        }
    }
    return chance(random, 0.5) ? system : displaced(system, logUniform(random, 1e-6, 1e-2), random);
}

} // namespace

System randomSystem(std::mt19937& random, int most)
{
    if (chance(random, 0.1))
    {
        return randomCrystal(random, most);
    }
    // Many sizes, small ones often: they are as likely to show a fault, and faster.
    const int n =
            static_cast<int>(chance(random, 0.05) ? uniform(random, 0, 4)
                                                  : logUniform(random, 2, std::max(3, most + 1)));
    // A box around n sites of a density between that of a liquid and nothing.
    const double density =
            chance(random, 0.6) ? logUniform(random, 20, 110) : logUniform(random, 1e-8, 50);
    const double volume  = std::clamp(std::max(n, 1) / density, 0.03, 1e9);
    const Matrix box     = randomBox(random, volume);
    System system        = emptySystem(box);
    const double spacing = std::cbrt(volume / std::max(n, 1));
    const double closest = std::min(0.25, 0.5 * spacing);
    // What fills it, and how: at random, in a part of the box, or as clusters.
    const int kind                        = random() % 8;
    const std::vector<Molecule> molecules = randomMolecules(random, kind);
    double part                           = chance(random, 0.3) ? uniform(random, 0.02, 0.5) : 1;
    const Vector corner                   = { uniform(random), uniform(random), uniform(random) };
    const int axes = chance(random, 0.5) ? 7 : 1 + static_cast<int>(random() % 7);
    Places places(box, closest);
    const auto centre = [&]
    {
        Vector s;
        for (int k = 0; k < 3; ++k)
        {
            s[k] = corner[k] + uniform(random) * ((axes >> k) & 1 ? part : 1);
        }
        return combine(box, s[0], s[1], s[2]);
    };
    for (int m = 0; system.size() < n; ++m)
    {
        insert(&system, molecules[m % molecules.size()], 20, centre, &places, random);
    }
    if (chance(random, 0.3))
    {
        moveToImages(random, &system);
    }
    static const char* const c_names[] = { "water",      "4-site water", "ions",  "charges",
                                           "salt water", "united atoms", "drude", "2:1 salt" };
    system.name                        = c_names[kind];
    return system;
}

} // namespace test
} // namespace farfield
