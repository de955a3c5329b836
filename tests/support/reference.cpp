/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "reference.h"

#include <cmath>

#include <algorithm>
#include <complex>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

namespace farfield
{
namespace test
{

namespace
{

constexpr double c_pi = 3.14159265358979323846;

double dot(const Vector& a, const Vector& b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector cross(const Vector& a, const Vector& b)
{
    return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

double norm(const Vector& a)
{
    return std::sqrt(dot(a, a));
}

double determinant(const Matrix& m)
{
    return dot(m[0], cross(m[1], m[2]));
}

//! Rows g_k with g_k . box_l = delta_kl.
Matrix reciprocal(const Matrix& box)
{
    const double v = determinant(box);
    Matrix g       = { cross(box[1], box[2]), cross(box[2], box[0]), cross(box[0], box[1]) };
    for (auto& row : g)
    {
        for (double& component : row)
        {
            component /= v;
        }
    }
    return g;
}

Vector combine(const Matrix& rows, double a, double b, double c)
{
    Vector r;
    for (int k = 0; k < 3; ++k)
    {
        r[k] = a * rows[0][k] + b * rows[1][k] + c * rows[2][k];
    }
    return r;
}

//! x minus the box vectors that bring its fractional coordinates into [-1/2, 1/2].
Vector reduced(const Vector& x, const Matrix& box, const Matrix& g)
{
    const Vector n = combine(
            box, std::round(dot(g[0], x)), std::round(dot(g[1], x)), std::round(dot(g[2], x)));
    return { x[0] - n[0], x[1] - n[1], x[2] - n[2] };
}

//! All lattice vectors no longer than \p radius.
std::vector<Vector> latticeVectors(const Matrix& box, double radius)
{
    const Matrix g = reciprocal(box);
    std::array<int, 3> range;
    std::vector<Vector> result;
    for (int k = 0; k < 3; ++k)
    {
        range[k] = static_cast<int>(std::floor(radius * norm(g[k])));
    }
    for (int i = -range[0]; i <= range[0]; ++i)
    {
        for (int j = -range[1]; j <= range[1]; ++j)
        {
            for (int k = -range[2]; k <= range[2]; ++k)
            {
                const Vector n = combine(box, i, j, k);
                if (dot(n, n) <= radius * radius)
                {
                    result.push_back(n);
                }
            }
        }
    }
    std::sort(result.begin(),
              result.end(),
              [](const Vector& a, const Vector& b) { return dot(a, a) < dot(b, b); });
    return result;
}

//! Largest length of a vector whose fractional coordinates are in [-1/2, 1/2].
double halfDiagonal(const Matrix& box)
{
    double largest = 0;
    for (int s = 0; s < 4; ++s)
    {
        const Vector d = combine(box, 0.5, (s & 1) ? 0.5 : -0.5, (s & 2) ? 0.5 : -0.5);
        largest        = std::max(largest, norm(d));
    }
    return largest;
}

//! erf(a r)/r and -(1/r) d/dr of it, also at r = 0.
void smoothPair(double a, double r, double* value, double* slope)
{
    const double x = a * r;
    if (x > 0.8)
    {
        const double gauss = 2 * a / std::sqrt(c_pi) * std::exp(-x * x);
        *value             = std::erf(x) / r;
        *slope             = (*value - gauss) / (r * r);
        return;
    }
    // erf(x) = 2/sqrt(pi) sum (-1)^n x^(2n+1) / (n! (2n+1))
    double power = 1;
    double sum = 1, derivative = 0;
    for (int n = 1; n < 25; ++n)
    {
        // power = (-1)^(n-1) x^(2n-2) / n!
        power = (n == 1) ? 1 : power * -x * x / n;
        derivative += power * 2 * n / (2 * n + 1);
        sum -= power * x * x / (2 * n + 1);
    }
    *value = 2 * a / std::sqrt(c_pi) * sum;
    *slope = 2 * a * a * a / std::sqrt(c_pi) * derivative;
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

            int closest = -1;
            if (excluded[i].count(j) != 0)
            {
                double shortest = 1e300;
                for (size_t k = 0; k < images.size(); ++k)
                {
                    const Vector d = { d0[0] + images[k][0],
                                       d0[1] + images[k][1],
                                       d0[2] + images[k][2] };
                    if (dot(d, d) < shortest)
                    {
                        shortest = dot(d, d);
                        closest  = static_cast<int>(k);
                    }
                }
            }
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
                    const double r = std::sqrt(r2);
                    value          = std::erfc(a * r) / r;
                    slope          = (value + 2 * a / std::sqrt(c_pi) * std::exp(-a * a * r2)) / r2;
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

void addReciprocalSpace(const System& system, double a, double cutoff, Evaluation* result)
{
    const int n    = system.size();
    const Matrix g = reciprocal(system.box);
    const double v = system.volume();
    std::array<int, 3> range;
    for (int k = 0; k < 3; ++k)
    {
        range[k] = static_cast<int>(std::floor(cutoff / (2 * c_pi) * norm(system.box[k])));
    }
    // e^{2 pi i m s} for every particle, one table per dimension; m >= 0 in the first.
    std::array<std::vector<double>, 3> cosines, sines;
    for (int k = 0; k < 3; ++k)
    {
        cosines[k].resize(static_cast<size_t>(range[k] + 1) * n);
        sines[k].resize(static_cast<size_t>(range[k] + 1) * n);
        for (int i = 0; i < n; ++i)
        {
            const double s = dot(g[k], system.positions[i]);
            for (int m = 0; m <= range[k]; ++m)
            {
                const double turns                         = m * (s - std::floor(s));
                const double angle                         = 2 * c_pi * (turns - std::floor(turns));
                cosines[k][static_cast<size_t>(m) * n + i] = std::cos(angle);
                sines[k][static_cast<size_t>(m) * n + i]   = std::sin(angle);
            }
        }
    }
    struct Column
    {
        int h, k;
    };
    std::vector<Column> columns;
    for (int h = 0; h <= range[0]; ++h)
    {
        for (int k = (h == 0 ? 0 : -range[1]); k <= range[1]; ++k)
        {
            columns.push_back({ h, k });
        }
    }
    double energy = 0;
    double xi[9]  = {};
#pragma omp parallel
    {
        std::vector<double> forces(3 * static_cast<size_t>(n));
        std::vector<double> re(n), im(n), wr(n), wi(n);
#pragma omp for schedule(dynamic, 1) reduction(+ : energy, xi[:9])
        for (size_t c = 0; c < columns.size(); ++c)
        {
            const int h      = columns[c].h;
            const int k      = columns[c].k;
            const double* c1 = &cosines[0][static_cast<size_t>(h) * n];
            const double* s1 = &sines[0][static_cast<size_t>(h) * n];
            const double* c2 = &cosines[1][static_cast<size_t>(std::abs(k)) * n];
            const double* s2 = &sines[1][static_cast<size_t>(std::abs(k)) * n];
            const double sk  = k < 0 ? -1 : 1;
            for (int i = 0; i < n; ++i)
            {
                re[i] = system.charges[i] * (c1[i] * c2[i] - sk * s1[i] * s2[i]);
                im[i] = system.charges[i] * (s1[i] * c2[i] + sk * c1[i] * s2[i]);
            }
            for (int l = (h == 0 && k == 0 ? 1 : -range[2]); l <= range[2]; ++l)
            {
                const Vector wave = combine(g, 2 * c_pi * h, 2 * c_pi * k, 2 * c_pi * l);
                const double k2   = dot(wave, wave);
                if (k2 > cutoff * cutoff)
                {
                    continue;
                }
                const double* c3 = &cosines[2][static_cast<size_t>(std::abs(l)) * n];
                const double* s3 = &sines[2][static_cast<size_t>(std::abs(l)) * n];
                const double sl  = l < 0 ? -1 : 1;
                double sr = 0, si = 0;
#pragma omp simd reduction(+ : sr, si)
                for (int i = 0; i < n; ++i)
                {
                    wr[i] = re[i] * c3[i] - sl * im[i] * s3[i];
                    wi[i] = im[i] * c3[i] + sl * re[i] * s3[i];
                    sr += wr[i];
                    si += wi[i];
                }
                // Both k and -k: 2 * (2 pi / V) exp(-k^2/4a^2)/k^2 |S|^2
                const double weight = c_coulomb * 4 * c_pi / v * std::exp(-k2 / (4 * a * a)) / k2;
                const double e      = weight * (sr * sr + si * si);
                energy += e;
                for (int p = 0; p < 3; ++p)
                {
                    for (int s = 0; s < 3; ++s)
                    {
                        xi[3 * p + s] += e * wave[p] * wave[s] * (1 / k2 + 1 / (4 * a * a));
                    }
                    xi[4 * p] -= 0.5 * e;
                }
                const double f0 = 2 * weight * wave[0];
                const double f1 = 2 * weight * wave[1];
                const double f2 = 2 * weight * wave[2];
                double* f       = forces.data();
#pragma omp simd
                for (int i = 0; i < n; ++i)
                {
                    const double t = wi[i] * sr - wr[i] * si;
                    f[i] += f0 * t;
                    f[n + i] += f1 * t;
                    f[2 * n + i] += f2 * t;
                }
            }
        }
#pragma omp critical
        for (int i = 0; i < n; ++i)
        {
            for (int p = 0; p < 3; ++p)
            {
                result->forces[i][p] += forces[static_cast<size_t>(p) * n + i];
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

double System::volume() const
{
    return determinant(box);
}

double System::netCharge() const
{
    double sum = 0;
    for (const double q : charges)
    {
        sum += q;
    }
    return sum;
}

double System::meanSquareCharge() const
{
    double sum = 0;
    for (const double q : charges)
    {
        sum += q * q;
    }
    return charges.empty() ? 0 : sum / size();
}

Evaluation ewald(const System& system, double splitting)
{
    constexpr double c_digits = 6; // erfc(6) = 2e-17
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
    addRealSpace(system, a, c_digits / a, &result);
    addReciprocalSpace(system, a, 2 * a * c_digits, &result);
    double squares = 0;
    for (const double q : system.charges)
    {
        squares += q * q;
    }
    const double net        = system.netCharge();
    const double background = c_coulomb * c_pi * net * net / (2 * a * a * v);
    result.energy -= c_coulomb * a / std::sqrt(c_pi) * squares + background;
    for (int p = 0; p < 3; ++p)
    {
        result.virial[p][p] += 0.5 * background;
    }
    return result;
}

double relativeError(const std::vector<Vector>& f, const std::vector<Vector>& g)
{
    double difference = 0, sum = 0;
    for (size_t i = 0; i < g.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            difference += (f[i][k] - g[i][k]) * (f[i][k] - g[i][k]);
            sum += g[i][k] * g[i][k];
        }
    }
    return difference == 0 ? 0 : std::sqrt(difference / sum);
}

double rootMeanSquare(const std::vector<Vector>& f)
{
    double sum = 0;
    for (const auto& v : f)
    {
        sum += dot(v, v);
    }
    return f.empty() ? 0 : std::sqrt(sum / f.size());
}

double largestDifference(const Matrix& a, const Matrix& b)
{
    double largest = 0;
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 3; ++j)
        {
            // A NaN must not pass.
            const double difference = std::abs(a[i][j] - b[i][j]);
            largest                 = difference <= largest ? largest : difference;
        }
    }
    return largest;
}

Matrix unitMatrix()
{
    return { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
}

Matrix multiply(const Matrix& a, const Matrix& b)
{
    Matrix c;
    for (int i = 0; i < 3; ++i)
    {
        c[i] = combine(b, a[i][0], a[i][1], a[i][2]);
    }
    return c;
}

System deformed(const System& system, const Matrix& deformation)
{
    System result = system;
    result.box    = multiply(system.box, deformation);
    for (auto& x : result.positions)
    {
        x = combine(deformation, x[0], x[1], x[2]);
    }
    return result;
}

System shifted(const System& system, const Vector& shift)
{
    System result = system;
    for (auto& x : result.positions)
    {
        for (int k = 0; k < 3; ++k)
        {
            x[k] += shift[k];
        }
    }
    return result;
}

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

namespace
{

using Complex = std::complex<double>;

constexpr int c_maxDegree = 20;

//! Regular solid harmonics r^l P_l^m e^{i m phi} / (l+m)!, m >= 0, at [l (l+1)/2 + m].
using Harmonics = std::array<Complex, (c_maxDegree + 1) * (c_maxDegree + 2) / 2>;

int at(int l, int m)
{
    return l * (l + 1) / 2 + m;
}

void fillHarmonics(const Vector& r, int degree, Harmonics* out)
{
    Harmonics& h     = *out;
    const Complex xy = { r[0], r[1] };
    const double r2  = dot(r, r);
    h[0]             = 1;
    for (int l = 1; l <= degree; ++l)
    {
        h[at(l, l)] = -xy / (2.0 * l) * h[at(l - 1, l - 1)];
        for (int m = 0; m < l; ++m)
        {
            const Complex lower = l - 2 >= m ? h[at(l - 2, m)] : 0;
            h[at(l, m)] =
                    ((2 * l - 1) * r[2] * h[at(l - 1, m)] - r2 * lower) / double((l + m) * (l - m));
        }
    }
}

Complex harmonic(const Harmonics& h, int l, int m)
{
    if (std::abs(m) > l || l < 0)
    {
        return 0;
    }
    return m >= 0 ? h[at(l, m)] : (m % 2 == 0 ? 1.0 : -1.0) * std::conj(h[at(l, -m)]);
}

//! Harmonics of b and their x, y and z derivatives, real and imaginary parts apart.
struct TargetHarmonics
{
    std::array<std::array<double, std::tuple_size<Harmonics>::value>, 4> re, im;
};

//! dR_lm/dz = R_(l-1)m, (d/dx +- i d/dy) R_lm = +-R_(l-1)(m+-1).
void fillTargetHarmonics(const Vector& b, int degree, TargetHarmonics* out)
{
    Harmonics h;
    fillHarmonics(b, degree, &h);
    for (int l = 0; l <= degree; ++l)
    {
        for (int m = 0; m <= l; ++m)
        {
            const Complex up       = harmonic(h, l - 1, m + 1);
            const Complex down     = -harmonic(h, l - 1, m - 1);
            const Complex parts[4] = { h[at(l, m)],
                                       0.5 * (up + down),
                                       Complex(0, -0.5) * (up - down),
                                       harmonic(h, l - 1, m) };
            for (int k = 0; k < 4; ++k)
            {
                out->re[k][at(l, m)] = parts[k].real();
                out->im[k][at(l, m)] = parts[k].imag();
            }
        }
    }
}

/*! The bipolar expansion for D along z, cut at l, l' <= p, for all p up to the order:
 *  sum (-1)^l' (l+l')! / D^(l+l'+1) sum_m (-1)^m R_l'm(b) conj(R_lm(a)), and its gradient in b. */
void bipolarAlongZ(double d,
                   const Vector& a,
                   const Vector& b,
                   int order,
                   double* potentials,
                   Vector* gradients)
{
    Harmonics source;
    TargetHarmonics target;
    fillHarmonics(a, order, &source);
    fillTargetHarmonics(b, order, &target);
    // Both signs of m and the factor (-1)^m go into the source.
    std::array<double, std::tuple_size<Harmonics>::value> re, im;
    for (int l = 0; l <= order; ++l)
    {
        for (int m = 0; m <= l; ++m)
        {
            const double weight = (m == 0 ? 1 : 2) * (m % 2 == 0 ? 1 : -1);
            re[at(l, m)]        = weight * source[at(l, m)].real();
            im[at(l, m)]        = weight * source[at(l, m)].imag();
        }
    }
    std::array<double, 2 * c_maxDegree + 1> factor; // j!/D^(j+1)
    factor[0] = 1 / d;
    for (int j = 1; j <= 2 * order; ++j)
    {
        factor[j] = factor[j - 1] * j / d;
    }
    std::array<double, 4> total = {};
    for (int p = 0; p <= order; ++p)
    {
        const auto add = [&](int l, int ls)
        {
            const double f = (ls % 2 == 0 ? 1 : -1) * factor[l + ls];
            for (int k = 0; k < 4; ++k)
            {
                double sum = 0;
                for (int m = 0; m <= std::min(l, ls); ++m)
                {
                    sum += target.re[k][at(ls, m)] * re[at(l, m)]
                           + target.im[k][at(ls, m)] * im[at(l, m)];
                }
                total[k] += f * sum;
            }
        };
        for (int l = 0; l < p; ++l)
        {
            add(l, p);
            add(p, l);
        }
        add(p, p);
        potentials[p] = total[0];
        gradients[p]  = { total[1], total[2], total[3] };
    }
}

//! Right-handed orthonormal rows, the third along \p d.
Matrix frameAlong(const Vector& d)
{
    Matrix frame;
    const double length = norm(d);
    frame[2]            = { d[0] / length, d[1] / length, d[2] / length };
    const Vector other  = std::abs(frame[2][0]) < 0.6 ? Vector{ 1, 0, 0 } : Vector{ 0, 1, 0 };
    frame[0]            = cross(other, frame[2]);
    const double l0     = norm(frame[0]);
    for (double& component : frame[0])
    {
        component /= l0;
    }
    frame[1] = cross(frame[2], frame[0]);
    return frame;
}

Vector rotated(const Matrix& frame, const Vector& v)
{
    return { dot(frame[0], v), dot(frame[1], v), dot(frame[2], v) };
}

} // namespace

double bipolar(const Vector& d, const Vector& a, const Vector& b, int order, Vector* gradient)
{
    std::vector<double> potentials(order + 1);
    std::vector<Vector> gradients(order + 1);
    const Matrix frame = frameAlong(d);
    bipolarAlongZ(norm(d),
                  rotated(frame, a),
                  rotated(frame, b),
                  order,
                  potentials.data(),
                  gradients.data());
    *gradient = combine(frame, gradients[order][0], gradients[order][1], gradients[order][2]);
    return potentials[order];
}

namespace
{

//! G = H^-1 B; H is lower triangular.
Matrix cellVectors(const std::array<std::array<int, 3>, 3>& cells, const Matrix& box)
{
    Matrix cell;
    for (int i = 0; i < 3; ++i)
    {
        cell[i] = box[i];
        for (int j = 0; j < i; ++j)
        {
            for (int k = 0; k < 3; ++k)
            {
                cell[i][k] -= cells[i][j] * cell[j][k];
            }
        }
        for (int k = 0; k < 3; ++k)
        {
            cell[i][k] /= cells[i][i];
        }
    }
    return cell;
}

//! predictTruncation() for one particle per cell.
Truncation computeTruncation(const std::array<std::array<int, 3>, 3>& cells,
                             const Matrix& box,
                             int directRange,
                             int maxOrder)
{
    const Matrix cell = cellVectors(cells, box);
    // Far displacements, grouped by the cell of the box that they lead to.
    std::map<std::array<int, 3>, std::vector<Vector>> classes;
    const int reach = directRange + 3;
    for (int i = -reach; i <= reach; ++i)
    {
        for (int j = -reach; j <= reach; ++j)
        {
            for (int k = -reach; k <= reach; ++k)
            {
                if (std::max({ std::abs(i), std::abs(j), std::abs(k) }) > directRange)
                {
                    std::array<int, 3> index = { i, j, k };
                    for (int r = 2; r >= 0; --r)
                    {
                        const int turns =
                                static_cast<int>(std::floor(double(index[r]) / cells[r][r]));
                        for (int s = 0; s <= r; ++s)
                        {
                            index[s] -= turns * cells[r][s];
                        }
                    }
                    classes[index].push_back(combine(cell, i, j, k));
                }
            }
        }
    }
    std::vector<std::vector<Vector>> groups;
    double nearest = 1e300;
    for (auto& entry : classes)
    {
        groups.push_back(entry.second);
        for (const auto& d : entry.second)
        {
            nearest = std::min(nearest, dot(d, d));
        }
    }
    const int n = maxOrder + 1;
    std::vector<double> force(n), potential(n), mean(n);
    std::mt19937 seeds(20240607);
    std::vector<unsigned> seed(groups.size());
    for (auto& s : seed)
    {
        s = seeds();
    }
    double* const force0     = force.data();
    double* const potential0 = potential.data();
    double* const mean0      = mean.data();
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : force0[:n], potential0[:n], mean0[:n])
    for (size_t c = 0; c < groups.size(); ++c)
    {
        // Random pairs (a, b). Rare pairs in corners of the nearest far cells make most of the
        // error: sampled more often than they occur, by a density 1 / (2 v) at 1/2 (1 - v^2).
        double shortest = 1e300;
        for (const auto& d : groups[c])
        {
            shortest = std::min(shortest, dot(d, d));
        }
        const int tier    = shortest < 1.15 * nearest ? 768 : shortest < 1.6 * nearest ? 192 : 6;
        const int members = static_cast<int>(groups[c].size());
        // With many images in a group there are few groups, and the images sample each other.
        const int samples = members == 1 ? tier : std::max(96, tier / members);
        std::mt19937 random(seed[c]);
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::vector<double> phi(n), sumPhi(n);
        std::vector<Vector> grad(n), sumGrad(n);
        for (int s = 0; s < samples; ++s)
        {
            double u[6];
            double weight = 1.0 / samples;
            for (double& coordinate : u)
            {
                const double v = uniform(random);
                coordinate     = std::copysign(0.5 * (1 - v * v), v);
                weight *= 2 * std::abs(v);
            }
            const Vector a = combine(cell, u[0], u[1], u[2]);
            const Vector b = combine(cell, u[3], u[4], u[5]);
            std::fill(sumPhi.begin(), sumPhi.end(), 0);
            std::fill(sumGrad.begin(), sumGrad.end(), Vector{});
            for (const auto& d : groups[c])
            {
                const Matrix frame = frameAlong(d);
                const Vector ra = rotated(frame, a), rb = rotated(frame, b);
                const double length = norm(d);
                bipolarAlongZ(length, ra, rb, maxOrder, phi.data(), grad.data());
                const Vector r  = { rb[0] - ra[0], rb[1] - ra[1], length + rb[2] - ra[2] };
                const double r1 = norm(r);
                for (int p = 0; p < n; ++p)
                {
                    sumPhi[p] += phi[p] - 1 / r1;
                    // Images have different frames: back to the box axes before adding.
                    const Vector e    = { grad[p][0] + r[0] / (r1 * r1 * r1),
                                          grad[p][1] + r[1] / (r1 * r1 * r1),
                                          grad[p][2] + r[2] / (r1 * r1 * r1) };
                    const Vector back = combine(frame, e[0], e[1], e[2]);
                    for (int k = 0; k < 3; ++k)
                    {
                        sumGrad[p][k] += back[k];
                    }
                }
            }
            for (int p = 0; p < n; ++p)
            {
                force0[p] += weight * dot(sumGrad[p], sumGrad[p]);
                potential0[p] += weight * sumPhi[p] * sumPhi[p];
                mean0[p] += weight * sumPhi[p];
            }
        }
    }
    Truncation result;
    for (int p = 0; p < n; ++p)
    {
        result.force.push_back(std::sqrt(force[p]));
        result.potential.push_back(std::sqrt(potential[p]));
        result.meanPotential.push_back(mean[p]);
    }
    return result;
}

} // namespace

Truncation predictTruncation(const std::array<std::array<int, 3>, 3>& cells,
                             const Matrix& box,
                             int directRange,
                             double perCell,
                             int maxOrder)
{
    // Many evaluations share their cells; a computation holds for all lower orders.
    static std::map<std::tuple<std::array<std::array<int, 3>, 3>, Matrix, int>, Truncation> known;
    Truncation& entry = known[std::make_tuple(cells, box, directRange)];
    if (static_cast<int>(entry.force.size()) <= maxOrder)
    {
        entry = computeTruncation(cells, box, directRange, maxOrder);
    }
    Truncation result = entry;
    for (int p = 0; p <= maxOrder; ++p)
    {
        result.force[p] *= std::sqrt(perCell);
        result.potential[p] *= std::sqrt(perCell);
        result.meanPotential[p] *= perCell;
    }
    return result;
}

Evaluation truncationError(const System& system,
                           const std::array<std::array<int, 3>, 3>& cells,
                           int directRange,
                           int order)
{
    const int n       = system.size();
    const int reach   = directRange + 4;
    const Matrix cell = cellVectors(cells, system.box);
    const Matrix g    = reciprocal(cell);
    std::vector<std::array<int, 3>> index(n);
    std::vector<Vector> offset(n);
    for (int i = 0; i < n; ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            index[i][k] = static_cast<int>(std::floor(dot(g[k], system.positions[i])));
        }
        const Vector centre =
                combine(cell, index[i][0] + 0.5, index[i][1] + 0.5, index[i][2] + 0.5);
        for (int k = 0; k < 3; ++k)
        {
            offset[i][k] = system.positions[i][k] - centre[k];
        }
    }
    Evaluation result;
    result.forces.assign(n, Vector{});
    double energy = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : energy)
    for (int i = 0; i < n; ++i)
    {
        for (int j = 0; j < n; ++j)
        {
            // All images of j's cell within reach of i's: D = c_i - c_j + n H.
            const std::array<int, 3> d0 = { index[i][0] - index[j][0],
                                            index[i][1] - index[j][1],
                                            index[i][2] - index[j][2] };
            for (int d2 = -reach; d2 <= reach; ++d2)
            {
                if ((d2 - d0[2]) % cells[2][2] != 0)
                {
                    continue;
                }
                const int n2 = (d2 - d0[2]) / cells[2][2];
                for (int d1 = -reach; d1 <= reach; ++d1)
                {
                    const int rest1 = d1 - d0[1] - n2 * cells[2][1];
                    if (rest1 % cells[1][1] != 0)
                    {
                        continue;
                    }
                    const int n1 = rest1 / cells[1][1];
                    for (int dd = -reach; dd <= reach; ++dd)
                    {
                        const int rest0 = dd - d0[0] - n2 * cells[2][0] - n1 * cells[1][0];
                        if (rest0 % cells[0][0] != 0
                            || std::max({ std::abs(dd), std::abs(d1), std::abs(d2) })
                                       <= directRange)
                        {
                            continue;
                        }
                        const Vector d = combine(cell, dd, d1, d2);
                        Vector gradient;
                        const double phi = bipolar(d, offset[j], offset[i], order, &gradient);
                        Vector r;
                        for (int k = 0; k < 3; ++k)
                        {
                            r[k] = d[k] + offset[i][k] - offset[j][k];
                        }
                        const double r1 = norm(r);
                        const double qq = c_coulomb * system.charges[i] * system.charges[j];
                        energy += 0.5 * qq * (phi - 1 / r1);
                        for (int k = 0; k < 3; ++k)
                        {
                            result.forces[i][k] -= qq * (gradient[k] + r[k] / (r1 * r1 * r1));
                        }
                    }
                }
            }
        }
    }
    result.energy = energy;
    return result;
}

} // namespace test
} // namespace farfield
