/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/other_sources.h"

#include <algorithm>
#include <cmath>

namespace farfield
{
namespace
{

//! Of strengthOf(); what is not a number is one of them.
template<class Real>
double largestOf(const std::vector<Real>& charges, const std::vector<Real>& dipoles)
{
    double largest = 0;
    for (size_t i = 0; i < charges.size(); i++)
    {
        const auto own =
                static_cast<double>(strengthOf(charges[i], { dipoles.data(), nullptr }, i));
        largest = own > largest || std::isnan(own) ? own : largest;
    }
    return largest;
}

template<class Real>
void multiply(Real* values, size_t count, double factor)
{
    std::transform(values,
                   values + (values != nullptr ? count : 0),
                   values,
                   [factor](Real v) { return static_cast<Real>(factor * static_cast<double>(v)); });
}

} // namespace

template<class Real>
void evaluateSources(SingleState<Real>* all,
                     const Task<Real>& task,
                     std::vector<Real> charges,
                     std::vector<Real> dipoles)
{
    const size_t n       = charges.size();
    const double largest = largestOf(charges, dipoles);
    if (largest == 0)
    {
        std::fill_n(task.potentials, task.potentials != nullptr ? n : 0, Real(0));
        std::fill_n(task.gradients, task.gradients != nullptr ? 3 * n : 0, Real(0));
        return;
    }
    // beside charges of a usual size, idle ones are nothing
    multiply(charges.data(), n, 1 / largest);
    multiply(dipoles.data(), 3 * n, 1 / largest);
    std::vector<Real> forces(3 * n);
    Task<Real> own            = task;
    own.forces                = forces.data();
    own.wantsForces           = false;
    own.hessians              = nullptr;
    own.request.energy        = false;
    own.request.virial        = false;
    own.request.replaceForces = true;
    all->evaluateOthers(own, charges, dipoles);
    multiply(task.potentials, n, largest);
    multiply(task.gradients, 3 * n, largest);
}

template decltype(evaluateSources<float>) evaluateSources<float>;
template decltype(evaluateSources<double>) evaluateSources<double>;

} // namespace farfield
