/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near_sum.h"

#include <cmath>

#include <algorithm>
#include <array>
#include <complex>
#include <set>

#include "geometry.h"

namespace farfield
{
namespace test
{
namespace
{

//! 2/sqrt(pi)
const long double c_edge = 2 / std::sqrt(std::acos(-1.0L));

//! The images of r_i - r_j in the box and in those beside it, nm; that in the box is in the middle.
struct NearImages
{
    std::array<Vector, 27> all;
    int count;

    const Vector* begin() const { return all.data(); }
    const Vector* end() const { return all.data() + count; }
};

NearImages nearImages(const System& system, int images, int i, int j)
{
    Vector d;
    for (int k = 0; k < 3; ++k)
    {
        d[k] = system.positions[i][k] - system.positions[j][k];
    }
    const auto shift = [&](Vector from, int axis, double by)
    {
        for (int k = 0; k < 3; ++k)
        {
            from[k] += by * system.box[axis][k];
        }
        return from;
    };
    for (int axis = images - 1; axis >= 0; --axis)
    {
        d = shift(d, axis, -std::round(d[axis] / system.box[axis][axis]));
    }
    NearImages result;
    result.count = images == 0 ? 1 : images == 2 ? 9 : 27;
    for (int n = 0; n < result.count; ++n)
    {
        Vector trial = d;
        for (int axis = 0, rest = n; axis < images; ++axis, rest /= 3)
        {
            trial = shift(trial, axis, rest % 3 - 1);
        }
        result.all[n] = trial;
    }
    return result;
}

bool isShorter(const Vector& a, const Vector& b)
{
    return dot(a, a) < dot(b, b);
}

} // namespace

Vector nearestImage(const System& system, int images, int i, int j)
{
    const NearImages near = nearImages(system, images, i, j);
    Vector best           = near.all[near.count / 2];
    for (const Vector& image : near)
    {
        best = isShorter(image, best) ? image : best;
    }
    return best;
}

bool hasTwoNearestImages(const System& system, int images, int i, int j, double rounding)
{
    const NearImages near = nearImages(system, images, i, j);
    if (near.count == 1)
    {
        return false;
    }
    std::array<Vector, 2> nearest;
    std::partial_sort_copy(near.begin(), near.end(), nearest.begin(), nearest.end(), isShorter);
    double largest = 0;
    for (int k = 0; k < 3; ++k)
    {
        largest = std::max({ largest,
                             std::abs(system.positions[i][k]),
                             std::abs(system.positions[j][k]),
                             std::abs(system.box[k][k]) });
    }
    return std::sqrt(dot(nearest[1], nearest[1])) - std::sqrt(dot(nearest[0], nearest[0]))
           <= rounding * largest;
}

NearTerms smearedPair(long double r, long double b)
{
    const long double edge = c_edge / b, x = r / b;
    if (x < 1e-4L)
    {
        return { edge * (1 - x * x / 3), edge / (b * b) * (2.0L / 3 - 2 * x * x / 5) };
    }
    const long double value = std::erf(x) / r;
    return { value, (value - edge * std::exp(-x * x)) / (r * r) };
}

NearTerms tholePair(long double r, long double b)
{
    const long double x = r / b, decay = std::exp(-x);
    if (x < 1e-3L)
    {
        const long double cube = b * b * b;
        return { (0.5L - x * x / 12 + x * x * x / 24) / b,
                 (1.0L / 6 - x / 8 + x * x / 20 - x * x * x / 72) / cube };
    }
    return { (1 - (1 + x / 2) * decay) / r, (1 - (1 + x + x * x / 2) * decay) / (r * r * r) };
}

NearTerms softCorePair(long double r, long double b)
{
    const long double sum = std::pow(b, 6) + std::pow(r, 6);
    return { std::pow(sum, -1.0L / 6), std::pow(r, 4) * std::pow(sum, -7.0L / 6) };
}

Evaluation withNearLaw(const System& system,
                       NearLaw law,
                       const WidthOfPair& width,
                       int images,
                       const std::function<Evaluation(const System&)>& coulomb)
{
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : system.exclusions)
    {
        excluded.emplace(std::min(i, j), std::max(i, j));
    }
    System apart = system;
    Evaluation sum;
    sum.forces.resize(system.size());
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = i + 1; j < system.size(); ++j)
        {
            const double b = width(i, j);
            if (b == 0 || excluded.count({ i, j }) > 0)
            {
                continue;
            }
            const Vector d  = nearestImage(system, images, i, j);
            const auto r    = std::sqrt(static_cast<long double>(d[0]) * d[0]
                                     + static_cast<long double>(d[1]) * d[1]
                                     + static_cast<long double>(d[2]) * d[2]);
            NearTerms terms = law(r, b);
            if (r < b)
            {
                apart.exclusions.emplace_back(i, j);
            }
            else
            {
                terms.value -= 1 / r;
                terms.slope -= 1 / (r * r * r);
            }
            const double qq = c_coulomb * system.charges[i] * system.charges[j];
            sum.energy += qq * static_cast<double>(terms.value);
            for (int k = 0; k < 3; ++k)
            {
                const double force = qq * static_cast<double>(terms.slope) * d[k];
                sum.forces[i][k] += force;
                sum.forces[j][k] -= force;
                for (int l = 0; l < 3; ++l)
                {
                    sum.virial[k][l] -= 0.5 * force * d[l];
                }
            }
        }
    }
    Evaluation result = coulomb(apart);
    result.energy += sum.energy;
    for (int i = 0; i < system.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            result.forces[i][k] += sum.forces[i][k];
        }
    }
    for (int k = 0; k < 9; ++k)
    {
        result.virial[k / 3][k % 3] += sum.virial[k / 3][k % 3];
    }
    return result;
}

Evaluation smearedEwald(const System& system, double b)
{
    const double factor = 2 * c_pi * c_coulomb / system.volume();
    const double last   = 2 * 6.5 / b; // exp(-k^2 b^2/4) is 4e-19 there
    Evaluation result;
    result.forces.resize(system.size());
    std::vector<std::complex<double>> wave(system.size());
    for (const Vector& n : latticeVectors(reciprocal(system.box), last / (2 * c_pi)))
    {
        const Vector k  = { 2 * c_pi * n[0], 2 * c_pi * n[1], 2 * c_pi * n[2] };
        const double k2 = dot(k, k);
        if (k2 == 0)
        {
            continue;
        }
        std::complex<double> total = 0;
        for (int i = 0; i < system.size(); ++i)
        {
            wave[i] = system.charges[i] * std::polar(1.0, dot(k, system.positions[i]));
            total += wave[i];
        }
        const double weight = factor * std::exp(-k2 * b * b / 4) / k2;
        const double energy = weight * std::norm(total);
        result.energy += energy;
        for (int i = 0; i < system.size(); ++i)
        {
            const double pull = 2 * weight * std::imag(std::conj(total) * wave[i]);
            for (int l = 0; l < 3; ++l)
            {
                result.forces[i][l] += pull * k[l];
            }
        }
        for (int l = 0; l < 9; ++l)
        {
            const double ofAxes = k[l / 3] * k[l % 3] / k2 * (2 + k2 * b * b / 2);
            result.virial[l / 3][l % 3] += 0.5 * energy * (ofAxes - (l % 4 == 0 ? 1 : 0));
        }
    }
    for (const double q : system.charges)
    {
        result.energy -= c_coulomb * q * q / (std::sqrt(c_pi) * b);
    }
    return result;
}

} // namespace test
} // namespace farfield
