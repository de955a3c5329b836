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
    atTarget_.resize(channels);
    charged_        = 0;
    squaredCharges_ = 0;
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
    const int n      = system_.n;
    const int stride = padded(n + c_batchPadding);
    for (auto* array : { &x_, &y_, &z_ })
    {
        array->resize(stride);
    }
    carried_.resize(static_cast<size_t>(stride) * columns_);
    for (int i = 0; i < n; i++)
    {
        x_[i] = system_.x[3 * static_cast<size_t>(i)];
        y_[i] = system_.x[3 * static_cast<size_t>(i) + 1];
        z_[i] = system_.x[3 * static_cast<size_t>(i) + 2];
        for (int c = 0; c < columns_; c++)
        {
            carried_[static_cast<size_t>(c) * stride + i] =
                    sources_[static_cast<size_t>(i) * columns_ + c];
        }
    }
    PairTask<Real, Real> task = {};
    task.x                    = x_.data();
    task.y                    = y_.data();
    task.z                    = z_.data();
    task.carried              = carried_.data();
    task.columns              = columns_;
    task.stride               = stride;
    task.channels             = options_.channels;
    task.unit                 = 1;
    task.squareCutoff         = std::numeric_limits<Real>::max();
    task.virial               = result->wantsVirial;
    buffers_.resize(n, columns_);
    const auto kernel = isTangent_ ? batchKernels<Real>().tangents : batchKernels<Real>().pairs;
    for (int i = 0; i < n; i++)
    {
        const PairRow rows[]      = { { 0, i }, { i + 1, n } };
        const PairSums<Real> sums = kernel(task, i, rows, 2, &buffers_, atTarget_.data());
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
void EwaldSystem<Real>::addWaveTangents(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const int channels = options_.channels;
    waves_.build(box_, plan, options_.coulombConstant, f_.data(), system_.n);
    const Mat3 toGradient = 2 * c_pi * box_.inverse;
    for (int c = 0; c < channels; c++)
    {
        waves_.computeTangent(system_.q + c,
                              channels,
                              { dCharges_.data() + c, fractions_.data(), strain_ },
                              result->wantsVirial ? &result->virial : nullptr);
        for (int i = 0; i < system_.n; i++)
        {
            const size_t at = static_cast<size_t>(i) * channels + c;
            const Vec3 fraction =
                    2 * c_pi
                    * Eigen::Map<const Vec3>(fractions_.data() + 3 * static_cast<size_t>(i));
            Vec3 gradient, tangent;
            Mat3 curvature;
            for (int a = 0; a < 3; a++)
            {
                gradient[a] = static_cast<double>(waves_.gradient(a)[i]);
                tangent[a]  = static_cast<double>(waves_.tangentGradient(a)[i]);
                for (int b = 0; b < 3; b++)
                {
                    curvature(a, b) = static_cast<double>(waves_.curvature(a, b)[i]);
                }
            }
            potentials_[at] +=
                    static_cast<double>(waves_.tangentPotentials()[i]) + fraction.dot(gradient);
            const Vec3 field  = toGradient * gradient;
            const Vec3 change = toGradient * (tangent + curvature * fraction) - strain_ * field;
            Eigen::Map<Vec3>(forces_.data() + 3 * static_cast<size_t>(i)) -=
                    static_cast<double>(dCharges_[at]) * field
                    + static_cast<double>(system_.q[at]) * change;
        }
    }
}

template<class Real>
void EwaldSystem<Real>::addTangentsOfConstants(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const auto [self, background] = constants(plan);
    for (int c = 0; c < options_.channels; c++)
    {
        double net = 0;
        for (int i = 0; i < system_.n; i++)
        {
            net += static_cast<double>(dCharges_[static_cast<size_t>(i) * options_.channels + c]);
        }
        const double ofNet = background * (net - strain_.trace() * net_[c]);
        result->virial += 0.5 * net_[c] * (ofNet + background * net) * Mat3::Identity();
        for (int i = 0; i < system_.n; i++)
        {
            const size_t at = static_cast<size_t>(i) * options_.channels + c;
            potentials_[at] -= 2 * (self * static_cast<double>(dCharges_[at]) + ofNet);
        }
    }
}

template<class Real>
std::array<double, 2> EwaldSystem<Real>::constants(const EwaldPlan& plan) const
{
    const double k    = options_.coulombConstant;
    const bool points = options_.smearing == 0;
    return { points || !options_.selfEnergy ? k * plan.splitting / std::sqrt(c_pi) : 0,
             points ? k * c_pi / (2 * plan.splitting * plan.splitting * box_.volume) : 0 };
}

template<class Real>
void EwaldSystem<Real>::addConstants(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const auto [self, background] = constants(plan);
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
void EwaldSystem<Real>::sumPairs(const EwaldPlan& plan, SystemResult<Real>* result)
{
    images_.build(box_, f_.data(), sources_, system_.n, columns_, plan.cutoff);
    auto task          = images_.task();
    task.channels      = options_.channels;
    task.splitting     = static_cast<Real>(plan.splitting);
    const double reach = plan.cutoff / static_cast<double>(task.unit);
    task.squareCutoff  = static_cast<Real>(reach * reach);
    task.virial        = result->wantsVirial;
    for (int k = 0; k < 9; k++)
    {
        task.strain[k / 3][k % 3] = static_cast<Real>(strain_(k / 3, k % 3));
    }
    buffers_.resize(images_.size(), columns_);
    const auto kernel =
            isTangent_ ? batchKernels<Real>().tangentsOfImages : batchKernels<Real>().pairsOfImages;
    const double contact = images_.rounding() * images_.rounding();
    for (int i = 0; i < system_.n; i++)
    {
        images_.findRows(i, &rows_);
        const PairSums<Real> sums = kernel(task,
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

template<class Real>
void EwaldSystem<Real>::sumPeriodic(const EwaldPlan& plan, SystemResult<Real>* result)
{
    if (plan.cutoff > 0)
    {
        sumPairs(plan, result);
    }
    if (isTangent_)
    {
        addWaveTangents(plan, result);
        addTangentsOfConstants(plan, result);
        return;
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
EwaldPlan EwaldSystem<Real>::planFor(double error, double detour) const
{
    const EwaldCase model = {
        charged_, options_.coulombConstant * squaredCharges_, box_.volume, error
    };
    if (options_.smearing == 0)
    {
        return fastestPlan(model, detour);
    }
    EwaldPlan plan  = planOfWaves(model, 1 / (std::sqrt(2.0) * options_.smearing));
    plan.waveCutoff = options_.waveCutoff > 0 ? options_.waveCutoff : plan.waveCutoff * detour;
    return plan;
}

template<class Real>
void EwaldSystem<Real>::clear(SystemResult<Real>* result)
{
    forces_.assign(3 * static_cast<size_t>(system_.n), 0);
    potentials_.assign(static_cast<size_t>(system_.n) * options_.channels, 0);
    result->energy = 0;
    result->virial = Mat3::Zero();
}

template<class Real>
void EwaldSystem<Real>::finish(const SystemResult<Real>& result) const
{
    const auto narrowed = [](double value) { return static_cast<Real>(value); };
    std::transform(forces_.begin(), forces_.end(), result.forces, narrowed);
    if (result.potentials != nullptr)
    {
        std::transform(potentials_.begin(), potentials_.end(), result.potentials, narrowed);
    }
}

template<class Real>
double EwaldSystem<Real>::evaluate(const BatchSystem<Real>& system,
                                   const Sharpness& sharpness,
                                   SystemResult<Real>* result)
{
    look(system);
    isTangent_ = false;
    sources_   = system.q;
    columns_   = options_.channels;
    clear(result);
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
            result->error = options_.accuracy * force / sharpness.tightening;
            sumPeriodic(planFor(result->error, sharpness.detour), result);
            const double found = std::max(least, typicalForce());
            suffices           = sharpness.force > 0 || options_.waveCutoff > 0 || found >= force;
            if (!suffices)
            {
                // somewhat less, or rounding would ask for another round
                force = std::max(least, 0.9 * found);
                clear(result);
            }
        }
    }
    finish(*result);
    return force;
}

template<class Real>
void EwaldSystem<Real>::head(const SystemDirection<Real>& direction)
{
    const int channels = options_.channels;
    const auto n       = static_cast<size_t>(system_.n);
    strain_            = Mat3::Zero();
    if (hasImages() && direction.box != nullptr)
    {
        using Rows = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>;
        strain_    = Mat3(Rows(system_.box)).inverse() * Rows(direction.box);
    }
    dCharges_.assign(n * channels, Real(0));
    if (direction.q != nullptr)
    {
        std::copy_n(direction.q, n * channels, dCharges_.begin());
    }
    fractions_.assign(3 * n, 0);
    columns_ = 2 * channels + 3;
    withDirection_.resize(n * columns_);
    for (size_t i = 0; i < n; i++)
    {
        Eigen::RowVector3d move = Eigen::RowVector3d::Zero();
        if (direction.x != nullptr)
        {
            move = Eigen::Map<const Eigen::Matrix<Real, 1, 3>>(direction.x + 3 * i)
                           .template cast<double>();
        }
        if (hasImages())
        {
            move -= Eigen::Map<const Eigen::Matrix<Real, 1, 3>>(system_.x + 3 * i)
                            .template cast<double>()
                    * strain_;
            Eigen::Map<Eigen::RowVector3d>(fractions_.data() + 3 * i) = move * box_.inverse;
        }
        Real* const to = withDirection_.data() + i * columns_;
        std::copy_n(system_.q + i * channels, channels, to);
        std::copy_n(dCharges_.data() + i * channels, channels, to + channels);
        for (int k = 0; k < 3; k++)
        {
            to[2 * channels + k] = static_cast<Real>(move[k]);
        }
    }
    sources_   = withDirection_.data();
    isTangent_ = true;
}

template<class Real>
void EwaldSystem<Real>::evaluateTangent(const BatchSystem<Real>& system,
                                        const SystemDirection<Real>& direction,
                                        double error,
                                        SystemResult<Real>* result)
{
    look(system);
    head(direction);
    if (charged_ == 0)
    {
        // there is nothing yet but potentials of the charges to come
        evaluate({ system.x, dCharges_.data(), system.box, system.n }, { 1, 0, 1 }, result);
        std::fill_n(result->forces, 3 * static_cast<size_t>(system.n), Real(0));
        result->virial = Mat3::Zero();
        return;
    }
    clear(result);
    if (hasImages())
    {
        sumPeriodic(planFor(error, 1), result);
    }
    else
    {
        sumOpen(result);
    }
    finish(*result);
}

template class EwaldSystem<float>;
template class EwaldSystem<double>;

} // namespace farfield
