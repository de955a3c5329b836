/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/ewald_system.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "choice/force_scale.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;
//! Before forces are known they are taken for this part of the force between typical neighbours.
constexpr double c_usual = 0.3;
//! Box vectors from the origin, as of a Solver.
constexpr double c_farthest = 1e9;

} // namespace

template<class Real>
void EwaldSystem<Real>::look(const BatchSystem<Real>& system)
{
    system_            = system;
    const int channels = options_.channels;
    charged_           = 0;
    squaredCharges_    = 0;
    net_.assign(channels, 0);
    squared_.assign(channels, 0);
    for (int i = 0; i < system.n; i++)
    {
        bool isCharged = false;
        for (int c = 0; c < channels; c++)
        {
            const auto q = static_cast<double>(system.q[static_cast<size_t>(i) * channels + c]);
            net_[c] += q;
            squared_[c] += q * q;
            squaredCharges_ += q * q;
            isCharged = isCharged || q != 0;
        }
        charged_ += isCharged;
    }
    if (hasImages())
    {
        box_ = ReducedBox(
                Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(system.box));
        f_.resize(3 * static_cast<size_t>(system.n));
        for (int i = 0; i < system.n; i++)
        {
            const Real* const x = system.x + 3 * static_cast<size_t>(i);
            for (int k = 0; k < 3; k++)
            {
                const double f = static_cast<double>(x[0]) * box_.inverse(0, k)
                                 + static_cast<double>(x[1]) * box_.inverse(1, k)
                                 + static_cast<double>(x[2]) * box_.inverse(2, k);
                // written so that NaN fails
                if (!(std::abs(f) < c_farthest))
                {
                    throw Error(ErrorCode::InvalidArgument,
                                "has its particle " + text(i)
                                        + " too far away: more than a billion box vectors.");
                }
                f_[3 * static_cast<size_t>(i) + k] = f - std::floor(f);
            }
        }
    }
}

template<class Real>
void EwaldSystem<Real>::refuseContact(int target, double rounding, bool potentials) const
{
    const int channels   = options_.channels;
    const auto chargesOf = [&](int i) { return system_.q + static_cast<size_t>(i) * channels; };
    for (int j = 0; j < system_.n; j++)
    {
        Vec3 d;
        for (int k = 0; k < 3; k++)
        {
            const size_t a = 3 * static_cast<size_t>(target) + k,
                         b = 3 * static_cast<size_t>(j) + k;
            d[k]           = hasImages()
                                     ? f_[a] - f_[b] - std::rint(f_[a] - f_[b])
                                     : static_cast<double>(system_.x[a]) - static_cast<double>(system_.x[b]);
        }
        if (j == target
            || (hasImages() ? Vec3(box_.vectors.transpose() * d) : d).norm() > 2 * rounding)
        {
            continue;
        }
        bool matters = false;
        for (int c = 0; c < channels; c++)
        {
            const bool one = chargesOf(target)[c] != 0, other = chargesOf(j)[c] != 0;
            matters = matters || (one && other) || (potentials && (one || other));
        }
        if (matters)
        {
            throw Error(
                    ErrorCode::InvalidArgument,
                    "has its particles " + text(std::min(target, j)) + " and "
                            + text(std::max(target, j))
                            + " at one place, where the energy or a potential is infinite: move "
                              "one of them.");
        }
    }
}

template<class Real>
void EwaldSystem<Real>::addPairs(int i, const PairSums<Real>& sums, SystemResult<Real>* result)
{
    const double k = options_.coulombConstant;
    for (int d = 0; d < 3; d++)
    {
        forces_[3 * static_cast<size_t>(i) + d] += k * sums.force[d];
    }
    for (int c = 0; c < options_.channels; c++)
    {
        const size_t at = static_cast<size_t>(i) * options_.channels + c;
        const double v  = k * atTarget_[c];
        potentials_[at] += v;
        result->energy += 0.5 * static_cast<double>(system_.q[at]) * v;
    }
    if (result->wantsVirial)
    {
        // each pair is at both of its particles
        const double w            = -0.25 * k;
        const int component[3][3] = { { 0, 3, 4 }, { 3, 1, 5 }, { 4, 5, 2 } };
        for (int a = 0; a < 3; a++)
        {
            for (int b = 0; b < 3; b++)
            {
                result->virial(a, b) += w * sums.virial[component[a][b]];
            }
        }
    }
}

template<class Real>
void EwaldSystem<Real>::sumOpen(SystemResult<Real>* result)
{
    const int n        = system_.n;
    const int channels = options_.channels;
    const int stride   = padded(n + c_batchPadding);
    for (auto* array : { &x_, &y_, &z_ })
    {
        array->resize(stride);
    }
    q_.resize(static_cast<size_t>(stride) * channels);
    for (int i = 0; i < n; i++)
    {
        x_[i] = system_.x[3 * static_cast<size_t>(i)];
        y_[i] = system_.x[3 * static_cast<size_t>(i) + 1];
        z_[i] = system_.x[3 * static_cast<size_t>(i) + 2];
        for (int c = 0; c < channels; c++)
        {
            q_[static_cast<size_t>(c) * stride + i] =
                    system_.q[static_cast<size_t>(i) * channels + c];
        }
    }
    PairTask<Real, Real> task = {};
    task.x                    = x_.data();
    task.y                    = y_.data();
    task.z                    = z_.data();
    task.q                    = q_.data();
    task.stride               = stride;
    task.channels             = channels;
    task.unit                 = 1;
    task.squareCutoff         = std::numeric_limits<Real>::max();
    task.virial               = result->wantsVirial;
    buffers_.resize(n, channels);
    for (int i = 0; i < n; i++)
    {
        const PairRow rows[] = { { 0, i }, { i + 1, n } };
        const PairSums<Real> sums =
                batchKernels<Real>().pairs(task, i, rows, 2, &buffers_, atTarget_.data());
        if (sums.nearest == 0)
        {
            refuseContact(i, 0, result->potentials != nullptr);
        }
        addPairs(i, sums, result);
    }
}

template<class Real>
void EwaldSystem<Real>::addWaves(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const int channels = options_.channels;
    waves_.build(box_, plan, options_.coulombConstant, f_.data(), system_.n);
    WaveTotals totals;
    const Mat3 toForces = -2 * c_pi * box_.inverse;
    for (int c = 0; c < channels; c++)
    {
        waves_.compute(system_.q + c, channels, result->wantsVirial, &totals);
        for (int i = 0; i < system_.n; i++)
        {
            const size_t at = static_cast<size_t>(i) * channels + c;
            potentials_[at] += static_cast<double>(waves_.potentials()[i]);
            const auto q      = static_cast<double>(system_.q[at]);
            const double g[3] = { q * static_cast<double>(waves_.gradient(0)[i]),
                                  q * static_cast<double>(waves_.gradient(1)[i]),
                                  q * static_cast<double>(waves_.gradient(2)[i]) };
            for (int d = 0; d < 3; d++)
            {
                forces_[3 * static_cast<size_t>(i) + d] +=
                        toForces(d, 0) * g[0] + toForces(d, 1) * g[1] + toForces(d, 2) * g[2];
            }
        }
    }
    result->energy += totals.energy;
    result->virial += totals.virial;
}

template<class Real>
void EwaldSystem<Real>::addConstants(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const double k    = options_.coulombConstant;
    const bool points = options_.smearing == 0;
    const double self = points || !options_.selfEnergy ? k * plan.splitting / std::sqrt(c_pi) : 0;
    const double background =
            points ? k * c_pi / (2 * plan.splitting * plan.splitting * box_.volume) : 0;
    for (int c = 0; c < options_.channels; c++)
    {
        const double ofBackground = background * net_[c] * net_[c];
        result->energy -= self * squared_[c] + ofBackground;
        result->virial += 0.5 * ofBackground * Mat3::Identity();
        for (int i = 0; i < system_.n; i++)
        {
            const size_t at = static_cast<size_t>(i) * options_.channels + c;
            potentials_[at] -=
                    2 * (self * static_cast<double>(system_.q[at]) + background * net_[c]);
        }
    }
}

template<class Real>
void EwaldSystem<Real>::sumPeriodic(const EwaldPlan& plan, SystemResult<Real>* result)
{
    if (plan.cutoff > 0)
    {
        images_.build(box_, f_.data(), system_.q, system_.n, options_.channels, plan.cutoff);
        auto task          = images_.task();
        task.splitting     = static_cast<Real>(plan.splitting);
        const double reach = plan.cutoff / static_cast<double>(task.unit);
        task.squareCutoff  = static_cast<Real>(reach * reach);
        task.virial        = result->wantsVirial;
        buffers_.resize(images_.size(), options_.channels);
        const double contact = images_.rounding() * images_.rounding();
        for (int i = 0; i < system_.n; i++)
        {
            images_.findRows(i, &rows_);
            const PairSums<Real> sums =
                    batchKernels<Real>().pairsOfImages(task,
                                                       images_.placeOf(i),
                                                       rows_.data(),
                                                       static_cast<int>(rows_.size()),
                                                       &buffers_,
                                                       atTarget_.data());
            if (static_cast<double>(sums.nearest) <= contact)
            {
                refuseContact(i, images_.rounding(), result->potentials != nullptr);
            }
            addPairs(i, sums, result);
        }
    }
    addWaves(plan, result);
    addConstants(plan, result);
}

template<class Real>
double EwaldSystem<Real>::typicalForce() const
{
    double square = 0;
    for (const double f : forces_)
    {
        square += f * f;
    }
    return std::sqrt(square / charged_);
}

template<class Real>
double EwaldSystem<Real>::evaluate(const BatchSystem<Real>& system,
                                   const Sharpness& sharpness,
                                   SystemResult<Real>* result)
{
    look(system);
    atTarget_.resize(options_.channels);
    const auto clear = [&]
    {
        forces_.assign(3 * static_cast<size_t>(system.n), 0);
        potentials_.assign(static_cast<size_t>(system.n) * options_.channels, 0);
        result->energy = 0;
        result->virial = Mat3::Zero();
    };
    clear();
    double force = sharpness.force;
    if (charged_ > 0 && !hasImages())
    {
        sumOpen(result);
    }
    else if (charged_ > 0)
    {
        const double pair =
                typicalPairForce(options_.coulombConstant, squaredCharges_, charged_, box_.volume);
        const double least = pair * leastPartOfPairForce(options_.accuracy, sizeof(Real));
        force = sharpness.force > 0 ? sharpness.force : std::max(least, c_usual * pair);
        for (bool suffices = false; !suffices;)
        {
            const EwaldCase model = { charged_,
                                      options_.coulombConstant * squaredCharges_,
                                      box_.volume,
                                      options_.accuracy * force / sharpness.tightening };
            if (options_.smearing > 0)
            {
                EwaldPlan plan  = planOfWaves(model, 1 / (std::sqrt(2.0) * options_.smearing));
                plan.waveCutoff = options_.waveCutoff > 0 ? options_.waveCutoff
                                                          : plan.waveCutoff * sharpness.detour;
                sumPeriodic(plan, result);
            }
            else
            {
                sumPeriodic(fastestPlan(model, sharpness.detour), result);
            }
            const double found = std::max(least, typicalForce());
            suffices           = sharpness.force > 0 || options_.waveCutoff > 0 || found >= force;
            if (!suffices)
            {
                // somewhat less, or rounding would ask for another round
                force = std::max(least, 0.9 * found);
                clear();
            }
        }
    }
    std::transform(forces_.begin(),
                   forces_.end(),
                   result->forces,
                   [](double f) { return static_cast<Real>(f); });
    if (result->potentials != nullptr)
    {
        std::transform(potentials_.begin(),
                       potentials_.end(),
                       result->potentials,
                       [](double v) { return static_cast<Real>(v); });
    }
    return force;
}

template class EwaldSystem<float>;
template class EwaldSystem<double>;

} // namespace farfield
