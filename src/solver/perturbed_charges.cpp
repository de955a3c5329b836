/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/perturbed_charges.h"

#include <utility>

#include "backend/device_entry.h"
#include "solver/input_check.h"
#include "solver/solver_access.h"

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
    std::unique_ptr<PerturbedOnDevice<Real>> onDevice;
    if (gpu_ != nullptr && !perturbation->perturbed().empty())
    {
        onDevice = gpu_->makePerturbed();
        onDevice->set(perturbation->perturbed(), perturbation->difference(), n);
    }
    charges_->setCharges(perturbation->mixed(first).data(), n);
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
        charges_->setCharges(perturbation_->mixed(lambda).data(), charges_->count());
        mixedAt_ = lambda;
    }
}

template<class Real>
void PerturbedCharges<Real>::refresh()
{
    SolverAccess<Real>::setLeastForce(*difference_, leastForce_);
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
void PerturbedCharges<Real>::nameBadPosition(const Real* x, const double box[3][3]) const
{
    if (options_.boundary != Boundary::Periodic)
    {
        charges_->extent(x);
    }
    if (options_.boundary != Boundary::Open)
    {
        checkPositions(x, charges_->takesPart(), checkedBox(box, options_.boundary));
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
        return difference_->evaluate(positions.data(), box, forces->data(), request);
    }
    catch (const Error&)
    {
        nameBadPosition(x, box);
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
    mix(request.lambda);
    if (potentials == nullptr && request.dEnergyDLambda)
    {
        potentials_.resize(charges_->count());
        potentials = potentials_.data();
    }
    std::vector<Real> ofDifference;
    Totals difference;
    if (needsDifference(request))
    {
        Request own = request;
        own.energy  = request.energy || potentials != nullptr;
        times_->add(Stage::Perturbation,
                    [&] { difference = evaluateDifference(x, box, own, &ofDifference); });
    }
    Totals totals = evaluate(potentials);
    if (const double factor = factorOfDifference(request.lambda); factor != 0)
    {
        perturbation_->addForces(factor, ofDifference, forces);
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
void PerturbedCharges<Real>::enqueue(const Real* x,
                                     const double box[3][3],
                                     Real* forces,
                                     const Request& request,
                                     void* stream,
                                     Real* potentials,
                                     const std::function<void(Real*)>& enqueue)
{
    if (request.lambda != mixedAt_)
    {
        gpu_->settle();
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
            void* const beside = onDevice_->begin(x, stream);
            DeviceEntry<Real>::enqueue(*difference_,
                                       onDevice_->positions(),
                                       box,
                                       onDevice_->forces(),
                                       own,
                                       beside,
                                       nullptr);
        }
        catch (const Error&)
        {
            nameBadPosition(gpu_->onHost(x, charges_->count(), stream).data(), box);
            throw;
        }
    }
    enqueue(potentials);
    if (isNeeded)
    {
        onDevice_->end(factorOfDifference(request.lambda), forces, stream);
    }
    if (request.dEnergyDLambda)
    {
        onDevice_->sum(potentials, stream);
    }
    enqueued_ = request;
}

template<class Real>
Totals PerturbedCharges<Real>::wait(const Totals& ofMixed)
{
    Totals totals = ofMixed;
    if (needsDifference(enqueued_))
    {
        const Totals difference = DeviceEntry<Real>::wait(*difference_);
        add(difference, enqueued_, enqueued_.dEnergyDLambda ? onDevice_->summed() : 0, &totals);
    }
    return totals;
}

template<class Real>
bool PerturbedCharges<Real>::mustRecordAgain() const
{
    return isStale_ || DeviceEntry<Real>::mustRecordAgain(*difference_);
}

template<class Real>
bool PerturbedCharges<Real>::mayUpdateGraphs() const
{
    return DeviceEntry<Real>::mayUpdateGraphs(*difference_);
}

template<class Real>
double PerturbedCharges<Real>::measure(const double box[3][3], int repeats)
{
    double seconds = 0;
    if (needsDifference(enqueued_))
    {
        Request forces;
        forces.energy        = false;
        forces.virial        = false;
        forces.replaceForces = true;
        for (const StageTime& stage : DeviceEntry<Real>::measureStages(*difference_,
                                                                       onDevice_->positions(),
                                                                       box,
                                                                       onDevice_->forces(),
                                                                       forces,
                                                                       repeats))
        {
            seconds += stage.seconds;
        }
    }
    return seconds;
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
