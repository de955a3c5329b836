/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Boxes of every kind and what the tests fill them with.
#include <cmath>

#include <array>
#include <random>
#include <stdexcept>

#include "geometry.h"
#include "reference.h"

namespace farfield
{
namespace test
{

std::vector<NamedBox> allBoxes(double volume)
{
    const double s2 = std::sqrt(2.0), s3 = std::sqrt(3.0), s6 = std::sqrt(6.0);
    std::vector<NamedBox> boxes = {
        { "cube", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } } },
        { "rectangular", { { { 1, 0, 0 }, { 0, 1.3, 0 }, { 0, 0, 0.8 } } } },
        { "dodecahedron_square", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0.5, 0.5, s2 / 2 } } } },
        { "dodecahedron_hexagon",
          { { { 1, 0, 0 }, { 0.5, s3 / 2, 0 }, { 0.5, s3 / 6, s6 / 3 } } } },
        { "octahedron",
          { { { 1, 0, 0 }, { 1.0 / 3, 2 * s2 / 3, 0 }, { -1.0 / 3, s2 / 3, s6 / 3 } } } },
        { "triclinic", { { { 1, 0, 0 }, { 0.21, 1.1, 0 }, { -0.37, 0.29, 0.9 } } } },
        { "flat", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 0.3 } } } },
        { "long", { { { 0.4, 0, 0 }, { 0, 0.4, 0 }, { 0, 0, 2.5 } } } },
    };
    for (auto& named : boxes)
    {
        const double scale = std::cbrt(volume / determinant(named.box));
        for (auto& row : named.box)
        {
            for (double& component : row)
            {
                component *= scale;
            }
        }
    }
    return boxes;
}

Matrix namedBox(const std::string& name, double volume)
{
    for (const auto& named : allBoxes(volume))
    {
        if (named.name == name)
        {
            return named.box;
        }
    }
    throw std::invalid_argument("no box is called " + name);
}

namespace
{

//! Whether \p x is at least \p closest from all of \p others, images included.
bool isFree(const Vector& x,
            const std::vector<Vector>& others,
            const Matrix& box,
            const Matrix& g,
            const std::vector<Vector>& images,
            double closest)
{
    for (const auto& y : others)
    {
        const Vector d0 = reduced({ x[0] - y[0], x[1] - y[1], x[2] - y[2] }, box, g);
        for (const auto& n : images)
        {
            const Vector d = { d0[0] + n[0], d0[1] + n[1], d0[2] + n[2] };
            if (dot(d, d) < closest * closest)
            {
                return false;
            }
        }
    }
    return true;
}

} // namespace

System randomCharges(const Matrix& box, int n, unsigned seed, double netCharge, double closest)
{
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    System system;
    system.name       = "random charges";
    system.box        = box;
    const Matrix g    = reciprocal(box);
    const auto images = latticeVectors(box, halfDiagonal(box) + closest);
    while (system.size() < n)
    {
        // In twice the box, so that some are outside.
        const double s[3] = { 2 * uniform(random) - 0.5,
                              2 * uniform(random) - 0.5,
                              2 * uniform(random) - 0.5 };
        const Vector x    = combine(box, s[0], s[1], s[2]);
        if (isFree(x, system.positions, box, g, images, closest))
        {
            system.positions.push_back(x);
            system.charges.push_back(2 * uniform(random) - 1);
        }
    }
    const double excess = n == 0 ? 0 : (netCharge - system.netCharge()) / n;
    for (double& q : system.charges)
    {
        q += excess;
    }
    return system;
}

System pseudoWater(const Matrix& box, unsigned seed)
{
    constexpr double c_density = 33.4; // molecules per nm^3
    constexpr double c_bond    = 0.09572;
    constexpr double c_angle   = 104.52 * c_pi / 180;
    constexpr double c_closest = 0.15;
    const double spacing       = std::cbrt(1 / c_density);

    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::normal_distribution<double> normal;
    System system;
    system.name       = "pseudo-water";
    system.box        = box;
    const Matrix g    = reciprocal(box);
    const auto images = latticeVectors(box, halfDiagonal(box) + c_closest);

    // Along each box vector as many sites as planes at the wanted distance fit.
    std::array<int, 3> sites;
    for (int k = 0; k < 3; ++k)
    {
        sites[k] = std::max(1, static_cast<int>(std::lround(1 / norm(g[k]) / spacing)));
    }
    for (int i = 0; i < sites[0]; ++i)
    {
        for (int j = 0; j < sites[1]; ++j)
        {
            for (int k = 0; k < sites[2]; ++k)
            {
                const Vector site = combine(
                        box, (i + 0.5) / sites[0], (j + 0.5) / sites[1], (k + 0.5) / sites[2]);
                Vector o, h1, h2;
                for (int attempt = 0; attempt < 100; ++attempt)
                {
                    // Enough to leave no trace of the grid, which cells might be commensurate with.
                    for (int c = 0; c < 3; ++c)
                    {
                        o[c] = site[c] + 0.06 * uniform(random);
                    }
                    Vector u        = { normal(random), normal(random), normal(random) };
                    Vector w        = cross(u, { normal(random), normal(random), normal(random) });
                    const double lu = norm(u), lw = norm(w);
                    for (int c = 0; c < 3; ++c)
                    {
                        u[c] *= c_bond * std::cos(c_angle / 2) / lu;
                        w[c] *= c_bond * std::sin(c_angle / 2) / lw;
                        h1[c] = o[c] + u[c] + w[c];
                        h2[c] = o[c] + u[c] - w[c];
                    }
                    if (isFree(o, system.positions, box, g, images, c_closest)
                        && isFree(h1, system.positions, box, g, images, c_closest)
                        && isFree(h2, system.positions, box, g, images, c_closest))
                    {
                        break;
                    }
                }
                const int first = system.size();
                for (const auto& x : { o, h1, h2 })
                {
                    system.positions.push_back(x);
                }
                for (const double q : { -0.834, 0.417, 0.417 })
                {
                    system.charges.push_back(q);
                }
                system.exclusions.emplace_back(first, first + 1);
                system.exclusions.emplace_back(first, first + 2);
                system.exclusions.emplace_back(first + 1, first + 2);
            }
        }
    }
    return system;
}

System rockSalt(int n, double distance)
{
    System system;
    system.name = "rock salt";
    for (int k = 0; k < 3; ++k)
    {
        system.box[k][k] = 2 * n * distance;
    }
    for (int i = 0; i < 2 * n; ++i)
    {
        for (int j = 0; j < 2 * n; ++j)
        {
            for (int k = 0; k < 2 * n; ++k)
            {
                system.positions.push_back({ i * distance, j * distance, k * distance });
                system.charges.push_back((i + j + k) % 2 == 0 ? 1 : -1);
            }
        }
    }
    return system;
}

System caesiumChloride(int n, double distance)
{
    System system;
    const double edge = 2 * distance / std::sqrt(3.0);
    system.name       = "caesium chloride";
    for (int k = 0; k < 3; ++k)
    {
        system.box[k][k] = n * edge;
    }
    for (int i = 0; i < n; ++i)
    {
        for (int j = 0; j < n; ++j)
        {
            for (int k = 0; k < n; ++k)
            {
                system.positions.push_back({ i * edge, j * edge, k * edge });
                system.charges.push_back(1);
                system.positions.push_back(
                        { (i + 0.5) * edge, (j + 0.5) * edge, (k + 0.5) * edge });
                system.charges.push_back(-1);
            }
        }
    }
    return system;
}

} // namespace test
} // namespace farfield
