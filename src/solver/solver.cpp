/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The public interface: checks what comes in, and hands it on.
 */
#include "solver/solver_impl.h"

#include <algorithm>
#include <string>
#include <utility>

#include "evaluation/input_check.h"
#include "solver/induction.h"
#include "solver/tangent.h"

namespace farfield
{

const char* version()
{
    return FARFIELD_VERSION;
}

const Error
        c_outOfMemory(ErrorCode::OutOfMemory,
                      "The memory of the host is exhausted; larger cells, a lower order or fewer "
                      "threads need less.",
                      "cellSize");

template<class Real>
Solver<Real>::Impl::Impl(const Options& options) :
    accuracy_(options.accuracy), coulombConstant_(options.coulombConstant), all_(options),
    perturbed_(options, &all_), pointFields_(all_.evaluator().optionsInUse(options))
{
}

template<class Real>
void Solver<Real>::Impl::setCharges(const Real* q, int n)
{
    all_.settle();
    checkCharges(q, n);
    all_.charges().setCharges(q, n);
    perturbed_.clear();
    setMixed();
    pointFields_.forget();
}

template<class Real>
ChargeSums Solver<Real>::Impl::setChargesOnDevice(const Real* q, int n, void* stream)
{
    GpuBackend<Real>& gpu = all_.evaluator().onDevice(); // or there is none
    all_.settle();
    checkNumber(n, "particles");
    if (perturbed_.any() || !all_.charges().replaceOnDevice(&gpu, q, n, stream))
    {
        const std::vector<Real> own = gpu.copyToHost(q, n, stream);
        setCharges(own.data(), n);
        return ChargeSums(own);
    }
    pointFields_.forget();
    return all_.charges().sums();
}

template<class Real>
void Solver<Real>::Impl::setPerturbedCharges(const Real* chargesA, const Real* chargesB, int n)
{
    all_.settle();
    checkCharges(chargesA, n);
    checkCharges(chargesB, n);
    perturbed_.set(chargesA, chargesB, n);
    setMixed();
    pointFields_.forget();
}

template<class Real>
void Solver<Real>::Impl::setExclusions(const int* offsets, const int* partners, int n)
{
    all_.settle();
    checkExclusions(offsets, partners, n, all_.charges().count());
    all_.charges().setExclusions(offsets, partners);
    perturbed_.forgetPairs();
    pointFields_.forget();
}

template<class Real>
void Solver<Real>::Impl::setNearFunction(const NearFunction& function, const Real* widths, int n)
{
    all_.settle();
    checkWidths(function, widths, n, all_.charges().count());
    all_.charges().setNearPairs(NearPairs<Real>(function, widths, n, accuracy_));
    perturbed_.forgetPairs();
    pointFields_.forget();
}

template<class Real>
void Solver<Real>::Impl::setDipoles(const Real* dipoles, int n)
{
    all_.settle();
    checkDipoles(dipoles, n, all_.charges().count());
    if (dipoles != nullptr || all_.charges().moments().dipoles != nullptr)
    {
        all_.charges().setDipoles(dipoles);
    }
}

template<class Real>
void Solver<Real>::Impl::setQuadrupoles(const Real* quadrupoles, int n)
{
    all_.settle();
    checkQuadrupoles(quadrupoles, n, all_.charges().count());
    if (quadrupoles != nullptr || all_.charges().hasQuadrupoles())
    {
        all_.charges().setQuadrupoles(quadrupoles);
    }
}

template<class Real>
void Solver<Real>::Impl::checkMomentsOf(bool wantsDerivatives, bool wantsVirial) const
{
    if (all_.charges().hasMoments() || wantsDerivatives)
    {
        checkSites("Dipoles, quadrupoles, gradients and second derivatives", wantsVirial);
    }
}

template<class Real>
void Solver<Real>::Impl::checkSites(const char* what, bool virial) const
{
    const NearPairs<Real>& pairs = all_.charges().nearPairs();
    farfield::checkSites(what,
                         perturbed_.any(),
                         pairs.any() ? pairs.function.function : PairFunction::Coulomb,
                         virial);
    if (all_.charges().hasQuadrupoles() && pairs.any())
    {
        throw Error(
                ErrorCode::Unsupported,
                "Quadrupoles do not go with near functions: call setNearFunction({}, nullptr, n).");
    }
}

template<class Real>
void Solver<Real>::Impl::checkNoMoments(const char* what) const
{
    if (all_.charges().hasMoments())
    {
        throw Error(ErrorCode::Unsupported,
                    std::string(what)
                            + " are not available with dipoles and quadrupoles: call "
                              "setDipoles(nullptr, n) and setQuadrupoles(nullptr, n).");
    }
}

template<class Real>
void Solver<Real>::Impl::prepare(const Real* x, const double box[3][3])
{
    checkMomentsOf(false, false);
    const auto perturbed = [&]
    {
        if (perturbed_.any())
        {
            perturbed_.prepare(x, box);
        }
    };
    all_.prepare(x, box, perturbed);
}

template<class Real>
Totals Solver<Real>::Impl::evaluate(const Task<Real>& task)
{
    checkMomentsOf(task.wantsDerivatives(), task.request.virial);
    if (!perturbed_.any())
    {
        return all_.evaluate(task);
    }
    return all_.evaluate(task,
                         [&](const auto& ofMixed) { return perturbed_.evaluate(task, ofMixed); });
}

template<class Real>
void Solver<Real>::Impl::evaluateTangent(const Task<Real>& task,
                                         const Direction<Real>& direction,
                                         const Tangent<Real>& tangent)
{
    checkNoMoments("Tangents");
    checkSites("Tangents");
    farfield::evaluateTangent(&all_, task, direction, tangent);
}

template<class Real>
void Solver<Real>::Impl::evaluateTangentOnDevice(const Task<Real>& task,
                                                 const Direction<Real>& direction,
                                                 const Tangent<Real>& tangent)
{
    checkNoMoments("Tangents");
    checkSites("Tangents");
    all_.evaluateTangentOnDevice(task, direction, tangent);
}

template<class Real>
Induction Solver<Real>::Impl::induceDipoles(const Task<Real>& task,
                                            const Real* polarisabilities,
                                            double tolerance,
                                            Real* dipoles)
{
    checkSites("Induced dipoles");
    checkInduction(polarisabilities, dipoles, all_.charges().count(), tolerance);
    return farfield::induceDipoles(
            &all_, task, polarisabilities, coulombConstant_, tolerance, dipoles);
}

template<class Real>
void Solver<Real>::Impl::evaluateAt(const Task<Real>& task, const Points<Real>& points)
{
    checkPoints(points.count, all_.charges().count(), perturbed_.any());
    checkNoMoments("Potentials at points");
    checkRequest(task.request);
    all_.placement().checkPoints(points.at, points.count, task.box);
    if (all_.charges().charged() == 0 || points.count == 0)
    {
        const auto clear = [&](Real* values, int each)
        { std::fill_n(values, values != nullptr ? each * points.count : 0, Real(0)); };
        clear(points.potentials, 1);
        clear(points.fields, 3);
        return;
    }
    pointFields_.evaluate(all_.charges(), task, points);
}

template<class Real>
std::vector<double> Solver<Real>::Impl::groupEnergies(const Task<Real>& task,
                                                      const int* group,
                                                      int groups)
{
    all_.settle();
    checkRequest(task.request);
    checkGroups(group, all_.charges().count(), groups);
    checkNoMoments("Energies of groups");
    return all_.groupEnergies(task,
                              perturbed_.any() ? perturbed_.states(task.request.lambda)
                                               : std::vector<WeightedCharges<Real>>(),
                              group,
                              groups);
}

template<class Real>
std::vector<double> Solver<Real>::Impl::state() const
{
    std::vector<double> state = all_.choice().state();
    if (!state.empty())
    {
        const std::vector<double> ofPerturbed = perturbed_.state();
        state.insert(state.end(), ofPerturbed.begin(), ofPerturbed.end());
    }
    return state;
}

//! \param[in] state  of all particles, and of the perturbed ones behind it where there are any
template<class Real>
void Solver<Real>::Impl::restore(const std::vector<double>& state)
{
    all_.settle();
    std::vector<double> ofAll = state, ofPerturbed;
    if (state.size() == 2 * stateSize())
    {
        ofPerturbed.assign(state.begin() + static_cast<std::ptrdiff_t>(stateSize()), state.end());
        ofAll.resize(stateSize());
        all_.choice().checked(ofPerturbed);
    }
    all_.choice().restore(all_.choice().checked(ofAll));
    perturbed_.restore(ofPerturbed);
}

template<class Real>
void Solver<Real>::Impl::enqueue(const Task<Real>& task)
{
    all_.evaluator().onDevice(); // or there is none
    checkMomentsOf(task.wantsDerivatives(), task.request.virial);
    if (!perturbed_.any())
    {
        all_.enqueue(task);
        return;
    }
    all_.enqueue(task, [&](const auto& ofMixed) { perturbed_.enqueue(task, ofMixed); });
}

template<class Real>
Totals Solver<Real>::Impl::wait()
{
    return all_.wait([&](const Totals& ofMixed)
                     { return perturbed_.any() ? perturbed_.wait(ofMixed) : ofMixed; });
}

template<class Real>
void Solver<Real>::Impl::evaluateAtOnDevice(const Task<Real>& task, const Points<Real>& points)
{
    const GpuBackend<Real>& gpu = all_.evaluator().onDevice();
    checkPoints(points.count, all_.charges().count(), perturbed_.any());
    checkNoMoments("Potentials at points");
    checkRequest(task.request);
    try
    {
        pointFields_.evaluateOnDevice(all_.charges(), gpu, task, points);
    }
    catch (const Error& error)
    {
        if (error.code() == ErrorCode::InvalidArgument)
        {
            // points are particles there
            const std::vector<Real> at =
                    all_.evaluator().onDevice().onHost(points.at, points.count, task.stream);
            all_.placement().checkPoints(at.data(), points.count, task.box);
        }
        throw;
    }
}

template<class Real>
bool Solver<Real>::Impl::mustRecordAgain() const
{
    return all_.mustRecordAgain() || (perturbed_.any() && perturbed_.mustRecordAgain());
}

template<class Real>
bool Solver<Real>::Impl::mayUpdateGraphs() const
{
    return all_.evaluator().onDevice().mayUpdateGraphs()
           && (!perturbed_.any() || perturbed_.mayUpdateGraphs());
}

template<class Real>
std::vector<StageTime> Solver<Real>::Impl::measureStages(const Task<Real>& task, int repeats)
{
    // sets up what must not happen while it is recorded
    enqueue(task);
    wait();
    std::vector<double> seconds = all_.measureStages(task, repeats);
    if (perturbed_.any())
    {
        seconds[static_cast<int>(Stage::Perturbation)] = perturbed_.measure(task.box, repeats);
    }
    std::vector<StageTime> times;
    for (size_t stage = 0; stage < seconds.size(); stage++)
    {
        if (seconds[stage] > 0)
        {
            times.push_back({ stageName(static_cast<Stage>(stage)), 1, seconds[stage] });
        }
    }
    return times;
}

template<class Real>
CoulombSolver<Real>::CoulombSolver(std::unique_ptr<Impl> impl) : impl_(std::move(impl))
{
}
template<class Real>
CoulombSolver<Real>::~CoulombSolver() = default;
template<class Real>
CoulombSolver<Real>::CoulombSolver(CoulombSolver&&) noexcept = default;
template<class Real>
CoulombSolver<Real>& CoulombSolver<Real>::operator=(CoulombSolver&&) noexcept = default;

template<class Real>
Totals CoulombSolver<Real>::evaluate(const Real* x,
                                     const double box[3][3],
                                     Real* forces,
                                     const Request& request)
{
    return impl_->enter([&] { return impl_->evaluate({ x, box, forces, nullptr, request }); });
}
template<class Real>
void CoulombSolver<Real>::prepare(const Real* x, const double box[3][3])
{
    impl_->enter([&] { impl_->prepare(x, box); });
}
template<class Real>
Setup CoulombSolver<Real>::setup() const
{
    return withMemoryErrors([&] { return impl_->setup(); });
}
template<class Real>
std::vector<double> CoulombSolver<Real>::state() const
{
    return withMemoryErrors([&] { return impl_->state(); });
}
template<class Real>
void CoulombSolver<Real>::restore(const std::vector<double>& state)
{
    impl_->enter([&] { impl_->restore(state); });
}
template<class Real>
std::vector<StageTime> CoulombSolver<Real>::timings() const
{
    return withMemoryErrors([&] { return impl_->evaluator().times().all(); });
}
template<class Real>
void CoulombSolver<Real>::resetTimings()
{
    impl_->evaluator().times().reset();
}

template<class Real>
Solver<Real>::Solver(const Options& options) :
    CoulombSolver<Real>(withMemoryErrors([&] { return std::make_unique<Impl>(options); }))
{
}

template<class Real>
typename Solver<Real>::Impl& Solver<Real>::impl() const
{
    return static_cast<Impl&>(
            SolverAccess<Real>::of(static_cast<const CoulombSolver<Real>&>(*this)));
}

template<class Real>
void Solver<Real>::setCharges(const Real* q, int n)
{
    impl().enter([&] { impl().setCharges(q, n); });
}
template<class Real>
void Solver<Real>::setPerturbedCharges(const Real* qA, const Real* qB, int n)
{
    impl().enter([&] { impl().setPerturbedCharges(qA, qB, n); });
}
template<class Real>
void Solver<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    impl().enter([&] { impl().setExclusions(offsets, partners, n); });
}
template<class Real>
void Solver<Real>::setNearFunction(const NearFunction& function, const Real* widths, int n)
{
    impl().enter([&] { impl().setNearFunction(function, widths, n); });
}
template<class Real>
void Solver<Real>::setDipoles(const Real* dipoles, int n)
{
    impl().enter([&] { impl().setDipoles(dipoles, n); });
}
template<class Real>
void Solver<Real>::setQuadrupoles(const Real* quadrupoles, int n)
{
    impl().enter([&] { impl().setQuadrupoles(quadrupoles, n); });
}
template<class Real>
Totals Solver<Real>::evaluate(const Real* x,
                              const double box[3][3],
                              Real* forces,
                              const Request& request,
                              const Outputs<Real>& outputs)
{
    const Task<Real> task = taskOf<Real>({ x, box, forces, nullptr, request }, outputs);
    return impl().enter([&] { return impl().evaluate(task); });
}
template<class Real>
void Solver<Real>::evaluateTangent(const Real* x,
                                   const double box[3][3],
                                   const Direction<Real>& direction,
                                   const Tangent<Real>& tangent,
                                   const Request& request)
{
    impl().enter(
            [&] {
                impl().evaluateTangent({ x, box, nullptr, nullptr, request }, direction, tangent);
            });
}
template<class Real>
Induction Solver<Real>::induceDipoles(const Real* x,
                                      const double box[3][3],
                                      const Real* polarisabilities,
                                      Real* dipoles,
                                      double tolerance,
                                      const Request& request)
{
    return impl().enter(
            [&]
            {
                return impl().induceDipoles({ x, box, nullptr, nullptr, request },
                                            polarisabilities,
                                            tolerance,
                                            dipoles);
            });
}
template<class Real>
Totals Solver<Real>::evaluate(const Real* x,
                              const double box[3][3],
                              Real* forces,
                              const Request& request,
                              Real* potentials)
{
    return impl().enter([&] { return impl().evaluate({ x, box, forces, potentials, request }); });
}
template<class Real>
std::vector<double> Solver<Real>::groupEnergies(const Real* x,
                                                const double box[3][3],
                                                const int* group,
                                                int groups,
                                                const Request& request)
{
    return impl().enter(
            [&] {
                return impl().groupEnergies({ x, box, nullptr, nullptr, request }, group, groups);
            });
}
template<class Real>
void Solver<Real>::evaluateAt(const Real* x,
                              const double box[3][3],
                              const Real* at,
                              int points,
                              Real* potentials,
                              Real* fields,
                              const Request& request)
{
    const Task<Real> task  = { x, box, nullptr, nullptr, request };
    const Points<Real> all = { at, points, potentials, fields };
    impl().enter([&] { impl().evaluateAt(task, all); });
}

template class CoulombSolver<float>;
template class CoulombSolver<double>;
template class Solver<float>;
template class Solver<double>;

} // namespace farfield
