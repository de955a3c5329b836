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

#include "ewald_sums.h"
#include "geometry.h"

namespace farfield
{
namespace test
{
namespace
{

using Shift = std::array<int, 3>;

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
        // no shorter one has larger fractional coordinates than its length allows
        const double length = norm(displacement(xi, xj, start, system.box));
        int reach[3];
        for (int k = 0; k < 3; ++k)
        {
            reach[k] = static_cast<int>(std::ceil(norm(g[k]) * length + 0.5));
        }
        double shortest = std::numeric_limits<double>::max();
        for (int u = -reach[0]; u <= reach[0]; ++u)
        {
            for (int v = -reach[1]; v <= reach[1]; ++v)
            {
                for (int w = -reach[2]; w <= reach[2]; ++w)
                {
                    const Shift shift = { start[0] + u, start[1] + v, start[2] + w };
                    const Vector d    = displacement(xi, xj, shift, system.box);
                    if (dot(d, d) < shortest)
                    {
                        shortest = dot(d, d);
                        best     = shift;
                    }
                }
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
    const double cutoff = c_ewaldDigits / a;
    const Cells cells(system, g, cutoff);
    const std::vector<Excluded> excluded = closestExcluded(system, g);
    Sums corrections(n);
    for (const Excluded& e : excluded)
    {
        const Vector d =
                displacement(system.positions[e.i], system.positions[e.j], e.shift, system.box);
        double value, slope;
        smoothPair(a, norm(d), &value, &slope);
        const double qq = c_coulomb * system.charges[e.i] * system.charges[e.j];
        corrections.add(e.i, e.j, d, qq, -value, -slope);
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
                double value, slope;
                sharpPair(a, std::sqrt(r2), &value, &slope);
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
        const double waves = 0.5 * v * 4.19 * std::pow(a * c_ewaldDigits / c_pi, 3);
        const double time  = c_pair * pairs(c_ewaldDigits / a)
                            + c_look * pairs(2 * c_ewaldDigits / a) + c_wave * n * waves;
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
    addReciprocalSpace(system, a, &result);
    addSelfAndBackground(system, a, &result);
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
