/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "fast_ewald.h"

#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include <omp.h>

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_pi     = 3.14159265358979323846;
constexpr double c_digits = 6; // erfc(6) = 2e-17

using Shift = std::array<int, 3>;

double dot(const Vector& a, const Vector& b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

//! Rows g_k with g_k . box_l = delta_kl, of a lower triangular box or any other.
Matrix reciprocal(const Matrix& b)
{
    const auto cross = [](const Vector& u, const Vector& v)
    {
        return Vector{ u[1] * v[2] - u[2] * v[1],
                       u[2] * v[0] - u[0] * v[2],
                       u[0] * v[1] - u[1] * v[0] };
    };
    Matrix g       = { cross(b[1], b[2]), cross(b[2], b[0]), cross(b[0], b[1]) };
    const double v = dot(b[0], g[0]);
    for (Vector& row : g)
    {
        for (double& component : row)
        {
            component /= v;
        }
    }
    return g;
}

//! x_i - x_j - shift . box, rounded once.
Vector displacement(const Vector& xi, const Vector& xj, const Shift& shift, const Matrix& box)
{
    Vector d;
    for (int k = 0; k < 3; ++k)
    {
        long double sum = static_cast<long double>(xi[k]) - xj[k];
        for (int s = 0; s < 3; ++s)
        {
            sum -= static_cast<long double>(shift[s]) * box[s][k];
        }
        d[k] = static_cast<double>(sum);
    }
    return d;
}

//! erf(x) / x and -(1/x) d/dx of it for a r = x, in units of a and a^3; also at 0.
void smoothPair(double x, double* value, double* slope)
{
    if (x > 0.8)
    {
        *value = std::erf(x) / x;
        *slope = (*value - 2 / std::sqrt(c_pi) * std::exp(-x * x)) / (x * x);
        return;
    }
    // erf(x) / x = 2/sqrt(pi) sum (-1)^n x^2n / (n! (2n+1))
    double term = 1, sum = 1, derivative = 0;
    for (int n = 1; n < 25; ++n)
    {
        derivative += term * 2 / (2 * n + 1); // (-1)^(n-1) x^(2n-2) / (n-1)! * 2 / (2n+1)
        term *= -x * x / n;
        sum += term / (2 * n + 1);
    }
    *value = 2 / std::sqrt(c_pi) * sum;
    *slope = 2 / std::sqrt(c_pi) * derivative;
}

//! Adds the pair's -d E / d x_i = qq slope d to both, and its virial.
struct Sums
{
    explicit Sums(size_t n) : forces(3 * n), magnitudes(n) {}
    void add(int i, int j, const Vector& d, double qq, double value, double slope)
    {
        energy += qq * value;
        const double magnitude = std::abs(qq * slope) * std::sqrt(dot(d, d));
        magnitudes[i] += magnitude;
        magnitudes[j] += magnitude;
        for (int p = 0; p < 3; ++p)
        {
            const double f = qq * slope * d[p];
            forces[3 * static_cast<size_t>(i) + p] += f;
            forces[3 * static_cast<size_t>(j) + p] -= f;
            for (int s = 0; s < 3; ++s)
            {
                virial[s][p] -= 0.5 * d[s] * f;
            }
        }
    }
    void addTo(Evaluation* result, std::vector<double>* sizes) const
    {
        result->energy += energy;
        for (size_t i = 0; i < magnitudes.size(); ++i)
        {
            (*sizes)[i] += magnitudes[i];
        }
        for (size_t k = 0; k < forces.size(); ++k)
        {
            result->forces[k / 3][k % 3] += forces[k];
        }
        for (int s = 0; s < 9; ++s)
        {
            result->virial[s / 3][s % 3] += virial[s / 3][s % 3];
        }
    }
    double energy = 0;
    std::vector<double> forces;
    std::vector<double> magnitudes; //!< sums of |force| over the pairs of each particle
    Matrix virial = {};
};

//! An excluded pair i < j and the image of j that is closest to i.
struct Excluded
{
    int i, j;
    Shift shift;
    bool operator<(const Excluded& other) const
    {
        return std::tie(i, j) < std::tie(other.i, other.j);
    }
};

std::vector<Excluded> closestExcluded(const System& system, const Matrix& g)
{
    std::set<std::pair<int, int>> pairs;
    for (const auto& [a, b] : system.exclusions)
    {
        if (a != b)
        {
            pairs.insert(std::minmax(a, b));
        }
    }
    std::vector<Excluded> result;
    for (const auto& [i, j] : pairs)
    {
        const Vector& xi = system.positions[i];
        const Vector& xj = system.positions[j];
        const Vector d0  = { xi[0] - xj[0], xi[1] - xj[1], xi[2] - xj[2] };
        Shift start, best = {};
        for (int k = 0; k < 3; ++k)
        {
            start[k] = static_cast<int>(std::lround(dot(g[k], d0)));
        }
        double shortest = std::numeric_limits<double>::max();
        for (int c = 0; c < 125; ++c)
        {
            const Shift shift = { start[0] + c / 25 - 2,
                                  start[1] + c / 5 % 5 - 2,
                                  start[2] + c % 5 - 2 };
            const Vector d    = displacement(xi, xj, shift, system.box);
            if (dot(d, d) < shortest)
            {
                shortest = dot(d, d);
                best     = shift;
            }
        }
        result.push_back({ i, j, best });
    }
    return result;
}

//! Particles sorted into a grid of cells of the box.
class Cells
{
public:
    Cells(const System& system, const Matrix& g, double cutoff) : images_(system.size())
    {
        long long all = 1;
        for (int k = 0; k < 3; ++k)
        {
            const double width = 1 / std::sqrt(dot(g[k], g[k]));
            lengths_[k]        = std::clamp(static_cast<int>(2 * width / cutoff), 1, 40);
            reach_[k]          = static_cast<int>(std::ceil(cutoff * lengths_[k] / width));
            all *= lengths_[k];
        }
        begins_.assign(all + 1, 0);
        std::vector<int> cellOf(system.size());
        cells_.resize(system.size());
        for (int i = 0; i < system.size(); ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                const double s  = dot(g[k], system.positions[i]);
                const double in = s - std::floor(s);
                images_[i][k]   = static_cast<int>(std::floor(s));
                cells_[i][k]    = std::min(static_cast<int>(in * lengths_[k]), lengths_[k] - 1);
            }
            cellOf[i] = index(cells_[i]);
            ++begins_[cellOf[i] + 1];
        }
        for (long long c = 0; c < all; ++c)
        {
            begins_[c + 1] += begins_[c];
        }
        members_.resize(system.size());
        std::vector<int> next(begins_.begin(), begins_.end() - 1);
        for (int i = 0; i < system.size(); ++i)
        {
            members_[next[cellOf[i]]++] = i;
        }
    }

    //! Calls visit(j, shift) for the images x_j + shift . box that may be within the cutoff of i.
    template<class Visit>
    void neighbours(int i, const Visit& visit) const
    {
        Shift offset;
        for (offset[0] = -reach_[0]; offset[0] <= reach_[0]; ++offset[0])
        {
            for (offset[1] = -reach_[1]; offset[1] <= reach_[1]; ++offset[1])
            {
                for (offset[2] = -reach_[2]; offset[2] <= reach_[2]; ++offset[2])
                {
                    Shift cell, turns;
                    for (int k = 0; k < 3; ++k)
                    {
                        const int c = cells_[i][k] + offset[k];
                        turns[k]    = (c >= 0 ? c : c - lengths_[k] + 1) / lengths_[k];
                        cell[k]     = c - turns[k] * lengths_[k];
                    }
                    const int c = index(cell);
                    for (int m = begins_[c]; m < begins_[c + 1]; ++m)
                    {
                        const int j       = members_[m];
                        const Shift shift = { turns[0] + images_[i][0] - images_[j][0],
                                              turns[1] + images_[i][1] - images_[j][1],
                                              turns[2] + images_[i][2] - images_[j][2] };
                        visit(j, shift);
                    }
                }
            }
        }
    }

private:
    int index(const Shift& c) const { return (c[0] * lengths_[1] + c[1]) * lengths_[2] + c[2]; }

    Shift lengths_, reach_;
    std::vector<Shift> images_, cells_; //!< of each particle
    std::vector<int> begins_, members_;
};

void addRealSpace(const System& system,
                  const Matrix& g,
                  double a,
                  Evaluation* result,
                  std::vector<double>* magnitudes)
{
    const int n         = system.size();
    const double cutoff = c_digits / a;
    const Cells cells(system, g, cutoff);
    const std::vector<Excluded> excluded = closestExcluded(system, g);
    Sums corrections(n);
    for (const Excluded& e : excluded)
    {
        const Vector d =
                displacement(system.positions[e.i], system.positions[e.j], e.shift, system.box);
        double value, slope;
        smoothPair(a * std::sqrt(dot(d, d)), &value, &slope);
        const double qq = c_coulomb * system.charges[e.i] * system.charges[e.j];
        corrections.add(e.i, e.j, d, qq, -a * value, -a * a * a * slope);
    }
    corrections.addTo(result, magnitudes);
#pragma omp parallel
    {
        Sums sums(n);
#pragma omp for schedule(static, 8)
        for (int i = 0; i < n; ++i)
        {
            if (system.charges[i] == 0)
            {
                continue;
            }
            const auto add = [&](int j, const Shift& shift)
            {
                // each pair of images once
                if (j < i || (j == i && !(shift > Shift{})) || system.charges[j] == 0)
                {
                    return;
                }
                const Vector d =
                        displacement(system.positions[i], system.positions[j], shift, system.box);
                const double r2 = dot(d, d);
                if (r2 > cutoff * cutoff)
                {
                    return;
                }
                const auto found =
                        std::lower_bound(excluded.begin(), excluded.end(), Excluded{ i, j, {} });
                if (found != excluded.end() && found->i == i && found->j == j
                    && found->shift == shift)
                {
                    return;
                }
                const double r     = std::sqrt(r2);
                const double value = std::erfc(a * r) / r;
                const double slope = (value + 2 * a / std::sqrt(c_pi) * std::exp(-a * a * r2)) / r2;
                sums.add(i, j, d, c_coulomb * system.charges[i] * system.charges[j], value, slope);
            };
            cells.neighbours(i, add);
        }
        // in the order of the threads: the same result in every run
#pragma omp for ordered schedule(static, 1)
        for (int thread = 0; thread < omp_get_num_threads(); ++thread)
#pragma omp ordered
        {
            sums.addTo(result, magnitudes);
        }
    }
}

//! e^{2 pi i m s} of every particle for 0 <= m <= range.
struct Phases
{
    Phases(const System& system, const Vector& g, int range) : n(system.size())
    {
        cosines.resize(static_cast<size_t>(range + 1) * n);
        sines.resize(cosines.size());
        for (size_t i = 0; i < n; ++i)
        {
            long double s = 0;
            for (int k = 0; k < 3; ++k)
            {
                s += static_cast<long double>(g[k]) * system.positions[i][k];
            }
            for (int m = 0; m <= range; ++m)
            {
                const long double turns = m * s;
                const double angle = static_cast<double>(2 * c_pi * (turns - std::round(turns)));
                cosines[m * n + i] = std::cos(angle);
                sines[m * n + i]   = std::sin(angle);
            }
        }
    }
    const double* cosine(int m) const { return &cosines[std::abs(m) * n]; }
    const double* sine(int m) const { return &sines[std::abs(m) * n]; }
    size_t n;
    std::vector<double> cosines, sines;
};

void addReciprocalSpace(const System& all, const Matrix& g, double a, Evaluation* result)
{
    // only charges count
    std::vector<int> charged;
    System system;
    system.box = all.box;
    for (int i = 0; i < all.size(); ++i)
    {
        if (all.charges[i] != 0)
        {
            charged.push_back(i);
            system.positions.push_back(all.positions[i]);
            system.charges.push_back(all.charges[i]);
        }
    }
    const int n         = system.size();
    const double cutoff = 2 * a * c_digits;
    Shift range;
    for (int k = 0; k < 3; ++k)
    {
        range[k] = static_cast<int>(
                std::floor(cutoff / (2 * c_pi) * std::sqrt(dot(system.box[k], system.box[k]))));
    }
    const Phases first(system, g[0], range[0]);
    const Phases second(system, g[1], range[1]);
    const Phases third(system, g[2], range[2]);
    std::vector<std::pair<int, int>> columns;
    for (int h = 0; h <= range[0]; ++h)
    {
        for (int k = (h == 0 ? 0 : -range[1]); k <= range[1]; ++k)
        {
            columns.emplace_back(h, k);
        }
    }
#pragma omp parallel
    {
        Sums sums(n);
        std::vector<double> fx(n), fy(n), fz(n), re(n), im(n), wr(n), wi(n);
#pragma omp for schedule(static, 1)
        for (size_t c = 0; c < columns.size(); ++c)
        {
            const auto [h, k] = columns[c];
            const double sk   = k < 0 ? -1 : 1;
            bool isFilled     = false;
            for (int l = (h == 0 && k == 0 ? 1 : -range[2]); l <= range[2]; ++l)
            {
                Vector wave;
                for (int p = 0; p < 3; ++p)
                {
                    wave[p] = 2 * c_pi * (h * g[0][p] + k * g[1][p] + l * g[2][p]);
                }
                const double k2 = dot(wave, wave);
                if (k2 > cutoff * cutoff)
                {
                    continue;
                }
                if (!isFilled)
                {
                    const double *c1 = first.cosine(h), *s1 = first.sine(h);
                    const double *c2 = second.cosine(k), *s2 = second.sine(k);
                    for (int i = 0; i < n; ++i)
                    {
                        re[i] = system.charges[i] * (c1[i] * c2[i] - sk * s1[i] * s2[i]);
                        im[i] = system.charges[i] * (s1[i] * c2[i] + sk * c1[i] * s2[i]);
                    }
                    isFilled = true;
                }
                const double *c3 = third.cosine(l), *s3 = third.sine(l);
                const double sl = l < 0 ? -1 : 1;
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
                const double weight =
                        c_coulomb * 4 * c_pi / all.volume() * std::exp(-k2 / (4 * a * a)) / k2;
                const double e = weight * (sr * sr + si * si);
                sums.energy += e;
                for (int p = 0; p < 3; ++p)
                {
                    for (int s = 0; s < 3; ++s)
                    {
                        sums.virial[p][s] += e * wave[p] * wave[s] * (1 / k2 + 1 / (4 * a * a));
                    }
                    sums.virial[p][p] -= 0.5 * e;
                }
                const double f0 = 2 * weight * wave[0];
                const double f1 = 2 * weight * wave[1];
                const double f2 = 2 * weight * wave[2];
#pragma omp simd
                for (int i = 0; i < n; ++i)
                {
                    const double t = wi[i] * sr - wr[i] * si;
                    fx[i] += f0 * t;
                    fy[i] += f1 * t;
                    fz[i] += f2 * t;
                }
            }
        }
        // in the order of the threads: the same result in every run
#pragma omp for ordered schedule(static, 1)
        for (int thread = 0; thread < omp_get_num_threads(); ++thread)
#pragma omp ordered
        {
            result->energy += sums.energy;
            for (int i = 0; i < n; ++i)
            {
                result->forces[charged[i]][0] += fx[i];
                result->forces[charged[i]][1] += fy[i];
                result->forces[charged[i]][2] += fz[i];
            }
            for (int s = 0; s < 9; ++s)
            {
                result->virial[s / 3][s % 3] += sums.virial[s / 3][s % 3];
            }
        }
    }
}

//! The splitting for which pairs and wave vectors take about the least time together.
double cheapestSplitting(const System& system, const Matrix& g)
{
    // Relative times of a pair, of a pair that is looked at in vain, of a particle and wave vector.
    constexpr double c_pair = 40, c_look = 8, c_wave = 2.5;
    const int n    = system.size();
    const double v = system.volume();
    // Distances from a few particles to all others stand for all pairs.
    std::vector<double> distances;
    const int step = std::max(1, n / 48);
    int samples    = 0;
    for (int i = 0; i < n; i += step, ++samples)
    {
        for (int j = 0; j < n; ++j)
        {
            Vector d = displacement(system.positions[i], system.positions[j], {}, system.box);
            Shift shift;
            for (int k = 0; k < 3; ++k)
            {
                shift[k] = static_cast<int>(std::lround(dot(g[k], d)));
            }
            d = displacement(system.positions[i], system.positions[j], shift, system.box);
            distances.push_back(std::sqrt(dot(d, d)));
        }
    }
    std::sort(distances.begin(), distances.end());
    const auto pairs = [&](double radius)
    {
        const double seen =
                std::upper_bound(distances.begin(), distances.end(), radius) - distances.begin();
        return 0.5 * n * std::max(seen / samples, n * 4.19 * std::pow(radius, 3) / v);
    };
    double best = 0, least = std::numeric_limits<double>::max();
    for (double a = 0.3 / std::cbrt(v); a < 400 / std::cbrt(v); a *= 1.1)
    {
        const double waves = 0.5 * v * 4.19 * std::pow(2 * a * c_digits / (2 * c_pi), 3);
        const double time  = c_pair * pairs(c_digits / a) + c_look * pairs(2 * c_digits / a)
                            + c_wave * n * waves;
        if (time < least)
        {
            least = time;
            best  = a;
        }
    }
    return best;
}

//! The sum, and of each particle the sum of the magnitudes of its forces in real space.
Evaluation evaluate(const System& system, double a, std::vector<double>* magnitudes)
{
    Evaluation result;
    result.forces.assign(system.size(), Vector{});
    const Matrix g = reciprocal(system.box);
    addRealSpace(system, g, a, &result, magnitudes);
    addReciprocalSpace(system, g, a, &result);
    const double squares    = system.meanSquareCharge() * system.size();
    const double net        = system.netCharge();
    const double background = c_coulomb * c_pi * net * net / (2 * a * a * system.volume());
    result.energy -= c_coulomb * a / std::sqrt(c_pi) * squares + background;
    for (int p = 0; p < 3; ++p)
    {
        result.virial[p][p] += 0.5 * background;
    }
    return result;
}

} // namespace

Evaluation fastEwald(const System& system, double splitting, std::vector<double>* magnitudes)
{
    std::vector<double> own;
    std::vector<double>& sums = magnitudes == nullptr ? own : *magnitudes;
    sums.assign(system.size(), 0);
    if (system.size() == 0)
    {
        return {};
    }
    return evaluate(system,
                    splitting > 0 ? splitting : cheapestSplitting(system, reciprocal(system.box)),
                    &sums);
}

CheckedEvaluation checkedEwald(const System& system)
{
    CheckedEvaluation result;
    const int n = system.size();
    if (n == 0)
    {
        return result;
    }
    std::vector<double> magnitudes(n), others(n);
    const double a         = cheapestSplitting(system, reciprocal(system.box));
    result.value           = evaluate(system, 0.9 * a, &magnitudes);
    const Evaluation other = evaluate(system, 1.15 * a, &others);
    double differences = 0, rounding = 0;
    for (int i = 0; i < n; ++i)
    {
        rounding += magnitudes[i] * magnitudes[i];
        for (int k = 0; k < 3; ++k)
        {
            differences += std::pow(result.value.forces[i][k] - other.forces[i][k], 2);
        }
    }
    const double unit = std::numeric_limits<double>::epsilon();
    result.forceError = 2 * std::sqrt(differences / n) + unit * std::sqrt(rounding / n);
    result.energyError =
            2 * std::abs(result.value.energy - other.energy) + unit * std::abs(result.value.energy);
    return result;
}

} // namespace test
} // namespace farfield
