/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/point_fields.h"

#include <algorithm>
#include <vector>

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
        SolverAccess<Real>::countAllPlaces(*solver_);
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
    std::vector<Real> forces(3 * all), ofAll(potentials != nullptr ? all : 0);
    Request own       = request;
    own.energy        = false;
    own.virial        = false;
    own.replaceForces = true;
    solver_->evaluate(positions.data(),
                      box,
                      forces.data(),
                      own,
                      potentials != nullptr ? ofAll.data() : nullptr);
    if (potentials != nullptr)
    {
        std::copy(ofAll.begin() + particles, ofAll.end(), potentials);
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

template class PointFields<float>;
template class PointFields<double>;

} // namespace farfield
