/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The Ewald sum in plain loops over pairs and images; see ewald_sums.h for why there are two.
#include <cmath>

#include <limits>
#include <set>
#include <vector>

#include "ewald_sums.h"
#include "geometry.h"
#include "reference.h"

namespace farfield
{
namespace test
{

namespace
{

//! Which of the images of a displacement is the shortest.
int closestImage(const Vector& d0, const std::vector<Vector>& images)
{
    int closest     = -1;
    double shortest = std::numeric_limits<double>::max();
    for (size_t k = 0; k < images.size(); ++k)
    {
        const Vector d = { d0[0] + images[k][0], d0[1] + images[k][1], d0[2] + images[k][2] };
        if (dot(d, d) < shortest)
        {
            shortest = dot(d, d);
            closest  = static_cast<int>(k);
        }
    }
    return closest;
}

void addRealSpace(const System& system, double a, double cutoff, Evaluation* result)
{
    const int n                = system.size();
    const Matrix g             = reciprocal(system.box);
    std::vector<Vector> images = latticeVectors(
            system.box, std::max(cutoff, halfDiagonal(system.box)) + halfDiagonal(system.box));
    std::vector<std::set<int>> excluded(n);
    for (const auto& [i, j] : system.exclusions)
    {
        if (i != j)
        {
            excluded[i].insert(j);
            excluded[j].insert(i);
        }
    }
    const double longestReduced = halfDiagonal(system.box);
    double energy               = 0;
    double xi[9]                = {};
#pragma omp parallel for schedule(dynamic, 8) reduction(+ : energy, xi[:9])
    for (int i = 0; i < n; ++i)
    {
        for (int j = 0; j < n; ++j)
        {
            const Vector& xi0 = system.positions[i];
            const Vector& xj0 = system.positions[j];
            const Vector d0 =
                    reduced({ xi0[0] - xj0[0], xi0[1] - xj0[1], xi0[2] - xj0[2] }, system.box, g);
            const double qq = c_coulomb * system.charges[i] * system.charges[j];

            const int closest = excluded[i].count(j) != 0 ? closestImage(d0, images) : -1;
            for (size_t k = 0; k < images.size(); ++k)
            {
                const double reach = cutoff + longestReduced;
                if (dot(images[k], images[k]) > reach * reach && closest < static_cast<int>(k))
                {
                    break;
                }
                const Vector d  = { d0[0] + images[k][0],
                                    d0[1] + images[k][1],
                                    d0[2] + images[k][2] };
                const double r2 = dot(d, d);
                double value, slope;
                if (static_cast<int>(k) == closest)
                {
                    smoothPair(a, std::sqrt(r2), &value, &slope);
                    value = -value;
                    slope = -slope;
                }
                else if (r2 > cutoff * cutoff || (i == j && k == 0))
                {
                    continue;
                }
                else
                {
                    sharpPair(a, std::sqrt(r2), &value, &slope);
                }
                energy += 0.5 * qq * value;
                for (int p = 0; p < 3; ++p)
                {
                    const double f = qq * slope * d[p];
                    result->forces[i][p] += f;
                    for (int s = 0; s < 3; ++s)
                    {
                        xi[3 * s + p] -= 0.25 * d[s] * f;
                    }
                }
            }
        }
    }
    result->energy += energy;
    for (int s = 0; s < 9; ++s)
    {
        result->virial[s / 3][s % 3] += xi[s];
    }
}

} // namespace

Evaluation ewald(const System& system, double splitting)
{
    Evaluation result;
    const int n = system.size();
    result.forces.assign(n, Vector{});
    if (n == 0)
    {
        return result;
    }
    const double v = system.volume();
    double a       = splitting;
    if (a == 0)
    {
        // Equal cost of both sums when a real-space pair costs ten times a wave vector.
        a = std::sqrt(c_pi) * std::pow(10.0 * n / (v * v), 1.0 / 6);
    }
    addRealSpace(system, a, c_ewaldDigits / a, &result);
    addReciprocalSpace(system, a, &result);
    addSelfAndBackground(system, a, &result);
    return result;
}

} // namespace test
} // namespace farfield
