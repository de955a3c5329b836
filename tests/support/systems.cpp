/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "systems.h"

#include <cmath>

#include <algorithm>

#include "system_building.h"

namespace farfield
{
namespace test
{

Sample supercell(const System& unit, const std::array<int, 3>& repeats)
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
        x              = plus(x,
                 combine(sample.unit.box, std::floor(s[0]), std::floor(s[1]), std::floor(s[2])),
                 -1);
        for (double& component : x)
        {
            component = round(component);
        }
    }
    sample.copies  = repeats[0] * repeats[1] * repeats[2];
    System& system = sample.system;
    const int n    = unit.size();
    system.name    = unit.name;
    for (int k = 0; k < 3; ++k)
    {
        for (int j = 0; j < 3; ++j)
        {
            system.box[k][j] = repeats[k] * sample.unit.box[k][j];
        }
    }
    // Molecules may be cut at the boundary of the unit: partners are those of the same copy, which
    // the closest image of the whole box does not always make the neighbour. The copy that is
    // closest takes its place.
    const auto copyOf = [&](int a, int b, int c)
    {
        const auto turn = [](int t, int n) { return (t % n + n) % n; };
        return (turn(a, repeats[0]) * repeats[1] + turn(b, repeats[1])) * repeats[2]
               + turn(c, repeats[2]);
    };
    for (int c = 0; c < sample.copies; ++c)
    {
        const int a = c / repeats[2] / repeats[1], b = c / repeats[2] % repeats[1],
                  d        = c % repeats[2];
        const Vector shift = combine(sample.unit.box, a, b, d);
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

System withEdges(System system, int firstOpen)
{
    constexpr double c_thinnest = 0.1;
    Vector edges                = {};
    double longest              = 0;
    for (int k = firstOpen; k < 3; ++k)
    {
        const auto isLower = [&](const Vector& a, const Vector& b) { return a[k] < b[k]; };
        const auto [least, most] =
                std::minmax_element(system.positions.begin(), system.positions.end(), isLower);
        edges[k] = least == system.positions.end() ? 0 : (*most)[k] - (*least)[k];
        longest  = std::max(longest, edges[k]);
    }
    for (int k = firstOpen; k < 3 && longest > 0; ++k)
    {
        system.box[k]    = {};
        system.box[k][k] = std::max(edges[k], c_thinnest * longest);
    }
    return system;
}

double forceScale(const System& system, const std::vector<Vector>& forces, double part)
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
    return std::max(rootMeanSquare(forces), part * typical);
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

} // namespace test
} // namespace farfield
