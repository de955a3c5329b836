/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/point_fields.h"

#include <algorithm>
#include <vector>

#include "backend/device_entry.h"
#include "operators/scaled_charges.h"
#include "solver/solver_access.h"

namespace farfield
{

template<class Real>
PointFields<Real>::PointFields(const Options& options) : options_(options)
{
    options_.tune = false;
}

template<class Real>
PointFields<Real>::~PointFields() = default;

template<class Real>
void PointFields<Real>::setUp(const ChargeSet<Real>& charges, int points)
{
    if (points_ == points)
    {
        return;
    }
    forget();
    if (!solver_)
    {
        solver_ = std::make_unique<Solver<Real>>(options_);
        SolverAccess<Real>::serveProbes(*solver_);
    }
    std::vector<Real> q = charges.charges();
    q.resize(q.size() + points, static_cast<Real>(c_idleCharge));
    // points have no excluded pairs
    const ExcludedPairs& excluded = charges.excluded();
    std::vector<int> offsets      = excluded.offsets;
    offsets.resize(q.size() + 1, offsets.back());
    const int count = static_cast<int>(q.size());
    solver_->setCharges(q.data(), count);
    solver_->setExclusions(offsets.data(), excluded.partners.data(), count);
    points_ = points;
}

template<class Real>
void PointFields<Real>::evaluate(const ChargeSet<Real>& charges,
                                 const Real* x,
                                 const double box[3][3],
                                 const Real* at,
                                 int points,
                                 const Request& request,
                                 Real* potentials,
                                 Real* fields)
{
    setUp(charges, points);
    const size_t particles = charges.count(), all = particles + points;
    std::vector<Real> positions(x, x + 3 * particles);
    positions.insert(positions.end(), at, at + 3 * static_cast<size_t>(points));
    std::vector<Real> forces(3 * all), own(potentials != nullptr ? all : 0);
    solver_->evaluate(positions.data(),
                      box,
                      forces.data(),
                      ofAll(request),
                      potentials != nullptr ? own.data() : nullptr);
    if (potentials != nullptr)
    {
        std::copy(own.begin() + particles, own.end(), potentials);
    }
    if (fields != nullptr)
    {
        std::transform(forces.begin() + 3 * particles,
                       forces.end(),
                       fields,
                       [](Real force)
                       { return static_cast<Real>(static_cast<double>(force) / c_idleCharge); });
    }
}

template<class Real>
void PointFields<Real>::evaluateOnDevice(const ChargeSet<Real>& charges,
                                         const GpuBackend<Real>& gpu,
                                         const Real* x,
                                         const double box[3][3],
                                         const Real* at,
                                         int points,
                                         const Request& request,
                                         Real* potentials,
                                         Real* fields,
                                         void* stream)
{
    if (!onDevice_)
    {
        onDevice_ = gpu.makePoints();
    }
    if (charges.charged() == 0 || points == 0)
    {
        onDevice_->clear(potentials, fields, points, stream);
        return;
    }
    setUp(charges, points);
    onDevice_->place(x, charges.count(), at, points, stream);
    Request own = ofAll(request);
    // other points may be anywhere
    own.mayHaveJumped = true;
    DeviceEntry<Real>::enqueue(*solver_,
                               onDevice_->positions(),
                               box,
                               onDevice_->forces(),
                               own,
                               stream,
                               potentials != nullptr ? onDevice_->potentials() : nullptr);
    onDevice_->collect(c_idleCharge, potentials, fields, stream);
    DeviceEntry<Real>::wait(*solver_);
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
