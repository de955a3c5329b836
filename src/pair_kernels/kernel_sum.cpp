/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "farfield/farfield_kernels.h"

#include "base/text.h"
#include "evaluation/memory_errors.h"
#include "pair_kernels/kernel_errors.h"
#include "pair_kernels/kernel_input.h"
#include "pair_kernels/kernel_operators.h"
#include "pair_kernels/kernel_samples.h"
#include "pair_kernels/kernel_sum_access.h"
#include "pair_kernels/left_out_pairs.h"

namespace farfield
{
namespace
{

//! Calls before the second measurement of the error, and twice as many after each.
constexpr int c_callsBetween = 64;

} // namespace

template<class Real>
class KernelSum<Real>::Impl
{
public:
    Impl(const Kernel& kernel, const KernelOptions& options);

    void evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output);
    void setSites(const KernelSites<Real>& sites);
    Totals
    enqueue(const Real* x, const double (*box)[3], const KernelRequest& request, void* stream);
    void addForces(Real* forces, void* stream);
    bool mustRecordAgain() const { return enqueued_ != generation_; }
    void setExclusions(const int* offsets, const int* partners, int n)
    {
        backend_->setLeftOut(offsets == nullptr ? ExcludedPairs()
                                                : pairsOnBothSides(offsets, partners, n));
        excludedCharges_ = offsets == nullptr ? -1 : n;
    }
    const KernelSetup& setup() const { return setup_; }
    std::vector<double> state() const;
    void resume(const std::vector<double>& state);

private:
    //! The space that holds all points.
    Region regionOf(const double (*box)[3], const Extent& extent);
    //! Whether the points that were taken, or such sites, need another choice.
    bool areOthers(const PointNumbers& points, const Region& region) const;
    //! Evaluates what was taken. \param[in] evaluations  since the last call, with this one
    void evaluateTaken(const Region& region, const KernelOutput<Real>& output, int evaluations);
    //! Without waiting, if that is possible. \returns whether it was
    bool
    enqueueSites(const Real* x, const double (*box)[3], const KernelRequest& request, void* stream);
    //! An evaluation with such a plan; operators are kept where they suit.
    KernelEvaluation<Real>& evaluationFor(const KernelPlan& plan, const Region& region);
    //! Chooses degree and cells, and measures their error. The backend has the results, without virials.
    void choose(const Region& region);
    //! The error of fields of a plan; the backend has the results, without virials.
    double measured(const KernelPlan& plan,
                    const Region& region,
                    const KernelSamples<Real>& samples)
    {
        evaluationFor(plan, region).evaluate(region, false);
        return samples.error(region.leaves(plan).unit());
    }
    KernelSamples<Real> samples(const Region& region)
    {
        return { kernel_.pairKernel(), backend_.get(), region, options_, &team_ };
    }
    //! The periodic box, or the extents of the points.
    Mat3 shapeOf(const Region& region) const
    {
        return region.isPeriodic ? region.box : Mat3(extents_.asDiagonal());
    }
    //! What is left for points that were not measured.
    double wanted() const { return 0.75 * options_.accuracy; }
    //! That there is a number for every result, and that this precision has them.
    void checkResults();

    Kernel kernel_;
    KernelOptions options_;
    Team team_;
    KernelSetup setup_;
    std::unique_ptr<KernelBackend<Real>> backend_;
    std::unique_ptr<KernelEvaluation<Real>> evaluation_;
    KernelPlan plan_;
    int calls_        = 0; //!< since the error was measured
    int callsBetween_ = c_callsBetween;
    //! The system that the plan was chosen for.
    struct
    {
        int charges = -1; //!< -1: there is no plan
        int results = 0, sets = 0;
        bool areOwn = true;
        Mat3 shape  = Mat3::Zero(); //!< see shapeOf()
    } chosen_;
    Vec3 extents_        = Vec3::Zero(); //!< of the points at hand, without images
    double edge_         = 0;            //!< of the cube, without images
    int excludedCharges_ = -1;           //!< that exclusions were set for, -1: none were
    struct
    {
        int n = -1, sets = 0; //!< -1: they were not set
        std::vector<int> atoms;
        std::vector<Real> q;
        std::vector<double> factors;
        bool areTaken = false; //!< the backend has their charges
    } sites_;
    long long generation_ = 0;  //!< of evaluation_
    long long enqueued_   = -1; //!< the one that was enqueued last
};

template<class Real>
KernelSum<Real>::Impl::Impl(const Kernel& kernel, const KernelOptions& options) :
    kernel_(kernel), options_(options), team_(usableThreads(options.threads))
{
    checkKernelOptions<Real>(kernel, options);
    const bool onGpu = options.device == Device::Gpu;
    backend_ = onGpu ? makeGpuKernelBackend<Real>(kernel_.pairKernel(), options.deviceId, &team_)
                     : makeCpuKernelBackend<Real>(kernel_.pairKernel(), &team_);
    setup_.threads = team_.threads();
    setup_.device  = onGpu ? Device::Gpu : Device::Cpu;
}

template<class Real>
Region KernelSum<Real>::Impl::regionOf(const double (*box)[3], const Extent& extent)
{
    if (options_.boundary == Boundary::Periodic)
    {
        return { Vec3::Zero(), reducedPeriodicBox(box), true };
    }
    // A cube of one of few sizes, with room to move: it, and with it operators, stay while points move.
    constexpr double c_room = 1.07, c_steps = 4;
    const double wanted = c_room * extent.edge();
    extents_            = extent.lengths();
    if (!(wanted <= edge_ && edge_ <= 2 * wanted))
    {
        edge_ = std::exp2(std::ceil(c_steps * std::log2(wanted)) / c_steps);
    }
    return { extent.centre() - Vec3::Constant(0.5 * edge_), edge_ * Mat3::Identity(), false };
}

template<class Real>
KernelEvaluation<Real>& KernelSum<Real>::Impl::evaluationFor(const KernelPlan& plan,
                                                             const Region& region)
{
    if (!evaluation_ || !evaluation_->adopt(plan, region))
    {
        generation_++;
        evaluation_.reset();
        evaluation_ = backend_->evaluation(plan, region, 1e-3 * options_.accuracy);
    }
    return *evaluation_;
}

template<class Real>
void KernelSum<Real>::Impl::choose(const Region& region)
{
    constexpr int c_tries            = 10;
    const PointNumbers& system       = backend_->numbers();
    const PairKernel& kernel         = kernel_.pairKernel();
    const KernelSamples<Real> beside = samples(region);
    KernelCosts costs(kernel,
                      backend_->costs(options_.accuracy),
                      region,
                      system.n,
                      system.results(),
                      [&](const KernelPlan& plan) { return backend_->countLevels(region, plan); });
    const bool isFirst = chosen_.charges < 0;
    chosen_.charges    = -1; // until there is another choice
    std::array<double, 2> off{ 1, 1 };
    bool isKnown[2]  = { false, false };
    int levels       = 1;
    double bestError = std::numeric_limits<double>::infinity(), leastCost = bestError;
    std::unique_ptr<KernelEvaluation<Real>> kept;     // with its operators
    bool isCurrent = false;                           // the results are those of it
    std::vector<std::pair<KernelPlan, double>> tried; // and its error
    for (int k = 0; k < c_tries; k++)
    {
        double cost;
        const KernelPlan plan = cheapestPlan(&costs, kernel, wanted(), off, levels, &cost);
        if (std::any_of(tried.begin(),
                        tried.end(),
                        [&](const auto& other) { return other.first == plan; }))
        {
            break;
        }
        double error;
        try
        {
            isCurrent = false;
            error     = measured(plan, region, beside);
        }
        catch (const Error& failure)
        {
            // what does not fit is no reason to give up what does
            if (failure.code() != ErrorCode::OutOfMemory || !kept)
            {
                throw;
            }
            break;
        }
        // the cheapest that is accurate, or the most accurate
        const bool isFine = error <= wanted();
        if (isFine ? bestError > wanted() || cost < leastCost : error < bestError)
        {
            plan_     = plan;
            bestError = error;
            leastCost = cost;
            kept      = std::move(evaluation_);
            isCurrent = true;
        }
        const double ofModel = modelError(plan, kernel, &costs);
        // what a higher degree does not help, or has no part in, is rounding
        const bool isHelped   = std::none_of(tried.begin(),
                                           tried.end(),
                                           [&](const auto& other)
                                           {
                                               return other.first.ws == plan.ws
                                                      && other.first.degree < plan.degree
                                                      && error > 0.7 * other.second;
                                           });
        const bool isRounding = !region.isPeriodic && !isFine
                                && (plan.levels == 1 || plan.degree == c_highestDegree || !isHelped
                                    || !std::isfinite(error));
        tried.emplace_back(plan, error);
        if (isRounding)
        {
            levels = plan.levels + 1;
        }
        else
        {
            const double ofPlan = std::max(error / ofModel, isFine ? 0 : 1.01 * wanted() / ofModel);
            isKnown[plan.ws - 1] = true;
            off[plan.ws - 1]     = ofPlan;
            // until the other direct range has an error of its own
            double& ofOther = off[2 - plan.ws];
            ofOther         = isKnown[2 - plan.ws] ? ofOther : ofPlan;
        }
        const double ofThis = off[plan.ws - 1];
        if (ofThis == 0 || !std::isfinite(ofThis))
        {
            break;
        }
    }
    if (!kept)
    {
        checkResults();
    }
    const bool mayBeWorse = options_.bestEffort && !isFirst && std::isfinite(bestError);
    if (bestError > options_.accuracy && !mayBeWorse)
    {
        throw Error(ErrorCode::Unsupported,
                    "The accuracy " + text(options_.accuracy) + " cannot be reached for the kernel "
                            + kernel_.name() + " and these points: the best is " + text(bestError)
                            + ". Ask for less"
                            + (sizeof(Real) == 4 ? ", or use double precision." : "."),
                    "accuracy");
    }
    evaluation_ = std::move(kept);
    generation_++;
    if (!isCurrent)
    {
        evaluation_->evaluate(region, false);
    }
    setup_.measuredError = bestError;
    calls_               = 0;
    callsBetween_ = mayBeWorse && bestError > options_.accuracy ? backend_->mostCallsBetween()
                                                                : c_callsBetween;
    // charges that make nothing show no error
    const ResultRange range = backend_->range();
    if (range.largest > 0 || range.invalid >= 0)
    {
        chosen_ = { system.n, system.results(), system.sets, system.areOwn(), shapeOf(region) };
    }
}

template<class Real>
void KernelSum<Real>::Impl::checkResults()
{
    const ResultRange range = backend_->range();
    if (range.invalid >= 0)
    {
        throw noValueAt(kernel_.pairKernel(), backend_->onHost(), range.invalid);
    }
    if (range.largest > static_cast<double>(std::numeric_limits<Real>::max())
        || (range.largest > 0
            && range.largest < static_cast<double>(std::numeric_limits<Real>::min())))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "Results are up to " + text(range.largest)
                            + ", which is beyond this precision: take another unit of length or of "
                              "charge"
                            + (sizeof(Real) == 4 ? ", or double precision." : "."),
                    "positions");
    }
}

template<class Real>
bool KernelSum<Real>::Impl::areOthers(const PointNumbers& points, const Region& region) const
{
    const auto isLike = [](double a, double b) { return std::abs(a - b) <= 0.1 * b; };
    const Mat3 shape  = shapeOf(region);
    return chosen_.charges < 0 || !isLike(points.n, chosen_.charges)
           || !isLike(points.results(), chosen_.results) || points.sets != chosen_.sets
           || points.areOwn() != chosen_.areOwn
           || !isLike((shape - chosen_.shape).cwiseAbs().maxCoeff() + chosen_.shape.norm(),
                      chosen_.shape.norm());
}

template<class Real>
void KernelSum<Real>::Impl::evaluate(const KernelInput<Real>& input,
                                     const KernelOutput<Real>& output)
{
    checkKernelInput(input, options_.boundary);
    if (excludedCharges_ >= 0)
    {
        checkExcludedCharges(input, excludedCharges_);
    }
    sites_.areTaken     = false;
    const Region region = regionOf(input.box, backend_->take(input));
    if (output.virials != nullptr)
    {
        checkVirials(input);
    }
    evaluateTaken(region, output, 1);
}

template<class Real>
void KernelSum<Real>::Impl::evaluateTaken(const Region& region,
                                          const KernelOutput<Real>& output,
                                          int evaluations)
{
    const PointNumbers& points = backend_->numbers();
    const bool wantsVirials    = output.virials != nullptr;
    if (points.results() == 0)
    {
        if (wantsVirials)
        {
            std::fill_n(&output.virials[0][0][0], 9 * points.sets, 0);
        }
        return;
    }
    const PairKernel& kernel = kernel_.pairKernel();
    const double farthest    = std::sqrt(3.0) * edge_; // of points in cells
    if (!region.isPeriodic && !kernel.endsAtZero() && farthest > kernel.last())
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The kernel " + kernel.name() + " ends too early: points fill a cube of "
                            + text(edge_) + ", and cells in it are up to " + text(farthest)
                            + " apart. Make it longer, or let its last value and slope be 0.",
                    "kernel");
    }
    bool isDone = false; // but for virials
    calls_ += evaluations;
    if (areOthers(points, region))
    {
        choose(region);
        isDone = true;
    }
    else if (calls_ >= callsBetween_)
    {
        const double error   = measured(plan_, region, samples(region));
        setup_.measuredError = error;
        calls_               = 0;
        callsBetween_        = std::min(2 * callsBetween_, backend_->mostCallsBetween());
        if (error > options_.accuracy)
        {
            choose(region);
        }
        isDone = true;
    }
    if (!isDone || wantsVirials)
    {
        evaluationFor(plan_, region).evaluate(region, wantsVirials);
    }
    checkResults();
    setup_.degree       = plan_.degree;
    setup_.coefficients = polynomialCount(plan_.degree);
    setup_.directRange  = plan_.ws;
    setup_.levels       = plan_.levels;
    setup_.cell         = region.leaves(plan_).unit();
    backend_->write(output);
    for (int s = 0; wantsVirials && s < points.sets; s++)
    {
        for (size_t k = 0; k < c_strains.size(); k++)
        {
            const auto [a, b]       = c_strains[k];
            output.virials[s][a][b] = output.virials[s][b][a] = backend_->virials()[6 * s + k];
        }
    }
}

template<class Real>
void KernelSum<Real>::Impl::setSites(const KernelSites<Real>& sites)
{
    if (backend_->deviceSites() == nullptr)
    {
        throw Error(
                ErrorCode::Unsupported, "Atoms in device memory need a sum on a GPU.", "device");
    }
    if (sites.n < 0 || sites.sets < 1)
    {
        throw Error(ErrorCode::InvalidArgument, "There must be charges, in one set or more.", "n");
    }
    const std::vector<int> atoms(sites.atoms, sites.atoms + sites.n);
    const std::vector<Real> q(sites.q, sites.q + static_cast<size_t>(sites.n) * sites.sets);
    const std::vector<double> factors(sites.factors, sites.factors + sites.sets);
    if (atoms == sites_.atoms && q == sites_.q && factors == sites_.factors)
    {
        return; // graphs go on
    }
    sites_ = {}; // until all is there
    generation_++;
    backend_->deviceSites()->set(sites);
    sites_ = { sites.n, sites.sets, atoms, q, factors, false };
}

template<class Real>
bool KernelSum<Real>::Impl::enqueueSites(const Real* x,
                                         const double (*box)[3],
                                         const KernelRequest& request,
                                         void* stream)
{
    DeviceSites<Real>& sites = *backend_->deviceSites();
    const bool isRecorded    = sites.isCapturing(stream);
    const bool isForcesAlone = !request.energy && !request.virial;
    sites.begin(stream);
    const bool isMeasured = calls_ + request.evaluations >= callsBetween_ && !isRecorded;
    if (options_.boundary == Boundary::Periodic && sites_.areTaken && isForcesAlone && !isMeasured)
    {
        const Region region = regionOf(box, {});
        if (!areOthers(backend_->numbers(), region)
            && evaluationFor(plan_, region).mayEnqueue(region))
        {
            evaluation_->enqueue(region, x);
            calls_ += request.evaluations;
            enqueued_ = generation_;
            return true;
        }
    }
    if (isRecorded)
    {
        throw Error(ErrorCode::Unsupported,
                    "This evaluation waits for the device, and cannot be recorded in a graph.",
                    "stream");
    }
    return false;
}

template<class Real>
Totals KernelSum<Real>::Impl::enqueue(const Real* x,
                                      const double (*box)[3],
                                      const KernelRequest& request,
                                      void* stream)
{
    KernelInput<Real> like;
    like.box  = box;
    like.n    = std::max(sites_.n, 0);
    like.sets = std::max(sites_.sets, 1);
    if (sites_.n < 0)
    {
        throw Error(ErrorCode::InvalidArgument, "setSites() must be called before.", "sites");
    }
    if ((box == nullptr) != (options_.boundary == Boundary::Open))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "A periodic sum, and no other one, needs a box.",
                    "box");
    }
    if (excludedCharges_ >= 0)
    {
        checkExcludedCharges(like, excludedCharges_);
    }
    Totals totals;
    if (sites_.n == 0)
    {
        return totals;
    }
    DeviceSites<Real>& sites = *backend_->deviceSites();
    if (!enqueueSites(x, box, request, stream))
    {
        std::vector<Real> potentials(request.energy ? sites_.q.size() : 0);
        const size_t sets  = request.virial ? sites_.sets : 0;
        const auto virials = std::make_unique<double[][3][3]>(sets);
        KernelOutput<Real> output;
        output.potentials   = request.energy ? potentials.data() : nullptr;
        output.virials      = request.virial ? virials.get() : nullptr;
        const Region region = regionOf(box, sites.take(x, box == nullptr));
        evaluateTaken(region, output, request.evaluations);
        sites_.areTaken = true;
        for (size_t k = 0; k < potentials.size(); k++)
        {
            totals.energy += 0.5 * sites_.factors[k % sites_.sets]
                             * static_cast<double>(sites_.q[k])
                             * static_cast<double>(potentials[k]);
        }
        for (size_t k = 0; k < 9 * sets; k++)
        {
            totals.virial[k / 3 % 3][k % 3] +=
                    sites_.factors[k / 9] * virials[k / 9][k / 3 % 3][k % 3];
        }
    }
    return totals;
}

template<class Real>
void KernelSum<Real>::Impl::addForces(Real* forces, void* stream)
{
    if (sites_.n > 0 && sites_.areTaken)
    {
        backend_->deviceSites()->addForces(forces, stream);
    }
}

template<class Real>
std::vector<double> KernelSum<Real>::Impl::state() const
{
    if (chosen_.charges < 0 || !evaluation_)
    {
        return {};
    }
    std::vector<double> state{ static_cast<double>(plan_.degree),
                               static_cast<double>(plan_.ws),
                               static_cast<double>(plan_.coarse[0]),
                               static_cast<double>(plan_.coarse[1]),
                               static_cast<double>(plan_.coarse[2]),
                               static_cast<double>(plan_.levels),
                               static_cast<double>(calls_),
                               static_cast<double>(callsBetween_),
                               static_cast<double>(chosen_.charges),
                               static_cast<double>(chosen_.results),
                               static_cast<double>(chosen_.sets),
                               chosen_.areOwn ? 1.0 : 0.0,
                               setup_.measuredError,
                               edge_,
                               evaluation_->hasDerivatives() ? 1.0 : 0.0 };
    for (const Mat3& box : { chosen_.shape, evaluation_->reference() })
    {
        state.insert(state.end(), box.data(), box.data() + box.size());
    }
    return state;
}

template<class Real>
void KernelSum<Real>::Impl::resume(const std::vector<double>& state)
{
    constexpr size_t c_first   = 15; // of the boxes
    constexpr size_t c_numbers = c_first + 2 * 9;
    const auto integer         = [&](int i) { return static_cast<int>(state[i]); };
    const bool isState = state.size() == c_numbers && state[0] >= 0 && state[0] <= c_mostDegree
                         && (state[1] == 1 || state[1] == 2) && state[2] >= 1 && state[3] >= 1
                         && state[4] >= 1 && state[5] >= 1 && state[5] <= c_keyBits;
    if (!isState && !state.empty())
    {
        throw Error(ErrorCode::InvalidArgument, "This is no state of sums of a kernel.", "state");
    }
    evaluation_.reset();
    chosen_.charges    = -1;
    const double error = state.empty() ? 0 : state[12];
    if (state.empty() || error > options_.accuracy)
    {
        return; // it was chosen for less
    }
    plan_.degree         = integer(0);
    plan_.ws             = integer(1);
    plan_.coarse         = { integer(2), integer(3), integer(4) };
    plan_.levels         = integer(5);
    calls_               = integer(6);
    callsBetween_        = integer(7);
    setup_.measuredError = error;
    edge_                = state[13];
    Mat3 boxes[2];
    for (int k = 0; k < 2; k++)
    {
        std::copy_n(state.data() + c_first + 9 * k, 9, boxes[k].data());
    }
    chosen_ = { integer(8), integer(9), integer(10), state[11] != 0, boxes[0] };
    // operators of the same box
    KernelEvaluation<Real>& evaluation = evaluationFor(
            plan_, { Vec3::Zero(), boxes[1], options_.boundary == Boundary::Periodic });
    if (state[14] != 0)
    {
        evaluation.makeDerivatives();
    }
}

template<class Real>
KernelSum<Real>::KernelSum(const Kernel& kernel, const KernelOptions& options) :
    impl_(withMemoryErrors([&] { return std::make_unique<Impl>(kernel, options); }))
{
}
template<class Real>
KernelSum<Real>::~KernelSum() = default;
template<class Real>
KernelSum<Real>::KernelSum(KernelSum&&) noexcept = default;
template<class Real>
KernelSum<Real>& KernelSum<Real>::operator=(KernelSum&&) noexcept = default;

template<class Real>
void KernelSum<Real>::evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output)
{
    withMemoryErrors([&] { impl_->evaluate(input, output); });
}

template<class Real>
void KernelSum<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    withMemoryErrors([&] { impl_->setExclusions(offsets, partners, n); });
}

template<class Real>
KernelSetup KernelSum<Real>::setup() const
{
    return impl_->setup();
}

template<class Real>
std::vector<double> KernelSum<Real>::state() const
{
    return impl_->state();
}

template<class Real>
void KernelSum<Real>::resume(const std::vector<double>& state)
{
    withMemoryErrors([&] { impl_->resume(state); });
}

template<class Real>
void KernelSumAccess<Real>::setSites(KernelSum<Real>& sum, const KernelSites<Real>& sites)
{
    withMemoryErrors([&] { sum.impl_->setSites(sites); });
}

template<class Real>
Totals KernelSumAccess<Real>::enqueue(KernelSum<Real>& sum,
                                      const Real* x,
                                      const double (*box)[3],
                                      const KernelRequest& request,
                                      void* stream)
{
    return withMemoryErrors([&] { return sum.impl_->enqueue(x, box, request, stream); });
}

template<class Real>
void KernelSumAccess<Real>::addForces(KernelSum<Real>& sum, Real* forces, void* stream)
{
    sum.impl_->addForces(forces, stream);
}

template<class Real>
bool KernelSumAccess<Real>::mustRecordAgain(const KernelSum<Real>& sum)
{
    return sum.impl_->mustRecordAgain();
}

template class KernelSum<float>;
template class KernelSum<double>;
template struct KernelSumAccess<float>;
template struct KernelSumAccess<double>;

} // namespace farfield
