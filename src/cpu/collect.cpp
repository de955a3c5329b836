/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The sums of near and far field, and what follows from them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/cpu_backend.h"
#include "operators/background.h"

namespace farfield
{

template<class Real>
Totals CpuBackend<Real>::collectSites()
{
    const double perCap = this->fieldCap_ > 0 ? 1 / this->fieldCap_ : 0;
    // energies and potentials have it, derivatives do not
    const double ofBackground = this->task_.request.energy ? potentialOfBackground() : 0;
    const auto sums           = sites_.collect(
            list_, this->task_, charges_.q, { rotation_, rootCoulomb_, ofBackground, perCap });
    if (this->fieldCap_ > 0)
    {
        this->cappedFields_ = sums.capped;
    }
    sums_.energy            = sums.energy;
    sums_.energyTimesDegree = sums.timesDegree;
    return sums_.totals(this->task_.request, rotation_);
}

template<class Real>
Totals CpuBackend<Real>::collect()
{
    if (areSites())
    {
        return collectSites();
    }
    const int n           = charges_.count();
    constexpr int c_chunk = NearForces<Real>::c_chunk;
    const int chunks      = (n + c_chunk - 1) / c_chunk;
    cappedOfChunk_.assign(chunks, 0.0);
    const double ofBackground = wantsPotentials() ? potentialOfBackground() : 0;
    team_.add(chunks,
              [&](int chunk, int /*thread*/)
              {
                  const int begin = chunk * c_chunk;
                  cappedOfChunk_[chunk] =
                          collectChunk(begin, std::min(n, begin + c_chunk), ofBackground);
              });
    if (partition_ != nullptr)
    {
        partition_->ranks().confirm(); // forces change on all ranks, or on none
    }
    // nothing fails any more
    if (this->task_.request.replaceForces && !charges_.allTakePart())
    {
        std::fill_n(this->task_.forces, 3 * charges_.q.size(), Real(0));
    }
    if (wantsPotentials())
    {
        std::fill_n(this->task_.potentials, charges_.q.size(), Real(0));
    }
    team_.run();
    if (this->fieldCap_ > 0)
    {
        this->cappedFields_ = std::accumulate(cappedOfChunk_.begin(), cappedOfChunk_.end(), 0.0);
    }
    return sums_.totals(this->task_.request, rotation_);
}

template<class Real>
double CpuBackend<Real>::collectChunk(int begin, int end, double ofBackground)
{
    const Eigen::Matrix<Real, 3, 3> R = rotation_.template cast<Real>();
    const bool replace                = this->task_.request.replaceForces;
    const std::vector<Real>& excluded = near_.excludedForces();
    Real* forces                      = this->task_.forces;
    const Real* q                     = list_.particles().q;
    const Real idle                   = static_cast<Real>(largestIdle<Real>(rootCoulomb_));
    const Real perUnit =
            this->fieldCap_ > 0 ? static_cast<Real>(rootCoulomb_ / this->fieldCap_) : Real(0);
    for (const auto* parts : { &near_.parts(), &functions_.parts() })
    {
        for (const auto& own : *parts)
        {
            if (!own.touched[begin / NearForces<Real>::c_chunk])
            {
                continue;
            }
            for (int i = begin; i < end; i++)
            {
                fx_[i] += own.x[i];
                fy_[i] += own.y[i];
                fz_[i] += own.z[i];
            }
            for (int i = begin; wantsPotentials() && i < end; i++)
            {
                potentials_[i] += own.potential[i];
            }
        }
    }
    double capped = 0;
    for (int i = begin; i < end; i++)
    {
        const size_t to = 3 * static_cast<size_t>(list_.atom()[i]);
        Real square     = 0;
        for (int k = 0; k < 3; k++)
        {
            const Real sum =
                    excluded[to + k] + (fx_[i] * R(0, k) + fy_[i] * R(1, k) + fz_[i] * R(2, k));
            forces[to + k]    = replace ? sum : forces[to + k] + sum;
            const Real inCaps = sum * (perUnit / q[i]);
            square += inCaps * inCaps;
        }
        capped += std::abs(q[i]) > idle ? std::min<double>(1, square) : 0;
    }
    for (int i = begin; wantsPotentials() && i < end; i++)
    {
        const int atom   = list_.atom()[i];
        const double sum = static_cast<double>(potentials_[i]) + near_.excludedPotentials()[atom];
        this->task_.potentials[atom] = static_cast<Real>(rootCoulomb_ * (sum + ofBackground));
    }
    return capped;
}

template<class Real>
double CpuBackend<Real>::farEnergy()
{
    const Level<Real>& level = leaves();
    const int n              = coefficientCount(discretisation_.order);
    std::vector<double> partial(n, 0.0);
    team_.forTasks(n,
                   [&](int i, int /*thread*/)
                   {
                       const size_t row = static_cast<size_t>(i) * level.padded;
                       // cells that are padding have no multipoles
                       partial[i] = cpuKernels<Real>().exactDot(
                               level.M.data() + row, level.L.data() + row, level.padded);
                   });
    double energy = 0;
    for (double part : partial)
    {
        energy += 0.5 * part / level.grid.unit();
    }
    if (charges_.net != 0)
    {
        const SquaredDistances sums = squaredDistances();
        energy += backgroundEnergy(background(level), level.grid.unit())
                  * (sums.leaves + sums.level0);
    }
    return energy;
}

template<class Real>
void CpuBackend<Real>::addFarPotentials()
{
    const Level<Real>& level = leaves();
    const Real curvature =
            static_cast<Real>(backgroundCurvature(background(level), level.grid.unit()));
    potentials_.resize(fx_.size());
    slots_.addRanges(&team_,
                     [this, &level, curvature](int begin, int end, int /*range*/)
                     {
                         cpuKernels<Real>().potentials(list_.particles(),
                                                       slots_.view(),
                                                       tables_,
                                                       begin,
                                                       end,
                                                       level.L.data(),
                                                       curvature,
                                                       potentials_.data());
                     });
}

template<class Real>
double CpuBackend<Real>::potentialOfBackground()
{
    const Level<Real>& level = leaves();
    return backgroundCurvature(background(level, 1), level.grid.unit()) * squaredDistances().level0;
}

template<class Real>
auto CpuBackend<Real>::squaredDistances() -> SquaredDistances
{
    const Particles<Real> p = list_.particles();
    double trace            = 0;
    for (int i = 0; i < charges_.count(); i++)
    {
        const double x = p.x[i], y = p.y[i], z = p.z[i];
        trace += static_cast<double>(p.q[i]) * (x * x + y * y + z * z);
    }
    trace += areSites() ? sites_.squaredDistances(p) : 0;
    double coarse = trace;
    for (size_t l = 1; l < levels_.size(); l++)
    {
        const double unit = levels_[l].grid.unit();
        coarse += unit * unit * tree_->traceShift(levels_[l]);
    }
    return { trace, coarse };
}

template Totals CpuBackend<float>::collect();
template Totals CpuBackend<double>::collect();
template Totals CpuBackend<float>::collectSites();
template Totals CpuBackend<double>::collectSites();
template double CpuBackend<float>::farEnergy();
template double CpuBackend<double>::farEnergy();
template void CpuBackend<float>::addFarPotentials();
template void CpuBackend<double>::addFarPotentials();

} // namespace farfield
