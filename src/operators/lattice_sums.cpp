/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/lattice_sums.h"

#include <cmath>
#include <optional>

#include "base/fft.h"
#include "base/threads.h"
#include "operators/background.h"

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
        { return x > 0 ? std::exp((l + 0.5) * std::log(x) - x - std::lgamma(l + 1.5)) : 0.0; };
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

/*! \brief One function f(D) on displacements, and its derivatives under strain up to a degree.
 *
 *  [coefficientCount(degree)], and behind it [StrainCount][coefficientCount(strainDegree)]. */
class Terms
{
public:
    Terms(int degree, int strainDegree) :
        n_(coefficientCount(degree)), strained_(coefficientCount(strainDegree)), degrees_(n_),
        derivatives_(derivativeTerms(strainDegree)), u_(n_), gradient_(3 * strained_)
    {
        for (int i = 0; i < n_; i++)
        {
            degrees_[i] = degreeOf(i);
        }
    }

    /*! \brief Evaluates u_i(r) radial[l] and its derivatives.
     *
     *  \param[in]  r        argument
     *  \param[in]  radial   factor per degree
     *  \param[in]  slope    d radial / d(r^2) per degree
     *  \param[in]  dual     false: r is a vector, r -> (1 + e) r. true: a wave vector, r -> (1 -
     *         e^T) r
     *  \param[out] out      [size()], added to */
    void add(const Vec3& r, const double* radial, const double* slope, bool dual, double* out)
    {
        int degree = degrees_[n_ - 1];
        solidHarmonics(degree, r, u_.data());
        std::fill(gradient_.begin(), gradient_.end(), 0.0);
        for (const DerivativeTerm& t : derivatives_)
        {
            gradient_[3 * t.from + t.axis] += t.value * u_[t.to];
        }
        for (int i = 0; i < n_; i++)
        {
            out[i] += u_[i] * radial[degrees_[i]];
        }
        for (int i = 0; i < strained_; i++)
        {
            const int l = degrees_[i];
            double g[3];
            for (int axis = 0; axis < 3; axis++)
            {
                g[axis] = gradient_[3 * i + axis] * radial[l] + 2 * u_[i] * slope[l] * r[axis];
            }
            for (int c = 0; c < StrainCount; c++)
            {
                const int a = c_strainAxes[c][0];
                const int b = c_strainAxes[c][1];
                const double d =
                        (a == b) ? r[a] * g[a] - r[2] * g[2] : 0.5 * (r[a] * g[b] + r[b] * g[a]);
                out[n_ + c * strained_ + i] += dual ? -d : d;
            }
        }
    }

    int size() const { return n_ + StrainCount * strained_; }

private:
    int n_, strained_;
    std::vector<int> degrees_;
    std::vector<DerivativeTerm> derivatives_;
    std::vector<double> u_, gradient_;
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

//! Real-space displacements with their terms.
struct RealSpace
{
    std::vector<int> slots; //!< slot of each displacement
    Matrix values;          //!< [field][displacement], fields as in Terms
};

RealSpace realSpace(const Grid& grid, int ws, int degree, int strainDegree, double radius, double a)
{
    const Mat3 G = grid.scaledEdges();
    std::vector<Int3> displacements;
    const Int3 r = reach(G, radius);
    for (int x = -r[0]; x <= r[0]; x++)
    {
        for (int y = -r[1]; y <= r[1]; y++)
        {
            for (int z = -r[2]; z <= r[2]; z++)
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
    Terms terms(degree, strainDegree);
    std::vector<double> radial(degree + 1), slope(degree + 1), out(terms.size());
    result.values.resize(terms.size(), displacements.size());
    for (size_t d = 0; d < displacements.size(); d++)
    {
        const Int3& D   = displacements[d];
        const Vec3 R    = G.transpose() * Vec3(D[0], D[1], D[2]);
        const double r2 = R.squaredNorm();
        const bool near = std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) <= ws;
        std::fill(out.begin(), out.end(), 0.0);
        result.slots.push_back(grid.slot(D));
        if (r2 == 0)
        {
            out[0] = -2 * a / std::sqrt(M_PI);
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
            terms.add(R, radial.data(), slope.data(), false, out.data());
        }
        for (int f = 0; f < terms.size(); f++)
        {
            result.values(f, d) = out[f];
        }
    }
    return result;
}

} // namespace

void irregularStrain(int degree, const Vec3& D, double* out)
{
    Terms terms(degree, degree);
    std::vector<double> radial(degree + 1), slope(degree + 1);
    const double r2 = D.squaredNorm();
    double power    = 1 / std::sqrt(r2);
    for (int l = 0; l <= degree; l++)
    {
        radial[l] = power;
        power /= r2;
        slope[l] = -(l + 0.5) * power;
    }
    std::fill_n(out, terms.size(), 0.0);
    terms.add(D, radial.data(), slope.data(), false, out);
}

namespace
{

/*! \brief Sums w of harmonics of one degree, from the transform of their terms.
 *
 *  W = i^l w: the real part for even l, the imaginary part for odd l. */
class WaveSums
{
public:
    WaveSums(int l, const AlignedVector<double>& transformed) :
        sign_((l / 2) % 2 ? -1 : 1), part_(l % 2), transformed_(transformed)
    {
    }
    double of(int wave) const
    {
        return sign_ * transformed_[2 * static_cast<size_t>(wave) + part_];
    }

private:
    double sign_;
    int part_;
    const AlignedVector<double>& transformed_;
};

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
            for (size_t d = 0; d < real.slots.size(); d++)
            {
                in[real.slots[d]] += real.values(field, d);
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
    const int n        = static_cast<int>(sums->value.cols());
    const int strained = static_cast<int>(sums->strain[0].cols());
    const Mat3 dual    = grid.scaledEdges().inverse();
    const Int3 extent  = reach(2 * M_PI * dual.transpose(), qMax);
    FirstException failure;
#pragma omp parallel num_threads(threads)
    {
        std::optional<Terms> terms;
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
            for (int i = 0; i < n; i++)
            {
                sums->value(k, i) += out[i];
            }
            for (int c = 0; c < StrainCount; c++)
            {
                for (int i = 0; i < strained; i++)
                {
                    sums->strain[c](k, i) += static_cast<Real>(out[n + c * strained + i]);
                }
            }
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
    const RealSpace real = realSpace(grid, ws, degree, strainDegree, decay / ewald, ewald);
    addRealSpace(grid, real, waves, threads, &sums);
    addReciprocalSpace(grid, ewald, 2 * ewald * decay, waves, threads, &sums);
    return sums;
}

namespace
{

//! One image of a far cell.
struct FarCell
{
    int slot;
    Vec3 displacement; //!< in units of Grid::unit()
};

//! One image of each far cell: those nearer than half the box in each dimension.
std::vector<FarCell> farCells(const Grid& grid, int ws)
{
    std::vector<FarCell> cells;
    for (int i = 0; i < grid.count(); i++)
    {
        Int3 D       = grid.cell(i);
        int farthest = 0;
        bool isHalf  = false;
        for (int k = 0; k < 3; k++)
        {
            const int n = grid.H()[k][k];
            isHalf      = isHalf || (n > 1 && 2 * D[k] == n);
            D[k] -= 2 * D[k] > n ? n : 0;
            farthest = std::max(farthest, std::abs(D[k]));
        }
        if (!isHalf && farthest > ws)
        {
            cells.push_back({ grid.slot(D), grid.displacement(D) / grid.unit() });
        }
    }
    return cells;
}

} // namespace

Matrix openSums(const Grid& grid, int ws, int degree, const std::vector<int>& waves, int threads)
{
    constexpr size_t c_memory        = 64U << 20U; //!< of the terms at a time, numbers
    const std::vector<FarCell> cells = farCells(grid, ws);
    const int n                      = coefficientCount(degree);
    const int some =
            static_cast<int>(std::clamp<size_t>(c_memory / 8 / (cells.size() + 1), threads, n));
    const RealTransform<double> transform(grid.lengths());
    Matrix sums(waves.size(), n), terms(some, cells.size());
    FirstException failure;
    for (int first = 0; first < n; first += some)
    {
        const int last = std::min(n, first + some);
#pragma omp parallel num_threads(threads)
        {
            std::vector<double> v;
            AlignedVector<double> in, out;
            failure.run(
                    [&]
                    {
                        v.resize(n);
                        in.resize(grid.count());
                        out.resize(2LL * grid.waveVectors());
                    });
            const auto setTerms = [&](int c)
            {
                irregularHarmonics(degree, cells[c].displacement, v.data());
                for (int i = first; i < last; i++)
                {
                    terms(i - first, c) = v[i];
                }
            };
            const auto setSums = [&](int i)
            {
                std::fill(in.begin(), in.end(), 0.0);
                for (size_t c = 0; c < cells.size(); c++)
                {
                    in[cells[c].slot] = terms(i - first, c);
                }
                transform.forward(in.data(), out.data());
                const WaveSums of(degreeOf(i), out);
                for (size_t k = 0; k < waves.size(); k++)
                {
                    sums(k, i) = of.of(waves[k]);
                }
            };
#pragma omp for schedule(static)
            for (int c = 0; c < static_cast<int>(cells.size()); c++)
            {
                failure.run([&] { setTerms(c); });
            }
#pragma omp for schedule(dynamic)
            for (int i = first; i < last; i++)
            {
                failure.run([&] { setSums(i); });
            }
        }
    }
    failure.rethrow();
    return sums;
}

template LatticeSums<float>
latticeSums<float>(const Grid&, int, int, int, const std::vector<int>&, double, double, int);
template LatticeSums<double>
latticeSums<double>(const Grid&, int, int, int, const std::vector<int>&, double, double, int);

} // namespace farfield
