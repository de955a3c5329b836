/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <cmath>

#include <algorithm>

#include "system_building.h"
#include "systems.h"

namespace farfield
{
namespace test
{

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
            sites = placed(molecule, combine(box, s[0], s[1], s[2]), rotation(random));
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
            const Vector shift = combine(box,
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
