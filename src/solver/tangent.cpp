/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/tangent.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "solver/other_sources.h"

namespace farfield
{
namespace
{

//! Charges dq and dipoles q dx.
template<class Real>
struct Sources
{
    std::vector<Real> charges, dipoles;

    Sources(const std::vector<Real>& q, const Direction<Real>& direction) :
        charges(q.size(), Real(0)), dipoles(3 * q.size(), Real(0))
    {
        for (size_t i = 0; i < q.size(); i++)
        {
            charges[i] = direction.q != nullptr ? direction.q[i] : Real(0);
            for (size_t k = 3 * i; k < 3 * i + 3 && direction.x != nullptr; k++)
            {
                dipoles[k] = q[i] * direction.x[k];
            }
        }
    }
};

} // namespace

template<class Real>
void evaluateTangent(SingleState<Real>* all,
                     const Task<Real>& task,
                     const Direction<Real>& direction,
                     const Tangent<Real>& tangent)
{
    const auto n = static_cast<size_t>(all->charges().count());
    std::vector<Real> forces(3 * n), gradients(3 * n), hessians(6 * n);
    Task<Real> own            = task;
    own.forces                = forces.data();
    own.gradients             = gradients.data();
    own.hessians              = hessians.data();
    own.request.energy        = false;
    own.request.virial        = false;
    own.request.replaceForces = true;
    all->evaluate(own);
    if (n == 0)
    {
        return;
    }
    const std::vector<Real>& q = all->charges().charges();
    Sources<Real> sources(q, direction);
    std::vector<Real> potentialsOfSources(n), gradientsOfSources(3 * n);
    own.potentials = potentialsOfSources.data();
    own.gradients  = gradientsOfSources.data();
    evaluateSources(all, own, sources.charges, std::move(sources.dipoles));
    for (size_t i = 0; i < n; i++)
    {
        Real v[3] = { 0, 0, 0 }, curved[3];
        if (direction.x != nullptr)
        {
            std::copy_n(direction.x + 3 * i, 3, v);
        }
        const Real* h    = hessians.data() + 6 * i;
        curved[0]        = h[0] * v[0] + h[3] * v[1] + h[4] * v[2];
        curved[1]        = h[3] * v[0] + h[1] * v[1] + h[5] * v[2];
        curved[2]        = h[4] * v[0] + h[5] * v[1] + h[2] * v[2];
        const Real* g    = gradients.data() + 3 * i;
        const Real* more = gradientsOfSources.data() + 3 * i;
        for (size_t k = 0; k < 3 && tangent.forces != nullptr; k++)
        {
            tangent.forces[3 * i + k] = -(sources.charges[i] * g[k] + q[i] * (more[k] + curved[k]));
        }
        if (tangent.potentials != nullptr)
        {
            tangent.potentials[i] =
                    potentialsOfSources[i] + g[0] * v[0] + g[1] * v[1] + g[2] * v[2];
        }
    }
}

template void evaluateTangent(SingleState<float>*,
                              const Task<float>&,
                              const Direction<float>&,
                              const Tangent<float>&);
template void evaluateTangent(SingleState<double>*,
                              const Task<double>&,
                              const Direction<double>&,
                              const Tangent<double>&);

} // namespace farfield
