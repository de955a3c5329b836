/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "slab_sum.h"

#include <cmath>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ewald_sums.h"
#include "fast_ewald.h"
#include "geometry.h"

namespace farfield
{
namespace test
{

namespace
{

//! exp(G z) erfc(G/2a + a z), wherever its factors would be too large or too small for a number.
double screened(double G, double a, double z)
{
    const double u = G / (2 * a) + a * z;
    if (z <= 0)
    {
        return std::exp(G * z) * std::erfc(u);
    }
    const double gaussian = std::exp(-G * G / (4 * a * a) - a * a * z * z);
    return gaussian * (u < 25 ? std::exp(u * u) * std::erfc(u) : 1 / (std::sqrt(c_pi) * u));
}

//! Multiples of the first two box vectors that may lead from a reduced displacement to short ones.
struct PlaneVectors
{
    std::vector<Vector> images, waves;

    PlaneVectors(const Matrix& box, double cutoff, double longestWave)
    {
        const double ax = box[0][0], bx = box[1][0], by = box[1][1];
        const int mostB = static_cast<int>(cutoff / by) + 2;
        const int mostA = static_cast<int>((cutoff + mostB * std::abs(bx)) / ax) + 2;
        for (int b = -mostB; b <= mostB; ++b)
        {
            for (int a = -mostA; a <= mostA; ++a)
            {
                images.push_back({ a * ax + b * bx, b * by, 0 });
            }
        }
        // rows of the inverse's transpose
        const double gx = 2 * c_pi / ax, gy = 2 * c_pi / by;
        const int mostX = static_cast<int>(longestWave / gx) + 1;
        for (int x = -mostX; x <= mostX; ++x)
        {
            const double shear = -bx / ax * x;
            const int mostY    = static_cast<int>(longestWave / gy + std::abs(shear)) + 1;
            for (int y = -mostY; y <= mostY; ++y)
            {
                const Vector G = { gx * x, gy * (y + shear), 0 };
                if (dot(G, G) <= longestWave * longestWave && (x != 0 || y != 0))
                {
                    waves.push_back(G);
                }
            }
        }
    }
};

} // namespace

Evaluation slabSum(const System& system, double splitting)
{
    const double a      = splitting;
    const double cutoff = c_ewaldDigits / a;
    const PlaneVectors vectors(system.box, cutoff, 2 * a * c_ewaldDigits);
    const double area = system.box[0][0] * system.box[1][1];
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : system.exclusions)
    {
        excluded.insert({ std::min(i, j), std::max(i, j) });
    }
    Evaluation result;
    result.forces.resize(system.size());
    double energy = 0;
    std::vector<double> sums(3 * static_cast<size_t>(system.size()), 0.0);
    double* forces   = sums.data();
    const int values = 3 * system.size();
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : energy, forces[:values])
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = i; j < system.size(); ++j)
        {
            const double qq   = c_coulomb * system.charges[i] * system.charges[j];
            const auto& from  = system.positions[j];
            const Vector& to  = system.positions[i];
            Vector d          = { to[0] - from[0], to[1] - from[1], to[2] - from[2] };
            const double rows = std::round(d[1] / system.box[1][1]);
            d[1] -= rows * system.box[1][1];
            d[0] -= rows * system.box[1][0];
            d[0] -= system.box[0][0] * std::round(d[0] / system.box[0][0]);
            Vector force       = {};
            double value       = 0;
            const auto addPair = [&](const Vector& r, double v, double slope)
            {
                value += v;
                for (int k = 0; k < 3; ++k)
                {
                    force[k] += slope * r[k];
                }
            };
            const Vector* left  = nullptr; // image of an excluded pair
            const auto lengthOf = [&](const Vector& image) {
                return std::sqrt(std::pow(d[0] + image[0], 2) + std::pow(d[1] + image[1], 2)
                                 + d[2] * d[2]);
            };
            if (i != j && excluded.count({ std::min(i, j), std::max(i, j) }) > 0)
            {
                left = &*std::min_element(vectors.images.begin(),
                                          vectors.images.end(),
                                          [&](const Vector& u, const Vector& w)
                                          { return lengthOf(u) < lengthOf(w); });
            }
            for (const Vector& image : vectors.images)
            {
                const Vector r      = { d[0] + image[0], d[1] + image[1], d[2] };
                const double length = lengthOf(image);
                double v, slope;
                if (&image == left)
                {
                    smoothPair(a, length, &v, &slope);
                    addPair(r, -v, -slope);
                }
                else if (length < cutoff && !(i == j && image[0] == 0 && image[1] == 0))
                {
                    sharpPair(a, length, &v, &slope);
                    addPair(r, v, slope);
                }
            }
            for (const Vector& G : vectors.waves)
            {
                const double length = std::sqrt(dot(G, G));
                if (length * std::abs(d[2]) > c_ewaldDigits * c_ewaldDigits + 2)
                {
                    continue;
                }
                const double up = screened(length, a, d[2]), down = screened(length, a, -d[2]);
                const double phase = G[0] * d[0] + G[1] * d[1];
                value += c_pi / area * std::cos(phase) * (up + down) / length;
                for (int k = 0; k < 2; ++k)
                {
                    force[k] += c_pi / area * G[k] * std::sin(phase) * (up + down) / length;
                }
                force[2] -= c_pi / area * std::cos(phase) * (up - down);
            }
            value -= 2 * std::sqrt(c_pi) / area
                     * (std::exp(-a * a * d[2] * d[2]) / a
                        + std::sqrt(c_pi) * d[2] * std::erf(a * d[2]));
            force[2] += 2 * c_pi / area * std::erf(a * d[2]);
            energy += (i == j ? 0.5 : 1) * qq * value;
            for (int k = 0; k < 3; ++k)
            {
                forces[3 * i + k] += qq * force[k];
                forces[3 * j + k] -= qq * force[k];
            }
        }
        energy -= c_coulomb * a / std::sqrt(c_pi) * system.charges[i] * system.charges[i];
    }
    result.energy = energy;
    for (int i = 0; i < values; ++i)
    {
        result.forces[i / 3][i % 3] = sums[i];
    }
    return result;
}

Matrix virialOfSlab(const System& system, double splitting)
{
    constexpr double c_step = 1e-4;
    Matrix virial           = {};
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j <= i; ++j)
        {
            // lower triangular strains leave the box so
            const auto energyAt = [&](double step)
            {
                Matrix strain = unitMatrix();
                strain[i][j] += step;
                return slabSum(deformed(system, strain), splitting).energy;
            };
            // of the fourth order
            const double slope = (8 * (energyAt(c_step) - energyAt(-c_step))
                                  - (energyAt(2 * c_step) - energyAt(-2 * c_step)))
                                 / (12 * c_step);
            virial[i][j] = virial[j][i] = 0.5 * slope;
        }
    }
    return virial;
}

Evaluation stackedSlabs(const System& system, double vacuum, std::vector<double>* magnitudes)
{
    const auto isLower = [](const Vector& a, const Vector& b) { return a[2] < b[2]; };
    const auto [least, most] =
            std::minmax_element(system.positions.begin(), system.positions.end(), isLower);
    const double middle = 0.5 * ((*least)[2] + (*most)[2]);
    System stacked      = shifted(system, { 0, 0, -middle });
    // of an excluded pair the image along z must not be the closer one
    const double thickness = (*most)[2] - (*least)[2];
    stacked.box[2]         = { 0, 0, std::max(thickness + vacuum, 2.5 * thickness) };
    Evaluation result      = fastEwald(stacked, 0, magnitudes);
    // Moments of the charge, and what the planes of images and of background have too much
    double net = 0, dipole = 0, square = 0;
    for (int i = 0; i < system.size(); ++i)
    {
        const double z = stacked.positions[i][2];
        net += system.charges[i];
        dipole += system.charges[i] * z;
        square += system.charges[i] * z * z;
    }
    const double factor = 2 * c_pi / stacked.volume() * c_coulomb;
    const double height = stacked.box[2][2];
    const double energy =
            factor * (dipole * dipole - net * square - net * net * height * height / 12);
    result.energy += energy;
    Vector first = {}; // sum of z f
    for (int i = 0; i < system.size(); ++i)
    {
        const double z = stacked.positions[i][2];
        result.forces[i][2] -= 2 * factor * system.charges[i] * (dipole - net * z);
        for (int k = 0; k < 3; ++k)
        {
            first[k] += z * result.forces[i][k];
        }
    }
    // The area is a part of the correction; nothing is periodic along z
    result.virial[0][0] -= 0.5 * energy;
    result.virial[1][1] -= 0.5 * energy;
    for (int k = 0; k < 3; ++k)
    {
        result.virial[2][k] = result.virial[k][2] = -0.5 * first[k];
    }
    return result;
}

} // namespace test
} // namespace farfield
