/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/wave_sums.h"

#include <algorithm>
#include <cmath>

namespace farfield
{
namespace
{


//! 1 / 4a^2, nm^2.
double inverseWidth(const EwaldPlan& plan)
{
    return 0.25 / (plan.splitting * plan.splitting);
}

} // namespace

template<class Real>
void WaveSums<Real>::build(const ReducedBox& box,
                           const EwaldPlan& plan,
                           double coulombConstant,
                           const double* f,
                           int n,
                           bool isSlab)
{
    waves_     = 2 * M_PI * box.inverse.transpose();
    plan_      = plan;
    scale_     = 4 * M_PI * coulombConstant / box.volume;
    particles_ = n;
    n_         = padded(n);
    columns_.find(waves_, plan.waveCutoff);
    coordinates_.assign(n_, Real(0));
    charges_.assign(n_, Real(0));
    products_.resize(6 * static_cast<size_t>(n_));
    fields_.resize((c_fields + 4) * static_cast<size_t>(n_));
    sums_.resize(static_cast<size_t>(columns_.count) * WaveProducts);
    for (int axis = 0; axis < 3; axis++)
    {
        const int range = columns_.range[axis];
        for (int i = 0; i < n; i++)
        {
            const double at = f[3 * static_cast<size_t>(i) + axis];
            coordinates_[i] = static_cast<Real>(at - originOfPhases(at, axis, isSlab));
        }
        phases_[axis].resize((range + 1) * 2 * static_cast<size_t>(n_));
        batchKernels<Real>().phases(coordinates_.data(), n_, range, phases_[axis].data());
    }
    alongThird_.resize(columns_.range[2] + 1);
    for (int l = 0; l <= columns_.range[2]; l++)
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
    const double inverse           = inverseWidth(plan_);
    const Eigen::RowVector3d third = waves_.row(2);
    const double thirdSquare       = third.squaredNorm();
    Wave wave;
    for (wave.signK = firstSignK(column); wave.signK <= 1; wave.signK += 2)
    {
        const Eigen::RowVector3d v =
                column.h * waves_.row(0) + wave.signK * column.k * waves_.row(1);
        for (wave.signL = firstSignL(column); wave.signL <= 1; wave.signL += 2)
        {
            // exp(-k^2 / 4a^2) is a product of these
            const double along  = 2 * wave.signL * v.dot(third);
            const double factor = std::exp(-inverse * along);
            double ofPlane      = scale_ * std::exp(-inverse * v.squaredNorm());
            for (wave.l = 0; wave.l <= column.last; wave.l++, ofPlane *= factor)
            {
                wave.square = v.squaredNorm() + wave.l * (along + wave.l * thirdSquare);
                if (wave.square > cutoff2 || !countsWith(column, wave.signL, wave.l))
                {
                    continue;
                }
                Eigen::Map<Eigen::RowVector3d>(wave.k) = v + wave.signL * wave.l * third;
                wave.weight = ofPlane * alongThird_[wave.l] / wave.square;
                use(wave);
            }
        }
    }
}

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
double WaveSums<Real>::weigh(const WaveColumn& column, double* virial)
{
    double energy = 0;
    weights_.assign((column.last + 1) * static_cast<size_t>(WaveProducts), 0);
    forWaves(column,
             [&](const Wave& wave)
             {
                 const StructureFactor s =
                         structureFactor(sumsOf(0, column, wave.l), wave.signK, wave.signL);
                 const double e = energyOf(wave, s);
                 energy += e;
                 if (virial != nullptr)
                 {
                     addWaveVirial(wave, e, inverseWidth(plan_), virial);
                 }
                 addWave(2 * wave.weight,
                         s,
                         wave.signK,
                         wave.signL,
                         weights_.data() + wave.l * static_cast<size_t>(WaveProducts));
             });
    keepWeights(0, column, weights_);
    return energy;
}

template<class Real>
void WaveSums<Real>::weighTangent(const WaveColumn& column, const double* strain, double* virial)
{
    const double inverse = inverseWidth(plan_);
    weights_.assign((column.last + 1) * static_cast<size_t>(WaveProducts), 0);
    tangents_.assign(weights_.size(), 0);
    const auto use = [&](const Wave& wave)
    {
        StructureFactor s[c_tangentSets];
        for (int set = 0; set < c_tangentSets; set++)
        {
            s[set] = structureFactor(sumsOf(set, column, wave.l), wave.signK, wave.signL);
        }
        const int numbers[]         = { column.h, wave.signK * column.k, wave.signL * wave.l };
        const StrainedWave strained = strainedWave(wave, strain, inverse);
        const StructureFactor moved = movedFactor(s, numbers);
        if (virial != nullptr)
        {
            addVirialTangent(wave, strained, s[0], moved, inverse, virial);
        }
        const size_t at        = wave.l * static_cast<size_t>(WaveProducts);
        const double twice     = 2 * wave.weight;
        double* const tangents = tangents_.data() + at;
        addWave(twice, s[0], wave.signK, wave.signL, weights_.data() + at);
        addWave(twice * strained.rho, s[0], wave.signK, wave.signL, tangents);
        addWave(twice, moved, wave.signK, wave.signL, tangents);
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
                                          columns_.columns.data(),
                                          static_cast<int>(columns_.columns.size()),
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
    for (const WaveColumn& column : columns_.columns)
    {
        totals->energy += weigh(column, virial ? totals->virial : nullptr);
    }
    Real* const fields = fields_.data();
    batchKernels<Real>().waveFields(table(),
                                    columns_.columns.data(),
                                    static_cast<int>(columns_.columns.size()),
                                    setOf(0),
                                    { fields, fields + n_, fields + 2 * n_, fields + 3 * n_ });
}

template<class Real>
void WaveSums<Real>::computeTangent(const Real* q,
                                    int step,
                                    const WaveDirection<Real>& direction,
                                    double* virial)
{
    sums_.resize(c_tangentSets * static_cast<size_t>(columns_.count) * WaveProducts);
    transform(0, [&](int i) { return q[static_cast<size_t>(i) * step]; });
    transform(1, [&](int i) { return direction.q[static_cast<size_t>(i) * step]; });
    for (int axis = 0; axis < 3; axis++)
    {
        transform(2 + axis,
                  [&](int i)
                  {
                      const auto charge = static_cast<double>(q[static_cast<size_t>(i) * step]);
                      return static_cast<Real>(
                              2 * M_PI * charge
                              * direction.fractions[3 * static_cast<size_t>(i) + axis]);
                  });
    }
    const Eigen::Matrix<double, 3, 3, Eigen::RowMajor> strain = direction.strain;
    for (const WaveColumn& column : columns_.columns)
    {
        weighTangent(column, strain.data(), virial);
    }
    const auto at          = [&](int field) { return fields_.data() + field * n_; };
    const auto columnCount = static_cast<int>(columns_.columns.size());
    batchKernels<Real>().waveCurvatures(
            table(),
            columns_.columns.data(),
            columnCount,
            setOf(0),
            { at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9) });
    batchKernels<Real>().waveFields(
            table(),
            columns_.columns.data(),
            columnCount,
            setOf(1),
            { at(c_fields), at(c_fields + 1), at(c_fields + 2), at(c_fields + 3) });
}

template class WaveSums<float>;
template class WaveSums<double>;

} // namespace farfield
