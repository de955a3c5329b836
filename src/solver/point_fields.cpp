/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/point_fields.h"

#include <algorithm>
#include <vector>

#include "operators/scaled_charges.h"

namespace farfield
{

template<class Real>
PointFields<Real>::PointFields(const Options& options) : options_(options)
{
    options_.tune          = false;
    options_.helperDevices = {};
}

template<class Real>
void PointFields<Real>::setUp(const ChargeSet<Real>& charges, int points)
{
    if (points_ == points)
    {
        return;
    }
    forget();
    if (!all_)
    {
        all_ = std::make_unique<SingleState<Real>>(options_);
        all_->serveProbes();
    }
    all_->settle();
    std::vector<Real> q = charges.charges();
    q.resize(q.size() + points, static_cast<Real>(c_idleCharge<Real>));
    // points have no excluded pairs
    const ExcludedPairs& excluded = charges.excluded();
    std::vector<int> offsets      = excluded.offsets;
    offsets.resize(q.size() + 1, offsets.back());
    all_->charges().setCharges(q.data(), static_cast<int>(q.size()));
    all_->charges().setExclusions(offsets.data(), excluded.partners.data());
    NearPairs<Real> nearPairs = charges.nearPairs();
    nearPairs.widths.resize(nearPairs.any() ? q.size() : 0, Real(0)); // points have no width
    all_->charges().setNearPairs(nearPairs);
    points_ = points;
}

template<class Real>
void PointFields<Real>::evaluate(const ChargeSet<Real>& charges,
                                 const Task<Real>& task,
                                 const Points<Real>& points)
{
    setUp(charges, points.count);
    const size_t particles = charges.count(), all = particles + points.count;
    std::vector<Real> positions(task.x, task.x + 3 * particles);
    positions.insert(positions.end(), points.at, points.at + 3 * static_cast<size_t>(points.count));
    std::vector<Real> forces(3 * all), own(points.potentials != nullptr ? all : 0);
    all_->evaluate({ positions.data(),
                     task.box,
                     forces.data(),
                     points.potentials != nullptr ? own.data() : nullptr,
                     ofAll(task.request) });
    if (points.potentials != nullptr)
    {
        std::copy(own.begin() + particles, own.end(), points.potentials);
    }
    if (points.fields != nullptr)
    {
        std::transform(
                forces.begin() + 3 * particles,
                forces.end(),
                points.fields,
                [](Real force)
                { return static_cast<Real>(static_cast<double>(force) / c_idleCharge<Real>); });
    }
}

template<class Real>
void PointFields<Real>::evaluateOnDevice(const ChargeSet<Real>& charges,
                                         const GpuBackend<Real>& gpu,
                                         const Task<Real>& task,
                                         const Points<Real>& points)
{
    if (!onDevice_)
    {
        onDevice_ = gpu.makePoints();
    }
    if (charges.charged() == 0 || points.count == 0)
    {
        onDevice_->clear(points.potentials, points.fields, points.count, task.stream);
        return;
    }
    setUp(charges, points.count);
    onDevice_->place(task.x, charges.count(), points.at, points.count, task.stream);
    Request own = ofAll(task.request);
    // other points may be anywhere
    own.mayHaveJumped = true;
    all_->enqueue({ onDevice_->positions(),
                    task.box,
                    onDevice_->forces(),
                    points.potentials != nullptr ? onDevice_->potentials() : nullptr,
                    own,
                    task.stream });
    onDevice_->collect(c_idleCharge<Real>, points.potentials, points.fields, task.stream);
    all_->wait();
}

template<class Real>
Request PointFields<Real>::ofAll(const Request& request)
{
    Request own       = request;
    own.energy        = false;
    own.virial        = false;
    own.replaceForces = true;
    return own;
}

template class PointFields<float>;
template class PointFields<double>;

} // namespace farfield
