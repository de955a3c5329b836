/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/lattice_sums.h"

#include <cmath>
#include <optional>

#include "base/fft.h"
#include "base/log_gamma.h"
#include "base/threads.h"
#include "operators/background.h"
#include "operators/slab_sums.h"
#include "operators/wave_sums.h"

namespace farfield
{
namespace
{

/*! \brief Regularised incomplete gamma functions P(l+1/2, x) and Q(l+1/2, x), l = 0 .. degree + 1.
 *
 *  Q by upward, P by downward recurrence in l: each only adds positive terms. */
struct GammaRatios
{
    GammaRatios(int degree, double x) : P(degree + 2), Q(degree + 2)
    {
        // term_l = x^(l+1/2) e^-x / Gamma(l+3/2) = P(l+1/2) - P(l+3/2)
        const auto term = [x](double l)
        { return x > 0 ? std::exp((l + 0.5) * std::log(x) - x - logGamma(l + 1.5)) : 0.0; };
        Q[0] = std::erfc(std::sqrt(x));
        for (int l = 1; l < degree + 2; l++)
        {
            Q[l] = Q[l - 1] + term(l - 1);
        }
        double tail = 0;
        for (int l = degree + 1;; l++)
        {
            const double t = term(l);
            tail += t;
            if (t <= 1e-18 * tail && l > x)
            {
                break;
            }
        }
        P[degree + 1] = tail;
        for (int l = degree; l >= 0; l--)
        {
            P[l] = P[l + 1] + term(l);
        }
    }
    std::vector<double> P, Q;
};

//! Reach of a search over the lattice spanned by the rows of basis that covers a ball, per axis.
Int3 reach(const Mat3& basis, double radius)
{
    const Mat3 inverse = basis.inverse();
    Int3 n;
    for (int k = 0; k < 3; k++)
    {
        n[k] = static_cast<int>(std::ceil(radius * inverse.col(k).norm())) + 1;
    }
    return n;
}

//! Real-space displacements with their terms: one of each and its opposite, whose terms of odd degree
//! have the other sign.
struct RealSpace
{
    std::vector<int> slots, opposite; //!< slots of each displacement and of its opposite
    Matrix values;                    //!< [displacement][field], fields as in StrainedHarmonics
};

RealSpace realSpace(const Grid& grid,
                    Boundary boundary,
                    int ws,
                    int degree,
                    int strainDegree,
                    double radius,
                    double a)
{
    const Mat3 G = grid.scaledEdges();
    std::vector<Int3> displacements;
    Int3 r = reach(G, radius);
    if (isOpenAlong(boundary, 2))
    {
        r[2] = std::min(r[2], mostApart(grid.H()[2][2]));
    }
    for (int x = 0; x <= r[0]; x++)
    {
        for (int y = x > 0 ? -r[1] : 0; y <= r[1]; y++)
        {
            for (int z = x > 0 || y > 0 ? -r[2] : 0; z <= r[2]; z++)
            {
                const bool near = std::max({ std::abs(x), std::abs(y), std::abs(z) }) <= ws;
                if (near || (G.transpose() * Vec3(x, y, z)).norm() <= radius)
                {
                    displacements.push_back({ x, y, z });
                }
            }
        }
    }
    RealSpace result;
    StrainedHarmonics terms(degree, strainDegree);
    std::vector<double> radial(degree + 1), slope(degree + 1);
    result.values.setZero(displacements.size(), terms.size());
    for (size_t d = 0; d < displacements.size(); d++)
    {
        const Int3& D     = displacements[d];
        const Vec3 R      = G.transpose() * Vec3(D[0], D[1], D[2]);
        const double r2   = R.squaredNorm();
        const bool near   = std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) <= ws;
        double* const out = result.values.row(d).data();
        result.slots.push_back(grid.slot(D));
        result.opposite.push_back(grid.slot({ -D[0], -D[1], -D[2] }));
        if (r2 == 0)
        {
            out[0] = -a / std::sqrt(M_PI); // half of it, being its own opposite
        }
        else
        {
            const GammaRatios gamma(degree, a * a * r2);
            double power = 1 / std::sqrt(r2);
            for (int l = 0; l <= degree; l++)
            {
                // d/d(r^2) [Q(l+1/2)/r^(2l+1)] = -(l+1/2) Q(l+3/2)/r^(2l+3), and the same for P
                radial[l] = (near ? -gamma.P[l] : gamma.Q[l]) * power;
                power /= r2;
                slope[l] = -(l + 0.5) * (near ? -gamma.P[l + 1] : gamma.Q[l + 1]) * power;
            }
            terms.add(R, radial.data(), slope.data(), false, out);
        }
    }
    return result;
}

//! Adds the sums over real space: each field is scattered over the group and transformed.
template<class Real>
void addRealSpace(const Grid& grid,
                  const RealSpace& real,
                  const std::vector<int>& waves,
                  int threads,
                  LatticeSums<Real>* sums)
{
    const int n           = static_cast<int>(sums->value.cols());
    const int strained    = static_cast<int>(sums->strain[0].cols());
    const long long cells = grid.count();
    const RealTransform<double> transform(grid.lengths());
    FirstException failure;
    constexpr int c_block = 8; // fields per task: neighbours in the output
    const auto blocksOf   = [](int fields) { return (fields + c_block - 1) / c_block; };
#pragma omp parallel num_threads(threads)
    {
        AlignedVector<double> in, out;
        failure.run(
                [&]
                {
                    in.resize(cells);
                    out.resize(2LL * grid.waveVectors());
                });
        // field i of the sums themselves (c < 0), or of a derivative
        const auto addField = [&](int c, int i)
        {
            const int field = c < 0 ? i : n + c * strained + i;
            std::fill(in.begin(), in.end(), 0.0);
            const double sign = degreeOf(i) % 2 == 0 ? 1 : -1;
            for (size_t d = 0; d < real.slots.size(); d++)
            {
                in[real.slots[d]] += real.values(d, field);
                in[real.opposite[d]] += sign * real.values(d, field);
            }
            transform.forward(in.data(), out.data());
            const WaveSums of(degreeOf(i), out);
            for (size_t k = 0; k < waves.size(); k++)
            {
                const double w = of.of(waves[k]);
                if (c < 0)
                {
                    sums->value(k, i) = w;
                }
                else
                {
                    sums->strain[c](k, i) = static_cast<Real>(w);
                }
            }
        };
#pragma omp for schedule(dynamic)
        for (int task = 0; task < blocksOf(n) + StrainCount * blocksOf(strained); task++)
        {
            const int derivative = task - blocksOf(n);
            const int c          = derivative < 0 ? -1 : derivative / blocksOf(strained);
            const int first      = c_block * (c < 0 ? task : derivative % blocksOf(strained));
            const int last       = std::min(first + c_block, c < 0 ? n : strained);
            for (int i = first; i < last; i++)
            {
                failure.run([&] { addField(c, i); });
            }
        }
    }
    failure.rethrow();
}

//! Adds the terms of a wave vector, in the order of StrainedHarmonics.
template<class Real>
void addTerms(const std::vector<double>& terms, int k, LatticeSums<Real>* sums)
{
    const auto n        = static_cast<int>(sums->value.cols());
    const auto strained = static_cast<int>(sums->strain[0].cols());
    for (int i = 0; i < n; i++)
    {
        sums->value(k, i) += terms[i];
    }
    for (int c = 0; c < StrainCount; c++)
    {
        for (int i = 0; i < strained; i++)
        {
            sums->strain[c](k, i) += static_cast<Real>(terms[n + c * strained + i]);
        }
    }
}

//! Adds the sums over reciprocal space.
template<class Real>
void addReciprocalSpace(const Grid& grid,
                        double a,
                        double qMax,
                        const std::vector<int>& waves,
                        int threads,
                        LatticeSums<Real>* sums)
{
    const int degree   = sums->degree;
    const int strained = static_cast<int>(sums->strain[0].cols());
    const Mat3 dual    = grid.scaledEdges().inverse();
    const Int3 extent  = reach(2 * M_PI * dual.transpose(), qMax);
    FirstException failure;
#pragma omp parallel num_threads(threads)
    {
        std::optional<StrainedHarmonics> terms;
        std::vector<double> radial, slope, out;
        failure.run(
                [&]
                {
                    terms.emplace(degree, degreeOf(strained - 1));
                    radial.resize(degree + 1);
                    slope.resize(degree + 1);
                    out.resize(terms->size());
                });
        const auto addVector = [&](const Vec3& q)
        {
            const double q2 = q.squaredNorm();
            if (q2 > qMax * qMax)
            {
                return;
            }
            if (q2 < 1e-20)
            {
                out[0] += backgroundOfSplit(a);
                return;
            }
            // (-i)^l = i^l (-1)^l
            double factor = 4 * M_PI * std::exp(-q2 / (4 * a * a)) / q2;
            for (int l = 0; l <= degree; l++)
            {
                radial[l] = factor;
                slope[l]  = -factor * (1 / (4 * a * a) + 1 / q2);
                factor /= -(2 * l + 1);
            }
            terms->add(q, radial.data(), slope.data(), true, out.data());
        };
        const auto addWave = [&](int k)
        {
            const Vec3 w = grid.phases(waves[k]);
            std::fill(out.begin(), out.end(), 0.0);
            for (int x = -extent[0]; x <= extent[0]; x++)
            {
                for (int y = -extent[1]; y <= extent[1]; y++)
                {
                    for (int z = -extent[2]; z <= extent[2]; z++)
                    {
                        addVector(dual * (w + 2 * M_PI * Vec3(x, y, z)));
                    }
                }
            }
            addTerms(out, k, sums);
        };
#pragma omp for schedule(static)
        for (int k = 0; k < static_cast<int>(waves.size()); k++)
        {
            failure.run([&] { addWave(k); });
        }
    }
    failure.rethrow();
}

} // namespace

template<class Real>
LatticeSums<Real> latticeSums(const Grid& grid,
                              Boundary boundary,
                              int ws,
                              int degree,
                              int strainDegree,
                              const std::vector<int>& waves,
                              double precision,
                              double ewald,
                              int threads)
{
    const int count    = static_cast<int>(waves.size());
    const double decay = std::sqrt(-std::log(precision));
    LatticeSums<Real> sums;
    sums.degree = degree;
    sums.value.setZero(count, coefficientCount(degree));
    for (auto& strain : sums.strain)
    {
        strain.setZero(count, coefficientCount(strainDegree));
    }
    const RealSpace real =
            realSpace(grid, boundary, ws, degree, strainDegree, decay / ewald, ewald);
    addRealSpace(grid, real, waves, threads, &sums);
    if (boundary == Boundary::Slab)
    {
        addReciprocalSpaceOfSlab(grid, ewald, decay, waves, threads, &sums);
    }
    else
    {
        addReciprocalSpace(grid, ewald, 2 * ewald * decay, waves, threads, &sums);
    }
    return sums;
}

template decltype(latticeSums<float>) latticeSums<float>;
template decltype(latticeSums<double>) latticeSums<double>;

} // namespace farfield
