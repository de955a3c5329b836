/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ewald_sums.h"

#include <cmath>

#include <array>
#include <utility>
#include <vector>

#include <omp.h>

#include "geometry.h"

namespace farfield
{
namespace test
{

namespace
{

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
    const double* cosine(int m) const { return cosines.data() + std::abs(m) * n; }
    const double* sine(int m) const { return sines.data() + std::abs(m) * n; }
    size_t n;
    std::vector<double> cosines, sines;
};

//! The particles that have charges, and their phases along the reciprocal vectors.
struct ChargedPhases
{
    ChargedPhases(const System& all, double a) : box(all.box), g(reciprocal(all.box))
    {
        for (int i = 0; i < all.size(); ++i)
        {
            if (all.charges[i] != 0)
            {
                index.push_back(i);
                system.positions.push_back(all.positions[i]);
                system.charges.push_back(all.charges[i]);
            }
        }
        cutoff = 2 * a * c_ewaldDigits;
        for (int k = 0; k < 3; ++k)
        {
            range[k] = static_cast<int>(std::floor(cutoff / (2 * c_pi) * norm(box[k])));
            phases.emplace_back(system, g[k], range[k]);
        }
    }
    Matrix box, g;
    double cutoff;          //!< of wave vectors, 1/nm
    std::vector<int> index; //!< of each in the whole system
    System system;
    std::array<int, 3> range;
    std::vector<Phases> phases;
};

//! What a thread sums up.
class WaveSums
{
public:
    WaveSums(const ChargedPhases& particles, double a) :
        particles_(particles), a_(a), volume_(determinant(particles.box)),
        n_(particles.system.size()), fx_(n_), fy_(n_), fz_(n_), re_(n_), im_(n_), wr_(n_), wi_(n_)
    {
    }
    //! Wave vectors (h, k, l) with all l, of each pair of opposite ones the first.
    void addColumn(int h, int k)
    {
        const int range = particles_.range[2];
        bool isFilled   = false;
        for (int l = (h == 0 && k == 0 ? 1 : -range); l <= range; ++l)
        {
            const Vector wave = combine(particles_.g, 2 * c_pi * h, 2 * c_pi * k, 2 * c_pi * l);
            if (dot(wave, wave) <= particles_.cutoff * particles_.cutoff)
            {
                if (!isFilled)
                {
                    fillPlane(h, k);
                    isFilled = true;
                }
                addWave(wave, l);
            }
        }
    }
    void addTo(Evaluation* result) const
    {
        result->energy += energy_;
        for (int i = 0; i < n_; ++i)
        {
            Vector& force = result->forces[particles_.index[i]];
            force[0] += fx_[i];
            force[1] += fy_[i];
            force[2] += fz_[i];
        }
        for (int s = 0; s < 9; ++s)
        {
            result->virial[s / 3][s % 3] += virial_[s / 3][s % 3];
        }
    }

private:
    //! Charges times their phases in the first two dimensions.
    void fillPlane(int h, int k)
    {
        const double sk  = k < 0 ? -1 : 1;
        const double *c1 = particles_.phases[0].cosine(h), *s1 = particles_.phases[0].sine(h);
        const double *c2 = particles_.phases[1].cosine(k), *s2 = particles_.phases[1].sine(k);
        for (int i = 0; i < n_; ++i)
        {
            re_[i] = particles_.system.charges[i] * (c1[i] * c2[i] - sk * s1[i] * s2[i]);
            im_[i] = particles_.system.charges[i] * (s1[i] * c2[i] + sk * c1[i] * s2[i]);
        }
    }
    void addWave(const Vector& wave, int l)
    {
        const double *c3 = particles_.phases[2].cosine(l), *s3 = particles_.phases[2].sine(l);
        const double sl = l < 0 ? -1 : 1;
        double sr = 0, si = 0;
#pragma omp simd reduction(+ : sr, si)
        for (int i = 0; i < n_; ++i)
        {
            wr_[i] = re_[i] * c3[i] - sl * im_[i] * s3[i];
            wi_[i] = im_[i] * c3[i] + sl * re_[i] * s3[i];
            sr += wr_[i];
            si += wi_[i];
        }
        // Both k and -k: 2 * (2 pi / V) exp(-k^2/4a^2)/k^2 |S|^2
        const double k2     = dot(wave, wave);
        const double weight = c_coulomb * 4 * c_pi / volume_ * std::exp(-k2 / (4 * a_ * a_)) / k2;
        const double e      = weight * (sr * sr + si * si);
        energy_ += e;
        for (int p = 0; p < 3; ++p)
        {
            for (int s = 0; s < 3; ++s)
            {
                virial_[p][s] += e * wave[p] * wave[s] * (1 / k2 + 1 / (4 * a_ * a_));
            }
            virial_[p][p] -= 0.5 * e;
        }
        const double f0 = 2 * weight * wave[0];
        const double f1 = 2 * weight * wave[1];
        const double f2 = 2 * weight * wave[2];
#pragma omp simd
        for (int i = 0; i < n_; ++i)
        {
            const double t = wi_[i] * sr - wr_[i] * si;
            fx_[i] += f0 * t;
            fy_[i] += f1 * t;
            fz_[i] += f2 * t;
        }
    }

    const ChargedPhases& particles_;
    double a_, volume_;
    int n_;
    std::vector<double> fx_, fy_, fz_; //!< forces
    std::vector<double> re_, im_;      //!< see fillPlane()
    std::vector<double> wr_, wi_;      //!< of the wave vector at hand
    double energy_ = 0;
    Matrix virial_ = {};
};

} // namespace

void smoothPair(double a, double r, double* value, double* slope)
{
    // in units of a and a^3
    const double x = a * r;
    if (x > 0.8)
    {
        *value = std::erf(x) / x;
        *slope = (*value - 2 / std::sqrt(c_pi) * std::exp(-x * x)) / (x * x);
    }
    else
    {
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
    *value *= a;
    *slope *= a * a * a;
}

void sharpPair(double a, double r, double* value, double* slope)
{
    *value = std::erfc(a * r) / r;
    *slope = (*value + 2 * a / std::sqrt(c_pi) * std::exp(-a * a * r * r)) / (r * r);
}

void addReciprocalSpace(const System& system, double a, Evaluation* result)
{
    const ChargedPhases particles(system, a);
    std::vector<std::pair<int, int>> columns;
    for (int h = 0; h <= particles.range[0]; ++h)
    {
        for (int k = (h == 0 ? 0 : -particles.range[1]); k <= particles.range[1]; ++k)
        {
            columns.emplace_back(h, k);
        }
    }
#pragma omp parallel
    {
        WaveSums sums(particles, a);
#pragma omp for schedule(static, 1)
        for (size_t c = 0; c < columns.size(); ++c)
        {
            sums.addColumn(columns[c].first, columns[c].second);
        }
        // in the order of the threads: the same result in every run
#pragma omp for ordered schedule(static, 1)
        for (int thread = 0; thread < omp_get_num_threads(); ++thread)
#pragma omp ordered
        {
            sums.addTo(result);
        }
    }
}

void addSelfAndBackground(const System& system, double a, Evaluation* result)
{
    const double squares    = system.meanSquareCharge() * system.size();
    const double net        = system.netCharge();
    const double background = c_coulomb * c_pi * net * net / (2 * a * a * system.volume());
    result->energy -= c_coulomb * a / std::sqrt(c_pi) * squares + background;
    for (int p = 0; p < 3; ++p)
    {
        result->virial[p][p] += 0.5 * background;
    }
}

} // namespace test
} // namespace farfield
