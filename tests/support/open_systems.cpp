/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "open_systems.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>

namespace farfield
{
namespace test
{

Evaluation allPairs(const System& system, std::vector<double>* magnitudes)
{
    std::vector<double> sums(system.size(), 0.0);
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : system.exclusions)
    {
        excluded.insert({ std::min(i, j), std::max(i, j) });
    }
    Evaluation result;
    result.forces.resize(system.size());
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = i + 1; j < system.size(); ++j)
        {
            const double qq = c_coulomb * system.charges[i] * system.charges[j];
            if (qq == 0 || excluded.count({ i, j }) > 0)
            {
                continue;
            }
            Vector d;
            for (int k = 0; k < 3; ++k)
            {
                d[k] = system.positions[i][k] - system.positions[j][k];
            }
            const double r      = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            const double energy = qq / r;
            result.energy += energy;
            sums[i] += std::abs(energy) / r;
            sums[j] += std::abs(energy) / r;
            for (int a = 0; a < 3; ++a)
            {
                const double force = energy * d[a] / (r * r);
                result.forces[i][a] += force;
                result.forces[j][a] -= force;
                for (int b = 0; b < 3; ++b)
                {
                    result.virial[a][b] -= 0.5 * energy * d[a] * d[b] / (r * r);
                }
            }
        }
    }
    if (magnitudes != nullptr)
    {
        *magnitudes = sums;
    }
    return result;
}

double energyError(const std::vector<Vector>& forces, double accuracy)
{
    const double n = static_cast<double>(forces.size());
    return accuracy * rootMeanSquare(forces) * c_molecularDistance * std::sqrt(n);
}

System molecules(const std::string& name, const Vector& origin, const int (&counts)[3], double net)
{
    std::mt19937 random(11);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    System system;
    system.name = name;
    for (int x = 0; x < counts[0]; ++x)
    {
        for (int y = 0; y < counts[1]; ++y)
        {
            for (int z = 0; z < counts[2]; ++z)
            {
                const int first     = system.size();
                const Vector centre = {
                    origin[0] + c_molecularDistance * (x + 0.2 * uniform(random)),
                    origin[1] + c_molecularDistance * (y + 0.2 * uniform(random)),
                    origin[2] + c_molecularDistance * (z + 0.2 * uniform(random))
                };
                for (const double charge : { -0.82 + net, 0.41, 0.41 })
                {
                    Vector r = centre;
                    for (int k = 0; k < 3 && system.size() > first; ++k)
                    {
                        r[k] += 0.16 * uniform(random);
                    }
                    system.positions.push_back(r);
                    system.charges.push_back(charge);
                }
                system.exclusions.push_back({ first, first + 1 });
                system.exclusions.push_back({ first + 2, first });
                system.exclusions.push_back({ first + 1, first + 2 });
            }
        }
    }
    return system;
}

System film(const std::string& name, const int (&counts)[3], double skew, double net)
{
    constexpr double c_nan = std::numeric_limits<double>::quiet_NaN();
    System system          = molecules(name, { 0.1, 0.1, -0.4 }, counts, net);
    system.box             = { { { counts[0] * c_molecularDistance, 0, 0 },
                                 { skew * counts[0] * c_molecularDistance, counts[1] * c_molecularDistance, 0 },
                                 { c_nan, c_nan, -1 } } };
    return system;
}

System spread(const System& molecules, double scale, const Vector& shift)
{
    System moved = molecules;
    for (size_t i = 0; i < moved.positions.size(); ++i)
    {
        const Vector& site = molecules.positions[i / 3 * 3];
        for (int k = 0; k < 3; ++k)
        {
            moved.positions[i][k] += (scale - 1) * site[k] + shift[k];
        }
    }
    return moved;
}

} // namespace test
} // namespace farfield
