/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/perturbed_charges.h"

#include <cmath>

#include <algorithm>
#include <numeric>
#include <utility>

#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

//! What E(D) is multiplied with.
double factorOfDifference(double lambda)
{
    return lambda * (1 - lambda);
}

//! Whether E(D) is needed.
bool needsDifference(const Request& request)
{
    return factorOfDifference(request.lambda) != 0 || request.dEnergyDLambda;
}

} // namespace

template<class Real>
void PerturbedCharges<Real>::set(const Real* chargesA, const Real* chargesB, int n)
{
    auto perturbation  = std::make_unique<Perturbation<Real>>(chargesA, chargesB, n);
    const double first = perturbation->lambdaOfLargerCharges();
    std::unique_ptr<SingleState<Real>> fresh;
    if (!difference_)
    {
        Options own       = options_;
        own.tune          = false;
        own.helperDevices = {}; // few particles
        fresh             = std::make_unique<SingleState<Real>>(own);
        if (!state_.empty())
        {
            fresh->choice().restore(fresh->choice().checked(state_));
        }
    }
    std::unique_ptr<PerturbedOnDevice<Real>> onDevice;
    const GpuBackend<Real>* const gpu = all_->evaluator().gpu();
    if (gpu != nullptr && !perturbation->perturbed().empty())
    {
        onDevice = gpu->makePerturbed();
        onDevice->set(perturbation->perturbed(), perturbation->difference(), n);
    }
    all_->charges().setCharges(perturbation->mixed(first).data(), n);
    // nothing fails any more
    onDevice_ = std::move(onDevice);
    enqueued_ = {};
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
    onDevice_.reset();
}

template<class Real>
std::vector<WeightedCharges<Real>> PerturbedCharges<Real>::states(double lambda) const
{
    return { { 1 - lambda, perturbation_->chargesA().data() },
             { lambda, perturbation_->chargesB().data() } };
}

template<class Real>
void PerturbedCharges<Real>::mix(double lambda)
{
    if (lambda != mixedAt_)
    {
        all_->charges().setCharges(perturbation_->mixed(lambda).data(), all_->charges().count());
        mixedAt_ = lambda;
    }
}

template<class Real>
void PerturbedCharges<Real>::refresh()
{
    // what forces of the difference are added to
    const double before = std::exchange(typicalForce_, all_->choice().typicalForce());
    difference_->choice().setLeastForce(typicalForce_);
    if (typicalForce_ < before && onDevice_)
    {
        difference_->compareAgain();
    }
    if (isStale_)
    {
        const std::vector<Real>& q = perturbation_->difference();
        const ExcludedPairs pairs  = perturbation_->pairs(all_->charges().excluded());
        difference_->settle();
        difference_->charges().setCharges(q.data(), static_cast<int>(q.size()));
        difference_->charges().setExclusions(pairs.offsets.data(), pairs.partners.data());
        difference_->charges().setNearPairs(
                all_->charges().nearPairs().of(perturbation_->perturbed()));
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
Setup PerturbedCharges<Real>::withErrorOfDifference(Setup all) const
{
    //! Largest factor of E(D).
    constexpr double c_most = 0.25;

    const double force = any() ? all_->choice().typicalForce() : 0;
    if (force == 0)
    {
        return all;
    }
    const Choice<Real>& choice = difference_->choice();
    // both are root mean squares, over as many particles as have a charge
    const double perturbed = static_cast<double>(difference_->charges().charged())
                             / static_cast<double>(all_->charges().charged());
    // what is worst need not be at these forces
    const double error = c_most * choice.typicalForce() / force * std::sqrt(perturbed)
                         * choice.setup().estimatedError;
    all.estimatedError = std::max(all.estimatedError, error);
    all.largestError   = std::max(all.largestError, error);
    all.isBestEffort =
            all.isBestEffort || (options_.order < 0 && error > c_untilMeasured * options_.accuracy);
    return all;
}

template<class Real>
void PerturbedCharges<Real>::nameBadPosition(const Real* x, const double box[3][3]) const
{
    if (options_.boundary != Boundary::Periodic)
    {
        all_->charges().extent(x);
    }
    if (options_.boundary != Boundary::Open)
    {
        checkPositions(x, all_->charges().areChosenFor(), checkedBox(box, options_.boundary));
    }
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
        return difference_->evaluate({ positions.data(), box, forces->data(), nullptr, request });
    }
    catch (const Error&)
    {
        nameBadPosition(x, box);
        throw;
    }
}

template<class Real>
Totals PerturbedCharges<Real>::evaluate(const Task<Real>& task,
                                        const typename SingleState<Real>::Evaluation& ofMixed)
{
    const Request& request = task.request;
    Real* potentials       = task.potentials;
    mix(request.lambda);
    if (potentials == nullptr && request.dEnergyDLambda)
    {
        potentials_.resize(all_->charges().count());
        potentials = potentials_.data();
    }
    std::vector<Real> ofDifference;
    Totals difference;
    const auto evaluateOther = [&]
    {
        Request own = request;
        own.energy  = request.energy || potentials != nullptr;
        all_->evaluator().times().add(
                Stage::Perturbation,
                [&] { difference = evaluateDifference(task.x, task.box, own, &ofDifference); });
    };
    const bool isNeeded = needsDifference(request);
    if (isNeeded)
    {
        evaluateOther(); // first: no forces have changed if it fails
    }
    Totals totals = ofMixed(potentials);
    if (isNeeded && all_->choice().typicalForce() < typicalForce_)
    {
        evaluateOther(); // its error has to be less than was known
    }
    if (const double factor = factorOfDifference(request.lambda); factor != 0)
    {
        perturbation_->addForces(factor, ofDifference, task.forces);
    }
    add(difference,
        request,
        request.dEnergyDLambda ? perturbation_->slope(potentials) : 0,
        &totals);
    return totals;
}

template<class Real>
void PerturbedCharges<Real>::add(const Totals& difference,
                                 const Request& request,
                                 double slope,
                                 Totals* totals)
{
    const double factor = factorOfDifference(request.lambda);
    totals->energy += factor * difference.energy;
    for (int i = 0; i < 9; i++)
    {
        totals->virial[i / 3][i % 3] += factor * difference.virial[i / 3][i % 3];
    }
    if (request.dEnergyDLambda)
    {
        totals->dEnergyDLambda = slope + (1 - 2 * request.lambda) * difference.energy;
    }
}

template<class Real>
void PerturbedCharges<Real>::enqueue(const Task<Real>& task,
                                     const typename SingleState<Real>::Launch& ofMixed)
{
    const Request& request = task.request;
    Real* potentials       = task.potentials;
    if (request.lambda != mixedAt_)
    {
        all_->evaluator().settle();
        mix(request.lambda);
    }
    if (potentials == nullptr && request.dEnergyDLambda)
    {
        potentials = onDevice_->potentials();
    }
    const bool isNeeded = needsDifference(request);
    if (isNeeded)
    {
        Request own       = request;
        own.energy        = request.energy || potentials != nullptr;
        own.replaceForces = true;
        try
        {
            refresh();
            void* const beside = onDevice_->begin(task.x, task.stream);
            difference_->enqueue({ onDevice_->positions(),
                                   task.box,
                                   onDevice_->forces(),
                                   nullptr,
                                   own,
                                   beside });
        }
        catch (const Error&)
        {
            const std::vector<Real> onHost = all_->evaluator().onDevice().onHost(
                    task.x, all_->charges().count(), task.stream);
            nameBadPosition(onHost.data(), task.box);
            throw;
        }
    }
    ofMixed(potentials);
    if (isNeeded)
    {
        onDevice_->end(factorOfDifference(request.lambda), task.forces, task.stream);
    }
    if (request.dEnergyDLambda)
    {
        onDevice_->sum(potentials, task.stream);
    }
    enqueued_ = request;
}

template<class Real>
Totals PerturbedCharges<Real>::wait(const Totals& ofMixed)
{
    Totals totals = ofMixed;
    if (needsDifference(enqueued_))
    {
        const Totals difference = difference_->wait();
        add(difference, enqueued_, enqueued_.dEnergyDLambda ? onDevice_->summed() : 0, &totals);
    }
    return totals;
}

template<class Real>
bool PerturbedCharges<Real>::mustRecordAgain() const
{
    return isStale_ || difference_->mustRecordAgain();
}

template<class Real>
bool PerturbedCharges<Real>::mayUpdateGraphs() const
{
    return difference_->evaluator().onDevice().mayUpdateGraphs();
}

template<class Real>
double PerturbedCharges<Real>::measure(const double box[3][3], int repeats)
{
    double seconds = 0;
    if (needsDifference(enqueued_))
    {
        Request forces;
        forces.energy         = false;
        forces.virial         = false;
        forces.replaceForces  = true;
        const Task<Real> task = {
            onDevice_->positions(), box, onDevice_->forces(), nullptr, forces
        };
        // sets up what must not happen while it is recorded
        difference_->enqueue(task);
        difference_->wait();
        const std::vector<double> stages = difference_->measureStages(task, repeats);
        seconds                          = std::accumulate(stages.begin(), stages.end(), 0.0);
    }
    return seconds;
}

template<class Real>
std::vector<double> PerturbedCharges<Real>::state() const
{
    return any() ? difference_->choice().state() : std::vector<double>();
}

template<class Real>
void PerturbedCharges<Real>::restore(const std::vector<double>& state)
{
    if (difference_ && !state.empty())
    {
        difference_->settle();
        difference_->choice().restore(difference_->choice().checked(state));
    }
    else
    {
        state_ = state;
    }
}

template class PerturbedCharges<float>;
template class PerturbedCharges<double>;

} // namespace farfield
