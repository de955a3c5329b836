/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/perturbed_charges.h"

#include <utility>

#include "solver/input_check.h"

namespace farfield
{

template<class Real>
void PerturbedCharges<Real>::set(const Real* chargesA, const Real* chargesB, int n)
{
    auto perturbation  = std::make_unique<Perturbation<Real>>(chargesA, chargesB, n);
    const double first = perturbation->lambdaOfLargerCharges();
    std::unique_ptr<Solver<Real>> fresh;
    if (!difference_)
    {
        Options own = options_;
        own.tune    = false;
        fresh       = std::make_unique<Solver<Real>>(own);
        if (!state_.empty())
        {
            fresh->restore(state_);
        }
    }
    charges_->setCharges(perturbation->mixed(first).data(), n);
    // nothing fails any more
    if (fresh)
    {
        difference_ = std::move(fresh);
        state_.clear();
    }
    perturbation_ = std::move(perturbation);
    mixedAt_      = first;
    isStale_      = true;
}

template<class Real>
void PerturbedCharges<Real>::clear()
{
    perturbation_.reset();
    difference_.reset();
}

template<class Real>
void PerturbedCharges<Real>::mix(double lambda)
{
    if (lambda != mixedAt_)
    {
        charges_->setCharges(perturbation_->mixed(lambda).data(), charges_->count());
        mixedAt_ = lambda;
    }
}

template<class Real>
void PerturbedCharges<Real>::refresh()
{
    if (isStale_)
    {
        const std::vector<Real>& q = perturbation_->difference();
        const ExcludedPairs pairs  = perturbation_->pairs(charges_->excluded());
        const int count            = static_cast<int>(q.size());
        difference_->setCharges(q.data(), count);
        difference_->setExclusions(pairs.offsets.data(), pairs.partners.data(), count);
        isStale_ = false;
    }
}

template<class Real>
void PerturbedCharges<Real>::prepare(const Real* x, const double box[3][3])
{
    refresh();
    difference_->prepare(perturbation_->positions(x).data(), box);
}

template<class Real>
Totals PerturbedCharges<Real>::evaluateDifference(const Real* x,
                                                  const double box[3][3],
                                                  const Request& request,
                                                  std::vector<Real>* forces)
{
    const std::vector<Real> positions = perturbation_->positions(x);
    forces->assign(positions.size(), Real(0));
    try
    {
        refresh();
        return difference_->evaluate(positions.data(), box, forces->data(), request);
    }
    catch (const Error&)
    {
        // names the particle as the caller does
        checkPositions(x, charges_->isCharged(), checkedBox(box));
        throw;
    }
}

template<class Real>
Totals PerturbedCharges<Real>::evaluate(const Real* x,
                                        const double box[3][3],
                                        Real* forces,
                                        const Request& request,
                                        Real* potentials,
                                        const std::function<Totals(Real*)>& evaluate)
{
    const double lambda = request.lambda;
    const double factor = lambda * (1 - lambda);
    mix(lambda);
    if (potentials == nullptr && request.dEnergyDLambda)
    {
        potentials_.resize(charges_->count());
        potentials = potentials_.data();
    }
    std::vector<Real> ofDifference;
    Totals difference;
    if (factor != 0 || request.dEnergyDLambda)
    {
        Request own = request;
        own.energy  = request.energy || potentials != nullptr;
        times_->add(Stage::Perturbation,
                    [&] { difference = evaluateDifference(x, box, own, &ofDifference); });
    }
    Totals totals = evaluate(potentials);
    if (factor != 0)
    {
        perturbation_->addForces(factor, ofDifference, forces);
    }
    totals.energy += factor * difference.energy;
    for (int i = 0; i < 9; i++)
    {
        totals.virial[i / 3][i % 3] += factor * difference.virial[i / 3][i % 3];
    }
    if (request.dEnergyDLambda)
    {
        totals.dEnergyDLambda =
                perturbation_->slope(potentials) + (1 - 2 * lambda) * difference.energy;
    }
    return totals;
}

template<class Real>
std::vector<double> PerturbedCharges<Real>::state() const
{
    return any() ? difference_->state() : std::vector<double>();
}

template<class Real>
void PerturbedCharges<Real>::restore(const std::vector<double>& state)
{
    if (difference_ && !state.empty())
    {
        difference_->restore(state);
    }
    else
    {
        state_ = state;
    }
}

template class PerturbedCharges<float>;
template class PerturbedCharges<double>;

} // namespace farfield
