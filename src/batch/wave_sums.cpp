/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/wave_sums.h"

#include <algorithm>
#include <cmath>

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
    fields_.resize(4 * static_cast<size_t>(n_));
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
double WaveSums<Real>::weigh(const WaveColumn& column, bool virial, Mat3* xi)
{
    const double cutoff2           = plan_.waveCutoff * plan_.waveCutoff;
    const double inverse           = 0.25 / (plan_.splitting * plan_.splitting);
    const Eigen::RowVector3d third = waves_.row(2);
    const double thirdSquare       = third.squaredNorm();
    const bool isPlane             = column.h == 0 && column.k == 0;
    double energy                  = 0;
    weights_.assign((column.last + 1) * static_cast<size_t>(WaveProducts), 0);
    // of opposite waves one, and each once
    for (int signK = column.k > 0 && column.h > 0 ? -1 : 1; signK <= 1; signK += 2)
    {
        const Eigen::RowVector3d v = column.h * waves_.row(0) + signK * column.k * waves_.row(1);
        for (int signL = isPlane ? 1 : -1; signL <= 1; signL += 2)
        {
            // exp(-k^2 / 4a^2) is a product of these
            const double along  = 2 * signL * v.dot(third);
            const double factor = std::exp(-inverse * along);
            double ofPlane      = scale_ * std::exp(-inverse * v.squaredNorm());
            for (int l = 0; l <= column.last; l++, ofPlane *= factor)
            {
                const double k2 = v.squaredNorm() + l * (along + l * thirdSquare);
                if (k2 > cutoff2 || (l == 0 && (isPlane || signL < 0)))
                {
                    continue;
                }
                const Real* const s =
                        sums_.data() + (column.first + l) * static_cast<size_t>(WaveProducts);
                const double w  = ofPlane * alongThird_[l] / k2;
                const double re = s[CCC] - signK * s[SSC] - signL * (s[SCS] + signK * s[CSS]);
                const double im = s[SCC] + signK * s[CSC] + signL * (s[CCS] - signK * s[SSS]);
                const double e  = w * (re * re + im * im);
                energy += e;
                if (virial)
                {
                    const Eigen::RowVector3d k = v + signL * l * third;
                    *xi += e * (1 / k2 + inverse) * k.transpose() * k - 0.5 * e * Mat3::Identity();
                }
                const double a        = 2 * w * re;
                const double b        = 2 * w * im;
                double* const weights = weights_.data() + l * static_cast<size_t>(WaveProducts);
                weights[CCC] += a;
                weights[SSC] -= signK * a;
                weights[SCC] += b;
                weights[CSC] += signK * b;
                weights[CCS] += signL * b;
                weights[SSS] -= signL * signK * b;
                weights[SCS] -= signL * a;
                weights[CSS] -= signL * signK * a;
            }
        }
    }
    std::transform(weights_.begin(),
                   weights_.end(),
                   sums_.begin() + column.first * static_cast<std::ptrdiff_t>(WaveProducts),
                   [](double w) { return static_cast<Real>(w); });
    return energy;
}

template<class Real>
void WaveSums<Real>::compute(const Real* q, int step, bool virial, WaveTotals* totals)
{
    const BatchKernels<Real>& kernels = batchKernels<Real>();
    const auto columnCount            = static_cast<int>(columns_.size());
    const PhaseTable<Real> phases = { { phases_[0].data(), phases_[1].data(), phases_[2].data() },
                                      n_ };
    for (int i = 0; i < particles_; i++)
    {
        charges_[i] = q[static_cast<size_t>(i) * step];
    }
    kernels.structureFactors(
            phases, columns_.data(), columnCount, charges_.data(), products_.data(), sums_.data());
    for (const WaveColumn& column : columns_)
    {
        totals->energy += weigh(column, virial, &totals->virial);
    }
    Real* const fields = fields_.data();
    kernels.waveFields(phases,
                       columns_.data(),
                       columnCount,
                       sums_.data(),
                       { fields, fields + n_, fields + 2 * n_, fields + 3 * n_ });
}

template class WaveSums<float>;
template class WaveSums<double>;

} // namespace farfield
