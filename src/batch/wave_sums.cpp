/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/wave_sums.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "farfield/farfield.h"

#include "base/text.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;

} // namespace

template<class Real>
void WaveSums<Real>::findColumns()
{
    columns_.clear();
    const double square            = plan_.waveCutoff * plan_.waveCutoff;
    const Eigen::RowVector3d third = waves_.row(2);
    const double thirdSquare       = third.squaredNorm();
    const Mat3 box                 = 2 * c_pi * waves_.inverse(); // columns
    const auto range               = [&](int axis)
    { return static_cast<int>(plan_.waveCutoff / (2 * c_pi) * box.col(axis).norm()); };
    constexpr double c_mostWaves = 1 << 27;
    const double all             = (1.0 + range(0)) * (1.0 + range(1)) * (1.0 + range(2));
    if (!(all < c_mostWaves))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "needs " + text(all) + " waves, more than " + text(c_mostWaves)
                            + ": its box is too flat or too long, or its charges too narrow.");
    }
    count_ = 0;
    for (int h = 0; h <= range(0); h++)
    {
        for (int k = 0; k <= range(1); k++)
        {
            int last = -1;
            for (int sign = -1; sign <= 1; sign += 2)
            {
                const Eigen::RowVector3d v = h * waves_.row(0) + sign * k * waves_.row(1);
                const double nearest       = v.dot(third) / thirdSquare;
                const double left = (square - v.squaredNorm()) / thirdSquare + nearest * nearest;
                if (left >= 0)
                {
                    last = std::max(last, static_cast<int>(std::abs(nearest) + std::sqrt(left)));
                }
            }
            if (last >= 0)
            {
                columns_.push_back({ h, k, last, count_ });
                count_ += last + 1;
            }
        }
    }
}

template<class Real>
void WaveSums<Real>::build(const ReducedBox& box,
                           const EwaldPlan& plan,
                           double coulombConstant,
                           const double* f,
                           int n)
{
    waves_     = 2 * c_pi * box.inverse.transpose();
    plan_      = plan;
    scale_     = 4 * c_pi * coulombConstant / box.volume;
    particles_ = n;
    n_         = padded(n);
    findColumns();
    coordinates_.assign(n_, Real(0));
    charges_.assign(n_, Real(0));
    products_.resize(6 * static_cast<size_t>(n_));
    fields_.resize((c_fields + 4) * static_cast<size_t>(n_));
    sums_.resize(static_cast<size_t>(count_) * WaveProducts);
    int range = 0;
    for (int axis = 0; axis < 3; axis++)
    {
        range = 0;
        for (const WaveColumn& column : columns_)
        {
            range = std::max(range, axis == 0 ? column.h : axis == 1 ? column.k : column.last);
        }
        for (int i = 0; i < n; i++)
        {
            const double at = f[3 * static_cast<size_t>(i) + axis];
            coordinates_[i] = static_cast<Real>(at - std::rint(at));
        }
        phases_[axis].resize((range + 1) * 2 * static_cast<size_t>(n_));
        batchKernels<Real>().phases(coordinates_.data(), n_, range, phases_[axis].data());
    }
    alongThird_.resize(range + 1);
    for (int l = 0; l <= range; l++)
    {
        alongThird_[l] = std::exp(-0.25 * l * l * waves_.row(2).squaredNorm()
                                  / (plan.splitting * plan.splitting));
    }
}

template<class Real>
template<class Use>
void WaveSums<Real>::forWaves(const WaveColumn& column, const Use& use) const
{
    const double cutoff2           = plan_.waveCutoff * plan_.waveCutoff;
    const double inverse           = 0.25 / (plan_.splitting * plan_.splitting);
    const Eigen::RowVector3d third = waves_.row(2);
    const double thirdSquare       = third.squaredNorm();
    const bool isPlane             = column.h == 0 && column.k == 0;
    Wave wave;
    // of opposite waves one, and each once
    for (wave.signK = column.k > 0 && column.h > 0 ? -1 : 1; wave.signK <= 1; wave.signK += 2)
    {
        wave.v = column.h * waves_.row(0) + wave.signK * column.k * waves_.row(1);
        for (wave.signL = isPlane ? 1 : -1; wave.signL <= 1; wave.signL += 2)
        {
            // exp(-k^2 / 4a^2) is a product of these
            const double along  = 2 * wave.signL * wave.v.dot(third);
            const double factor = std::exp(-inverse * along);
            double ofPlane      = scale_ * std::exp(-inverse * wave.v.squaredNorm());
            for (wave.l = 0; wave.l <= column.last; wave.l++, ofPlane *= factor)
            {
                wave.square = wave.v.squaredNorm() + wave.l * (along + wave.l * thirdSquare);
                if (wave.square > cutoff2 || (wave.l == 0 && (isPlane || wave.signL < 0)))
                {
                    continue;
                }
                wave.weight = ofPlane * alongThird_[wave.l] / wave.square;
                use(wave);
            }
        }
    }
}

namespace
{

//! S(k) from its products.
template<class Real>
std::complex<double> structureFactor(const Real* s, int signK, int signL)
{
    return { s[CCC] - signK * s[SSC] - signL * (s[SCS] + signK * s[CSS]),
             s[SCC] + signK * s[CSC] + signL * (s[CCS] - signK * s[SSS]) };
}

//! Adds Re(S* exp(i k r)) to the weights of the products.
void addWave(std::complex<double> s, int signK, int signL, double* weights)
{
    const double a = s.real(), b = s.imag();
    weights[CCC] += a;
    weights[SSC] -= signK * a;
    weights[SCC] += b;
    weights[CSC] += signK * b;
    weights[CCS] += signL * b;
    weights[SSS] -= signL * signK * b;
    weights[SCS] -= signL * a;
    weights[CSS] -= signL * signK * a;
}

} // namespace

template<class Real>
void WaveSums<Real>::keepWeights(int set,
                                 const WaveColumn& column,
                                 const std::vector<double>& weights)
{
    std::transform(weights.begin(),
                   weights.end(),
                   sumsOf(set, column, 0),
                   [](double w) { return static_cast<Real>(w); });
}

template<class Real>
double WaveSums<Real>::weigh(const WaveColumn& column, bool virial, Mat3* xi)
{
    const double inverse = 0.25 / (plan_.splitting * plan_.splitting);
    double energy        = 0;
    weights_.assign((column.last + 1) * static_cast<size_t>(WaveProducts), 0);
    forWaves(column,
             [&](const Wave& wave)
             {
                 const std::complex<double> s =
                         structureFactor(sumsOf(0, column, wave.l), wave.signK, wave.signL);
                 const double e = wave.weight * std::norm(s);
                 energy += e;
                 if (virial)
                 {
                     const Eigen::RowVector3d k = wave.v + wave.signL * wave.l * waves_.row(2);
                     *xi += e * (1 / wave.square + inverse) * k.transpose() * k
                            - 0.5 * e * Mat3::Identity();
                 }
                 addWave(2 * wave.weight * s,
                         wave.signK,
                         wave.signL,
                         weights_.data() + wave.l * static_cast<size_t>(WaveProducts));
             });
    keepWeights(0, column, weights_);
    return energy;
}

template<class Real>
void WaveSums<Real>::weighTangent(const WaveColumn& column, const Mat3& strain, Mat3* xi)
{
    using Complex        = std::complex<double>;
    const double inverse = 0.25 / (plan_.splitting * plan_.splitting);
    weights_.assign((column.last + 1) * static_cast<size_t>(WaveProducts), 0);
    tangents_.assign(weights_.size(), 0);
    const auto use = [&](const Wave& wave)
    {
        Complex s[c_sets];
        for (int set = 0; set < c_sets; set++)
        {
            s[set] = structureFactor(sumsOf(set, column, wave.l), wave.signK, wave.signL);
        }
        const Vec3 k       = (wave.v + wave.signL * wave.l * waves_.row(2)).transpose();
        const double along = k.dot(strain * k);
        const double both  = 1 / wave.square + inverse;
        const double rho   = 2 * both * along - strain.trace();
        const Complex turn = static_cast<double>(column.h) * s[2]
                             + static_cast<double>(wave.signK * column.k) * s[3]
                             + static_cast<double>(wave.signL * wave.l) * s[4];
        const Complex moved = s[1] + Complex(-turn.imag(), turn.real());
        if (xi != nullptr)
        {
            const double e = wave.weight * std::norm(s[0]);
            const double de =
                    rho * e
                    + 2 * wave.weight * (s[0].real() * moved.real() + s[0].imag() * moved.imag());
            const Mat3 turned = strain * k * k.transpose();
            *xi += (de * both + 2 * e * along / (wave.square * wave.square)) * k * k.transpose()
                   - e * both * (turned + turned.transpose()) - 0.5 * de * Mat3::Identity();
        }
        const size_t at = wave.l * static_cast<size_t>(WaveProducts);
        addWave(2 * wave.weight * s[0], wave.signK, wave.signL, weights_.data() + at);
        addWave(2 * wave.weight * (rho * s[0] + moved),
                wave.signK,
                wave.signL,
                tangents_.data() + at);
    };
    forWaves(column, use);
    keepWeights(0, column, weights_);
    keepWeights(1, column, tangents_);
}

template<class Real>
template<class Charge>
void WaveSums<Real>::transform(int set, const Charge& charge)
{
    for (int i = 0; i < particles_; i++)
    {
        charges_[i] = charge(i);
    }
    batchKernels<Real>().structureFactors(table(),
                                          columns_.data(),
                                          static_cast<int>(columns_.size()),
                                          charges_.data(),
                                          products_.data(),
                                          setOf(set));
}

template<class Real>
PhaseTable<Real> WaveSums<Real>::table() const
{
    return { { phases_[0].data(), phases_[1].data(), phases_[2].data() }, n_ };
}

template<class Real>
void WaveSums<Real>::compute(const Real* q, int step, bool virial, WaveTotals* totals)
{
    transform(0, [&](int i) { return q[static_cast<size_t>(i) * step]; });
    for (const WaveColumn& column : columns_)
    {
        totals->energy += weigh(column, virial, &totals->virial);
    }
    Real* const fields = fields_.data();
    batchKernels<Real>().waveFields(table(),
                                    columns_.data(),
                                    static_cast<int>(columns_.size()),
                                    setOf(0),
                                    { fields, fields + n_, fields + 2 * n_, fields + 3 * n_ });
}

template<class Real>
void WaveSums<Real>::computeTangent(const Real* q,
                                    int step,
                                    const WaveDirection<Real>& direction,
                                    Mat3* virial)
{
    sums_.resize(c_sets * static_cast<size_t>(count_) * WaveProducts);
    transform(0, [&](int i) { return q[static_cast<size_t>(i) * step]; });
    transform(1, [&](int i) { return direction.q[static_cast<size_t>(i) * step]; });
    for (int axis = 0; axis < 3; axis++)
    {
        transform(2 + axis,
                  [&](int i)
                  {
                      const auto charge = static_cast<double>(q[static_cast<size_t>(i) * step]);
                      return static_cast<Real>(
                              2 * c_pi * charge
                              * direction.fractions[3 * static_cast<size_t>(i) + axis]);
                  });
    }
    for (const WaveColumn& column : columns_)
    {
        weighTangent(column, direction.strain, virial);
    }
    const auto at          = [&](int field) { return fields_.data() + field * n_; };
    const auto columnCount = static_cast<int>(columns_.size());
    batchKernels<Real>().waveCurvatures(
            table(),
            columns_.data(),
            columnCount,
            setOf(0),
            { at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9) });
    batchKernels<Real>().waveFields(
            table(),
            columns_.data(),
            columnCount,
            setOf(1),
            { at(c_fields), at(c_fields + 1), at(c_fields + 2), at(c_fields + 3) });
}

template class WaveSums<float>;
template class WaveSums<double>;

} // namespace farfield
