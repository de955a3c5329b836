/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "expectation.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <vector>

#include "geometry.h"
#include "open_systems.h"
#include "slab_sum.h"
#include "systems.h"

namespace farfield
{
namespace test
{

double convergenceRatio(const Matrix& box, const Setup& setup)
{
    const auto length = [](const Vector& v)
    { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); };
    const auto& h = setup.cells;
    Matrix cell   = box; // H^-1 B by forward substitution
    for (int i = 0; i < 3; ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            for (int j = 0; j < i; ++j)
            {
                cell[i][k] -= h[i][j] * cell[j][k];
            }
            cell[i][k] /= std::max(1, h[i][i]);
        }
    }
    const auto combined = [&](int a, int b, int c)
    {
        Vector v;
        for (int k = 0; k < 3; ++k)
        {
            v[k] = a * cell[0][k] + b * cell[1][k] + c * cell[2][k];
        }
        return length(v);
    };
    const double diagonal = std::max(
            { combined(1, 1, 1), combined(1, 1, -1), combined(1, -1, 1), combined(1, -1, -1) });
    const int far  = setup.directRange + 1;
    double nearest = std::numeric_limits<double>::max();
    for (int a = -far; a <= far; ++a)
    {
        for (int b = -far; b <= far; ++b)
        {
            for (int c = -far; c <= far; ++c)
            {
                if (std::max({ std::abs(a), std::abs(b), std::abs(c) }) == far)
                {
                    nearest = std::min(nearest, combined(a, b, c));
                }
            }
        }
    }
    return diagonal / nearest;
}

namespace
{

//! Energy, forces and virial, and the sums of |force| of pairs of each particle.
Evaluation exactly(const System& system, Boundary boundary, std::vector<double>* magnitudes)
{
    if (boundary == Boundary::Open)
    {
        return allPairs(system, magnitudes);
    }
    if (boundary == Boundary::Periodic || system.size() == 0)
    {
        return fastEwald(system, 0, magnitudes);
    }
    // images of a slab have no field beyond exp(-36)
    const Vector& a = system.box[0];
    const Vector& b = system.box[1];
    return stackedSlabs(system, 6 * std::max(a[0], std::hypot(b[0], b[1])), magnitudes);
}

} // namespace

System inVolume(const System& system, Boundary boundary)
{
    return boundary == Boundary::Periodic ? system
                                          : withEdges(system, boundary == Boundary::Slab ? 2 : 0);
}

Expectation expectationFor(const System& system, Boundary boundary, double leastPart)
{
    Expectation result;
    std::vector<double> magnitudes;
    result.value   = exactly(system, boundary, &magnitudes);
    const int n    = system.size();
    double squares = 0;
    for (const auto& [i, j] : system.exclusions)
    {
        // What a solver may add and take away again; closer pairs it has to leave out.
        const Vector& a = system.positions[i];
        const Vector& b = system.positions[j];
        const double r =
                std::max(0.03,
                         std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])
                                   + (a[2] - b[2]) * (a[2] - b[2])));
        const double qq = c_coulomb * std::abs(system.charges[i] * system.charges[j]);
        magnitudes[i] += qq / (r * r);
        magnitudes[j] += qq / (r * r);
        result.pairEnergies += qq / r;
    }
    for (const double m : magnitudes)
    {
        squares += m * m;
    }
    result.forceMagnitude = n == 0 ? 0 : std::sqrt(squares / n);
    result.pairEnergies += n * c_coulomb * system.meanSquareCharge() / 0.2;
    result.pairEnergies += std::abs(result.value.energy);
    if (boundary == Boundary::Slab)
    {
        // planes of charges, which need not cancel
        const double charge = n * std::sqrt(system.meanSquareCharge());
        result.pairEnergies += 2 * c_pi * c_coulomb * charge * charge * system.box[2][2]
                               / (system.box[0][0] * system.box[1][1]);
    }
    result.scale = forceScale(inVolume(system, boundary), result.value.forces, leastPart);
    // Two splittings agree to this, see FastEwald.BoundsItsOwnErrorInEveryKindOfSystem.
    result.forceError = 64 * std::numeric_limits<double>::epsilon() * result.forceMagnitude;
    return result;
}

} // namespace test
} // namespace farfield
