/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "bench_systems.h"

namespace farfield
{
namespace bench
{
namespace
{

//! Orders molecules along a path through space: layers of rows, to and fro.
std::vector<int> alongPath(const System& water, const std::vector<int>& molecules)
{
    constexpr double c_spacing = 0.31; // nm
    const auto place           = [&](int molecule)
    {
        const double* r = water.x.data() + 9 * static_cast<size_t>(molecule);
        const int layer = static_cast<int>(std::floor(r[2] / c_spacing));
        int row         = static_cast<int>(std::floor(r[1] / c_spacing));
        row             = layer % 2 == 0 ? row : -row;
        return std::make_tuple(layer, row, (layer + row) % 2 == 0 ? r[0] : -r[0]);
    };
    std::vector<int> path = molecules;
    std::sort(path.begin(), path.end(), [&](int a, int b) { return place(a) < place(b); });
    return path;
}

//! Partners within three bonds of each atom, ascending, as compressed rows.
void excludeNeighbours(const std::vector<std::vector<int>>& bonds, System* system)
{
    constexpr int c_bonds = 3;
    system->offsets.assign(1, 0);
    system->partners.clear();
    for (int i = 0; i < static_cast<int>(bonds.size()); i++)
    {
        std::vector<int> reached = { i };
        for (int bond = 0; bond < c_bonds; bond++)
        {
            for (size_t k = 0, end = reached.size(); k < end; k++)
            {
                reached.insert(reached.end(), bonds[reached[k]].begin(), bonds[reached[k]].end());
            }
            std::sort(reached.begin(), reached.end());
            reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
        }
        std::copy_if(reached.begin(),
                     reached.end(),
                     std::back_inserter(system->partners),
                     [i](int j) { return j != i; });
        system->offsets.push_back(static_cast<int>(system->partners.size()));
    }
}

} // namespace

System proteinInWater(int atoms, double fraction, unsigned seed)
{
    const System water  = waterBox(atoms, seed);
    const int molecules = water.size() / 3;
    // the molecules nearest to the centre become one
    const double centre = 0.5 * water.box[0][0];
    const auto distance = [&](int molecule)
    {
        double sum = 0;
        for (int k = 0; k < 3; k++)
        {
            sum += std::pow(water.x[9 * static_cast<size_t>(molecule) + k] - centre, 2);
        }
        return sum;
    };
    std::vector<int> order(molecules);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return distance(a) < distance(b); });
    const int joined = static_cast<int>(fraction * molecules);
    std::vector<int> chain(order.begin(), order.begin() + joined);
    std::vector<int> others(order.begin() + joined, order.end());
    chain = alongPath(water, chain);
    std::sort(others.begin(), others.end());

    System system;
    std::copy_n(&water.box[0][0], 9, &system.box[0][0]);
    system.name = "protein in water";
    std::vector<std::vector<int>> bonds;
    const auto add = [&](int molecule, bool isJoined)
    {
        const int first = system.size();
        for (size_t k = 9 * static_cast<size_t>(molecule);
             k < 9 * static_cast<size_t>(molecule) + 9;
             k++)
        {
            system.x.push_back(water.x[k]);
        }
        for (int site = 0; site < 3; site++)
        {
            system.q.push_back(water.q[3 * static_cast<size_t>(molecule) + site]);
        }
        bonds.push_back({ first + 1, first + 2 });
        bonds.push_back({ first });
        bonds.push_back({ first });
        if (isJoined && first > 0)
        {
            bonds[first].push_back(first - 3);
            bonds[first - 3].push_back(first);
        }
    };
    for (const int molecule : chain)
    {
        add(molecule, true);
    }
    for (const int molecule : others)
    {
        add(molecule, false);
    }
    excludeNeighbours(bonds, &system);
    return system;
}

} // namespace bench
} // namespace farfield
