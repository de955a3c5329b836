/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/ewald_system.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace farfield
{

template<class Real>
void EwaldSystem<Real>::lookAtSlab()
{
    double normal[3], lowest = 0, highest = 0;
    findNormal(system_.box, normal);
    for (int i = 0; i < system_.n; i++)
    {
        const Real* const x = system_.x + 3 * static_cast<size_t>(i);
        const double at[]   = { static_cast<double>(x[0]),
                                static_cast<double>(x[1]),
                                static_cast<double>(x[2]) };
        const double z      = dotOf(at, normal);
        lowest              = i == 0 ? z : std::min(lowest, z);
        highest             = i == 0 ? z : std::max(highest, z);
    }
    slab_ = slabBox(system_.box, lowest, highest, options_.accuracy);
    if (slab_.isTooHigh)
    {
        throw Error(ErrorCode::InvalidArgument, tooHighMessage(slab_.thickness));
    }
}

template<class Real>
double EwaldSystem<Real>::nearForce() const
{
    const int n = system_.n, channels = options_.channels;
    const Eigen::Matrix<double, 3, 3, Eigen::RowMajor> rows = box_.vectors;
    const double fullness                                   = isSlab() ? slab_.fullness : 1;
    const NearForces near(rows.data(), box_.volume * fullness, n, options_.smearing);
    float forces[c_samples];
    for (int k = 0; k < samplesOf(n); k++)
    {
        const auto i  = static_cast<size_t>(particleOfSample(k, n));
        float force[] = { 0, 0, 0 };
        bool charged  = false;
        for (size_t j = 0; j < static_cast<size_t>(n); j++)
        {
            float charges = 0;
            for (int c = 0; c < channels; c++)
            {
                const auto own = static_cast<float>(system_.q[i * channels + c]);
                charged        = charged || own != 0;
                charges += own * static_cast<float>(system_.q[j * channels + c]);
            }
            near.add(f_.data() + 3 * i, f_.data() + 3 * j, charges, force);
        }
        forces[k] =
                charged ? std::sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2])
                        : -1;
    }
    return middleOf(forces, samplesOf(n));
}

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
        using Rows = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>;
        if (isSlab())
        {
            lookAtSlab();
        }
        box_ = ReducedBox(Mat3(Rows(isSlab() ? slab_.rows : system.box)));
        // the middle of a slab is in the middle of its box
        const double shift = isSlab() ? 0.5 - slab_.middle / slab_.height : 0;
        f_.resize(3 * static_cast<size_t>(system.n));
        for (int i = 0; i < system.n; i++)
        {
            const Real* const x = system.x + 3 * static_cast<size_t>(i);
            for (int k = 0; k < 3; k++)
            {
                const double f = static_cast<double>(x[0]) * box_.inverse(0, k)
                                 + static_cast<double>(x[1]) * box_.inverse(1, k)
                                 + static_cast<double>(x[2]) * box_.inverse(2, k)
                                 + (k == 2 ? shift : 0);
                // written so that NaN fails
                if (!(std::abs(f) < c_farthest))
                {
                    throw Error(ErrorCode::InvalidArgument, tooFarMessage(i));
                }
                f_[3 * static_cast<size_t>(i) + k] = f - std::floor(f);
            }
        }
    }
}

template<class Real>
void EwaldSystem<Real>::refuseContactOf(int target, double rounding, bool potentials) const
{
    refuseContact(system_,
                  hasImages() ? &box_ : nullptr,
                  options_.channels,
                  target,
                  rounding,
                  potentials);
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
        result->virial -= 0.25 * k * tensorOf(sums.virial);
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
            refuseContactOf(i, 0, result->potentials != nullptr);
        }
        addPairs(i, sums, result);
    }
}

template<class Real>
void EwaldSystem<Real>::addWaves(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const int channels = options_.channels;
    waves_.build(box_, plan, options_.coulombConstant, f_.data(), system_.n, isSlab());
    WaveTotals totals;
    const Mat3 toForces = -2 * M_PI * box_.inverse;
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
    result->virial += tensorOf(totals.virial);
}

template<class Real>
void EwaldSystem<Real>::addWaveTangents(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const int channels = options_.channels;
    waves_.build(box_, plan, options_.coulombConstant, f_.data(), system_.n, isSlab());
    const Mat3 toGradient = 2 * M_PI * box_.inverse;
    double virial[6]      = {};
    for (int c = 0; c < channels; c++)
    {
        waves_.computeTangent(system_.q + c,
                              channels,
                              { dCharges_.data() + c, fractions_.data(), strain_ },
                              result->wantsVirial ? virial : nullptr);
        for (int i = 0; i < system_.n; i++)
        {
            const size_t at = static_cast<size_t>(i) * channels + c;
            const Vec3 fraction =
                    2 * M_PI
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
    result->virial += tensorOf(virial);
}

template<class Real>
void EwaldSystem<Real>::addTangentsOfConstants(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const auto [self, background] = constantsOf(options_, plan, box_.volume);
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
void EwaldSystem<Real>::addConstants(const EwaldPlan& plan, SystemResult<Real>* result)
{
    const auto [self, background] = constantsOf(options_, plan, box_.volume);
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
            refuseContactOf(i, images_.rounding(), result->potentials != nullptr);
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
    }
    else
    {
        addWaves(plan, result);
        addConstants(plan, result);
    }
    if (isSlab())
    {
        isTangent_ ? addTangentsOfSlab(result) : addSlab(result);
    }
}

template<class Real>
void EwaldSystem<Real>::addSlab(SystemResult<Real>* result)
{
    const int channels = options_.channels;
    const Eigen::Map<const Vec3> normal(slab_.normal);
    const SlabEnergy layers = energyOfSlab();
    double energy           = 0;
    for (int c = 0; c < channels; c++)
    {
        const auto at = [&](int i) { return static_cast<size_t>(i) * channels + c; };
        SlabMoments all;
        for (int i = 0; i < system_.n; i++)
        {
            all.add(static_cast<double>(system_.q[at(i)]), along(i));
        }
        energy += layers.of(all, all);
        for (int i = 0; i < system_.n; i++)
        {
            potentials_[at(i)] += layers.potential(all, along(i));
            Eigen::Map<Vec3>(forces_.data() + 3 * static_cast<size_t>(i)) +=
                    static_cast<double>(system_.q[at(i)]) * layers.field(all, along(i)) * normal;
        }
    }
    result->energy += energy;
    result->virial += energy * (normal * normal.transpose() - 0.5 * Mat3::Identity());
}

template<class Real>
void EwaldSystem<Real>::addTangentsOfSlab(SystemResult<Real>* result)
{
    const int channels = options_.channels;
    const Eigen::Map<const Vec3> normal(slab_.normal);
    const SlabEnergy layers = energyOfSlab();
    const double widens     = strain_.trace();
    // the normal follows the plane
    const Vec3 turn = strain_.transpose() * normal;
    double energy = 0, change = 0;
    for (int c = 0; c < channels; c++)
    {
        const auto at = [&](int i) { return static_cast<size_t>(i) * channels + c; };
        SlabMoments all, moved;
        for (int i = 0; i < system_.n; i++)
        {
            const auto q = static_cast<double>(system_.q[at(i)]);
            all.add(q, along(i));
            moved.addChange(q, along(i), static_cast<double>(dCharges_[at(i)]), changeAlong(i));
        }
        const double own = layers.of(all, all);
        energy += own;
        change += 2 * layers.of(all, moved) - widens * own;
        for (int i = 0; i < system_.n; i++)
        {
            const double z = along(i), dz = changeAlong(i);
            const double field = layers.field(all, z);
            potentials_[at(i)] += layers.potentialChange(all, moved, z, dz, widens);
            const auto q  = static_cast<double>(system_.q[at(i)]);
            const auto dq = static_cast<double>(dCharges_[at(i)]);
            Eigen::Map<Vec3>(forces_.data() + 3 * static_cast<size_t>(i)) +=
                    (dq * field + q * layers.fieldChange(all, moved, z, dz, widens)) * normal
                    + q * field * turn;
        }
    }
    result->virial += change * (normal * normal.transpose() - 0.5 * Mat3::Identity())
                      + energy * (turn * normal.transpose() + normal * turn.transpose());
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
        SystemTraits known = traits();
        known.nearForce    = sharpness.force > 0 ? 0 : nearForce();
        ForceAim aim(options_, known, sharpness, sizeof(Real));
        for (bool suffices = false; !suffices;)
        {
            clear(result);
            force         = aim.force();
            result->error = aim.error();
            sumPeriodic(plan(aim.error(), sharpness.detour), result);
            suffices = aim.suffices(
                    std::inner_product(forces_.begin(), forces_.end(), forces_.begin(), 0.0));
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
        double change[9];
        if (isSlab())
        {
            changeOfRows(slab_, direction.box, change);
        }
        strain_ = Mat3(Rows(isSlab() ? slab_.rows : system_.box)).inverse()
                  * Rows(isSlab() ? change : direction.box);
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
        sumPeriodic(plan(error, 1), result);
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
