/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/single_state.h"

#include "evaluation/input_check.h"
#include "solver/open_virial.h"

namespace farfield
{

template<class Real>
SingleState<Real>::SingleState(const Options& options) :
    options_(options), evaluator_(options), charges_(&evaluator_.backend()),
    placement_(options, &charges_, &evaluator_.operators()),
    choice_(options, &charges_, &evaluator_)
{
}

template<class Real>
void SingleState<Real>::serveProbes()
{
    servesProbes_ = true;
    choice_.countAllPlaces();
}

template<class Real>
void SingleState<Real>::setMixed(MixedCharges* mixed)
{
    choice_.setMixed(mixed);
}

template<class Real>
Place<Real> SingleState<Real>::placeOf(const Real* x, const double box[3][3]) const
{
    return placement_.onHost(x, box, choice_.extent());
}

template<class Real>
void SingleState<Real>::settle()
{
    evaluator_.settle();
    enqueuedVirial_.reset();
    enqueuedCorrection_ = {};
}

template<class Real>
void SingleState<Real>::prepare(const Real* x,
                                const double box[3][3],
                                const std::function<void()>& beside)
{
    settle();
    const Place<Real> place   = placeOf(x, box);
    const Real* const located = place.of(x);
    checkPositions(located, charges_.areChosenFor(), place.box);
    follow(place, located, {});
    if (beside)
    {
        beside();
    }
    if (evaluator_.gpu() != nullptr && charges_.count() > 0)
    {
        evaluator_.times().notCounted([&] { rehearse(located); });
    }
}

template<class Real>
void SingleState<Real>::rehearse(const Real* x)
{
    GpuBackend<Real>& gpu = evaluator_.onDevice();
    const auto arrays     = gpu.place(x);
    for (const bool totals : { true, false })
    {
        Request request;
        request.energy = totals;
        request.virial = totals && options_.boundary != Boundary::Open;
        evaluator_.pipeline().enqueue({ arrays.x,
                                        nullptr,
                                        arrays.forces,
                                        totals ? arrays.potentials : nullptr,
                                        request });
        gpu.wait();
    }
}

template<class Real>
void SingleState<Real>::follow(const Place<Real>& place,
                               const Real* x,
                               std::optional<double> lambda)
{
    const auto positions = [&]
    {
        checkPositions(x, charges_.areChosenFor(), place.box);
        return x;
    };
    evaluator_.times().add(Stage::SetUp, [&] { choice_.follow(place, positions, lambda); });
}

template<class Real>
void SingleState<Real>::look(const Real* x, const double box[3][3])
{
    const Place<Real> place = placeOf(x, box);
    follow(place, place.of(x), {});
    look(place, place.of(x));
}

template<class Real>
bool SingleState<Real>::look(const Place<Real>& place, const Real* x)
{
    mustLook_ = false;
    return choice_.look(place, x);
}

template<class Real>
Totals SingleState<Real>::evaluate(const Task<Real>& task, const Around& around)
{
    settle();
    checkRequest(task.request);
    if (task.wantsAllPlaces())
    {
        letAllTakePart();
    }
    const Place<Real> place = placeOf(task.x, task.box);
    if (charges_.count() == 0)
    {
        return {};
    }
    Task<Real> located = task;
    located.x          = place.of(task.x);
    follow(place, located.x, task.request.lambda);
    const auto evaluation = [&](Real* potentials)
    {
        located.potentials = potentials;
        return run(located, place);
    };
    return around ? around(evaluation) : evaluation(task.potentials);
}

template<class Real>
void SingleState<Real>::checkDerivatives(const Task<Real>& task, const Place<Real>& place) const
{
    if (task.wantsDerivatives() && place.narrowed.any()
        && !placement_.correctionOf(place).forces.empty())
    {
        throw Error(
                ErrorCode::Unsupported,
                "Excluded particles are in two layers of a slab, far from each other. There are no "
                "gradients, second derivatives and torques then: leave these pairs out of the "
                "exclusions.");
    }
}

template<class Real>
void SingleState<Real>::checkOtherSources(const Place<Real>& place)
{
    if (place.narrowed.any())
    {
        throw Error(
                ErrorCode::Unsupported,
                "Layers of a slab are far from each other. There are neither tangents nor induced "
                "dipoles then: move the layers together, or evaluate them one by one.");
    }
}

template<class Real>
Totals SingleState<Real>::run(const Task<Real>& task, const Place<Real>& place)
{
    checkDerivatives(task, place);
    Totals totals;
    evaluator_.times().evaluation(evaluator_.backend(), [&] { totals = runStages(task); });
    if (!choice_.areFieldsAsMeasured())
    {
        evaluator_.runAgain(
                task,
                charges_.count(),
                [&] { return look(place, task.x); },
                [&](const Task<Real>& own) { return runStages(own); },
                &totals);
    }
    if (place.narrowed.any())
    {
        const auto correction = placement_.correctionOf(place);
        correction.addTo(task.forces, task.potentials);
        correction.addTo(&totals, task.sumsEnergy(), task.request.virial);
    }
    return totals;
}

template<class Real>
Totals SingleState<Real>::runStages(const Task<Real>& task)
{
    const bool isOpenVirial = needsOpenVirial(task.request);
    if (!isOpenVirial && !charges_.hasIdle())
    {
        return evaluator_.pipeline().run(task);
    }
    std::vector<Real> own(3 * static_cast<size_t>(charges_.count()));
    Task<Real> staged            = task;
    staged.forces                = own.data();
    staged.request               = ofStages(task.request);
    staged.request.replaceForces = true;
    Totals totals                = evaluator_.pipeline().run(staged);
    if (isOpenVirial)
    {
        setOpenVirial(openVirial(task.x, own, charges_.isCharged()), hasTraceOfEnergy(), &totals);
    }
    for (size_t k = 0; k < own.size(); k++)
    {
        own[k]         = charges_.isCharged()[k / 3] ? own[k] : Real(0);
        task.forces[k] = task.request.replaceForces ? own[k] : task.forces[k] + own[k];
    }
    return totals;
}

template<class Real>
void SingleState<Real>::evaluateOthers(const Task<Real>& task,
                                       const std::vector<Real>& charges,
                                       const std::vector<Real>& dipoles)
{
    const Place<Real> place = placeOf(task.x, task.box);
    Task<Real> located      = task;
    located.x               = place.of(task.x);
    checkOtherSources(place);
    whileLent(charges,
              dipoles,
              [&] { evaluator_.times().notCounted([&] { evaluator_.pipeline().run(located); }); });
}

template<class Real>
void SingleState<Real>::whileLent(const std::vector<Real>& charges,
                                  const std::vector<Real>& dipoles,
                                  const std::function<void()>& evaluate)
{
    try
    {
        charges_.lend(charges, dipoles);
        evaluate();
    }
    catch (...)
    {
        charges_.handBack();
        throw;
    }
    charges_.handBack();
}

template<class Real>
bool SingleState<Real>::needsOpenVirial(const Request& request) const
{
    return options_.boundary == Boundary::Open && request.virial;
}

template<class Real>
Request SingleState<Real>::ofStages(const Request& request) const
{
    Request own = request;
    if (needsOpenVirial(request))
    {
        own.virial = false;
        own.energy = true;
    }
    return own;
}

template<class Real>
void SingleState<Real>::letAllTakePart()
{
    // with probes, potentials of those alone are wanted
    if (!servesProbes_)
    {
        charges_.letAllTakePart();
    }
}

template<class Real>
std::vector<double>
SingleState<Real>::groupEnergies(const Task<Real>& task,
                                 const std::vector<WeightedCharges<Real>>& states,
                                 const int* group,
                                 int groups)
{
    const Place<Real> place = placeOf(task.x, task.box);
    if (charges_.count() == 0)
    {
        return std::vector<double>(static_cast<size_t>(groups) * groups, 0.0);
    }
    std::vector<Real> forces(3 * static_cast<size_t>(charges_.count()));
    Task<Real> own            = task;
    own.x                     = place.of(task.x);
    own.forces                = forces.data();
    own.request.energy        = true;
    own.request.virial        = false;
    own.request.replaceForces = true;
    follow(place, own.x, own.request.lambda);
    const auto potentials = [&](Real* to)
    {
        own.potentials = to;
        evaluator_.pipeline().run(own);
        if (place.narrowed.any())
        {
            placement_.correctionOf(place).addTo(forces.data(), to);
        }
    };
    std::vector<double> energies;
    const auto all = [&]
    { energies = farfield::groupEnergies<Real>(&charges_, states, group, groups, potentials); };
    StageTimes& times = evaluator_.times();
    times.add(Stage::Groups, [&] { times.notCounted(all); });
    return energies;
}

template<class Real>
void SingleState<Real>::enqueue(const Task<Real>& task, const AroundLaunch& around)
{
    checkRequest(task.request);
    GpuBackend<Real>& gpu = evaluator_.onDevice();
    if (charges_.count() == 0)
    {
        return;
    }
    enqueuedVirial_.reset();
    enqueuedCorrection_ = {};
    if (task.wantsAllPlaces())
    {
        if (!servesProbes_ && charges_.wouldTakePart())
        {
            gpu.settle();
        }
        letAllTakePart();
    }
    const Place<Real> place = placement_.onDevice(task, &gpu, choice_.extent());
    gpu.await(task.stream);
    std::vector<Real> onHost;
    const auto positions = [&]
    {
        if (!place.narrowed.any())
        {
            onHost = gpu.onHost(task.x, charges_.count(), task.stream);
        }
        const Real* const own = place.of(onHost.data());
        checkPositions(own, charges_.areChosenFor(), place.box);
        return own;
    };
    choice_.follow(place, positions, task.request.lambda);
    if (mustLook_ && !gpu.isRecording(task.stream))
    {
        look(place, positions());
    }
    Task<Real> staged       = task;
    staged.request          = ofStages(task.request);
    const auto launchStaged = [&](Real* potentials)
    {
        staged.potentials = potentials;
        launch(staged, place);
    };
    around ? around(launchStaged) : launchStaged(task.potentials);
    if (needsOpenVirial(task.request))
    {
        const int n     = charges_.count();
        enqueuedVirial_ = openVirial(gpu.onHost(task.x, n, task.stream).data(),
                                     gpu.onHost(task.forces, n, task.stream),
                                     charges_.isCharged());
    }
}

template<class Real>
void SingleState<Real>::evaluateTangentOnDevice(const Task<Real>& task,
                                                const Direction<Real>& direction,
                                                const Tangent<Real>& tangent)
{
    GpuBackend<Real>& gpu = evaluator_.onDevice();
    if (charges_.count() == 0)
    {
        return;
    }
    const auto room           = gpu.tangentRoom(charges_.count());
    Task<Real> own            = task;
    own.forces                = room.forces;
    own.request.energy        = false;
    own.request.virial        = false;
    own.request.replaceForces = true;
    own                       = taskOf(own, room.ofCharges);
    enqueue(own);
    wait();
    checkOtherSources(placement_.onDevice(own, &gpu, choice_.extent())); // all take part now
    if (mustLook_)
    {
        // once more: fields are others than they were, and cells may be, too
        enqueue(own);
        wait();
    }
    own                        = taskOf(own, room.ofSources);
    own.wantsForces            = false;
    double unit                = 0;
    const auto evaluateSources = [&]
    {
        unit = gpu.lendSources(direction, task.stream);
        if (unit == 0)
        {
            return;
        }
        try
        {
            evaluator_.pipeline().enqueue(own);
            gpu.wait();
        }
        catch (...)
        {
            gpu.handBack();
            throw;
        }
        gpu.handBack();
    };
    if (charges_.charged() == 0)
    {
        // nobody takes part yet
        whileLent(std::vector<Real>(charges_.count(), Real(0)), {}, evaluateSources);
    }
    else
    {
        evaluateSources();
    }
    gpu.combine(direction, unit, tangent, task.stream);
}

template<class Real>
void SingleState<Real>::launch(const Task<Real>& task, const Place<Real>& place)
{
    if (!place.narrowed.any())
    {
        evaluator_.pipeline().enqueue(task);
        return;
    }
    checkDerivatives(task, place);
    GpuBackend<Real>& gpu = evaluator_.onDevice();
    Task<Real> located    = task;
    located.x             = gpu.place(place.narrowed.x()).x;
    evaluator_.pipeline().enqueue(located);
    const auto correction = placement_.correctionOf(place);
    gpu.add(correction.forces, task.forces, task.stream);
    if (task.potentials != nullptr)
    {
        gpu.add(correction.potentials, task.potentials, task.stream);
    }
    correction.addTo(&enqueuedCorrection_, task.sumsEnergy(), task.request.virial);
}

template<class Real>
Totals SingleState<Real>::wait(const std::function<Totals(const Totals&)>& complete)
{
    GpuBackend<Real>& gpu = evaluator_.onDevice();
    if (charges_.count() == 0)
    {
        return {};
    }
    Totals totals = gpu.wait();
    mustLook_     = !choice_.areFieldsAsMeasured();
    totals.energy += enqueuedCorrection_.energy;
    for (int i = 0; i < 9; i++)
    {
        totals.virial[i / 3][i % 3] += enqueuedCorrection_.virial[i / 3][i % 3];
    }
    if (complete)
    {
        totals = complete(totals);
    }
    if (enqueuedVirial_)
    {
        setOpenVirial(*enqueuedVirial_, hasTraceOfEnergy(), &totals);
    }
    return totals;
}

template<class Real>
bool SingleState<Real>::mustRecordAgain() const
{
    return evaluator_.onDevice().mustRecordAgain() || mustLook_;
}

template<class Real>
std::vector<double> SingleState<Real>::measureStages(const Task<Real>& task, int repeats)
{
    Task<Real> staged     = task;
    staged.request        = ofStages(task.request);
    const auto evaluation = [&] { evaluator_.pipeline().enqueue(staged); };
    return evaluator_.onDevice().measure(GpuBackend<Real>::Measure::Stages, repeats, evaluation);
}

template class SingleState<float>;
template class SingleState<double>;

} // namespace farfield
