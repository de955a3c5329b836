/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cells/position_error.h"
#include "pair_kernels/ewald_sums.h"
#include "pair_kernels/field_error.h"

namespace farfield
{
namespace
{

//! Points whose exact fields tell the error.
constexpr int c_samples = 512;

//! The same in a periodic box, at most and at least, and pairs that they may take in between: a pair is dearer there.
constexpr int c_mostOfEwald = 256, c_fewestOfEwald = 128, c_pairsOfEwald = 20'000'000;

} // namespace

template<class Real>
KernelSamples<Real>::KernelSamples(const PairKernel& kernel,
                                   KernelBackend<Real>* backend,
                                   const Region& region,
                                   const KernelOptions& options,
                                   Team* team) :
    backend_(*backend),
    numbers_(backend->numbers()), isPeriodic_(region.isPeriodic),
    areForces_(options.ofForces && numbers_.areOwn())
{
    const int results = numbers_.results();
    const int most    = isPeriodic_ ? std::clamp(c_pairsOfEwald / std::max(numbers_.n, 1),
                                              c_fewestOfEwald,
                                              c_mostOfEwald)
                                    : c_samples;
    // evenly among the results, in no order that these may have: multiples of the golden ratio
    for (int k = 0; k < std::min(results, most); k++)
    {
        const double turns = 0.6180339887498949 * k;
        places_.push_back(
                results <= most ? k : static_cast<int>(results * (turns - std::floor(turns))));
    }
    // of the accuracy: of few points all fields may cancel
    constexpr int c_few  = 1000;
    const double ofEwald = (numbers_.n < c_few ? 1e-6 : 1e-3) * options.accuracy;
    exact_ = isPeriodic_ ? ewaldSums(kernel, backend->onHost(), region, places_, ofEwald, team)
                         : backend->directSums(region, places_);
    for (size_t i = 0; i < exact_.size(); i++)
    {
        if (!std::isfinite(exact_[i]))
        {
            throw noValueAt(kernel, backend->onHost(), places_[i % places_.size()]);
        }
    }
    weigh(&exact_);
}

template<class Real>
void KernelSamples<Real>::weigh(std::vector<double>* sums) const
{
    const size_t n = places_.size();
    const Real* q  = areForces_ ? backend_.onHost().q : nullptr;
    for (size_t i = 0; areForces_ && i < sums->size(); i++)
    {
        const size_t place = static_cast<size_t>(places_[i % n]) * numbers_.sets + i / (4 * n);
        (*sums)[i] *= static_cast<double>(q[place]);
    }
}

template<class Real>
double KernelSamples<Real>::error(double unit) const
{
    std::vector<double> ofSome = backend_.results(places_);
    weigh(&ofSome);
    // fields cancel in a crystal: a part of the potential per size of a leaf is what they are without
    constexpr double c_part = 0.1;
    return farfield::errorOf(
            ofSome, exact_, numbers_.sets, areForces_, isPeriodic_ ? c_part / unit : 0);
}

template<class Real>
Error noValueAt(const PairKernel& kernel, const PointSystem<Real>& system, int result)
{
    const double* x    = (system.areOwn() ? system.x : system.at) + 3 * static_cast<size_t>(result);
    const bool isTable = kernel.kind() == PairLawKind::Table;
    return { ErrorCode::InvalidArgument,
             "The kernel " + kernel.name() + " has no value at "
                     + nameOfPlace(system.areOwn() ? "particle" : "point", result, x) + ": "
                     + (isTable ? "a distance is outside of the table, or a charge is at the same "
                                  "place."
                                : "another charge is at the same place, or too near for this "
                                  "precision."),
             "positions" };
}

template class KernelSamples<float>;
template class KernelSamples<double>;
template Error noValueAt(const PairKernel&, const PointSystem<float>&, int);
template Error noValueAt(const PairKernel&, const PointSystem<double>&, int);

} // namespace farfield
