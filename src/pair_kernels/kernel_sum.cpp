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
#include "pair_kernels/left_out_pairs.h"

namespace farfield
{
namespace
{

//! Calls between two measurements of the error: twice as many after each, up to a largest number.
constexpr int c_callsBetween = 64, c_mostCallsBetween = 1024;

} // namespace

template<class Real>
class KernelSum<Real>::Impl
{
public:
    Impl(const Kernel& kernel, const KernelOptions& options);

    void evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output);
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
    Region regionOf(const KernelInput<Real>& input, const Extent& extent);
    //! Whether such points need another choice.
    bool areOthers(const KernelInput<Real>& input, const Region& region) const;
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
Region KernelSum<Real>::Impl::regionOf(const KernelInput<Real>& input, const Extent& extent)
{
    if (options_.boundary == Boundary::Periodic)
    {
        const Mat3 box = reducedPeriodicBox(input.box);
        return { Vec3::Zero(), box, true };
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
    if (!isCurrent)
    {
        evaluation_->evaluate(region, false);
    }
    setup_.measuredError = bestError;
    calls_               = 0;
    callsBetween_ =
            mayBeWorse && bestError > options_.accuracy ? c_mostCallsBetween : c_callsBetween;
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
bool KernelSum<Real>::Impl::areOthers(const KernelInput<Real>& input, const Region& region) const
{
    const auto isLike = [](double a, double b) { return std::abs(a - b) <= 0.1 * b; };
    const Mat3 shape  = shapeOf(region);
    const int results = input.points < 0 ? input.n : input.points;
    return chosen_.charges < 0 || !isLike(input.n, chosen_.charges)
           || !isLike(results, chosen_.results) || input.sets != chosen_.sets
           || (input.points < 0) != chosen_.areOwn
           || !isLike((shape - chosen_.shape).cwiseAbs().maxCoeff() + chosen_.shape.norm(),
                      chosen_.shape.norm());
}

template<class Real>
void KernelSum<Real>::Impl::evaluate(const KernelInput<Real>& input,
                                     const KernelOutput<Real>& output)
{
    checkKernelInput(input, options_.boundary);
    const bool areOwn       = input.points < 0;
    const bool wantsVirials = output.virials != nullptr;
    if (excludedCharges_ >= 0)
    {
        checkExcludedCharges(input, excludedCharges_);
    }
    const Region region = regionOf(input, backend_->take(input));
    if (wantsVirials)
    {
        checkVirials(input);
    }
    if ((areOwn ? input.n : input.points) == 0)
    {
        if (wantsVirials)
        {
            std::fill_n(&output.virials[0][0][0], 9 * input.sets, 0);
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
    if (areOthers(input, region))
    {
        choose(region);
        isDone = true;
    }
    else if (++calls_ >= callsBetween_)
    {
        const double error   = measured(plan_, region, samples(region));
        setup_.measuredError = error;
        calls_               = 0;
        callsBetween_        = std::min(2 * callsBetween_, c_mostCallsBetween);
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
    for (int s = 0; wantsVirials && s < input.sets; s++)
    {
        for (size_t k = 0; k < c_strains.size(); k++)
        {
            const auto [a, b]       = c_strains[k];
            output.virials[s][a][b] = output.virials[s][b][a] = backend_->virials()[6 * s + k];
        }
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

template class KernelSum<float>;
template class KernelSum<double>;

} // namespace farfield
