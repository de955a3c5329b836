/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "farfield/farfield_kernels.h"

#include "base/text.h"
#include "cells/position_error.h"
#include "evaluation/memory_errors.h"
#include "pair_kernels/direct_sums.h"
#include "pair_kernels/field_error.h"
#include "pair_kernels/kernel_input.h"

namespace farfield
{
namespace
{

/*! \brief Errors of 1/r for a direct range of 1 and 2; of another kernel or other points they are off by some factor.
 *
 *  Measured with 5e4 charges in a cube, degrees 1 to 12: within a factor of 2. */
struct ErrorModel
{
    double start, perDegree;

    double error(int degree) const { return start * std::pow(perDegree, -degree); }
    int degreeFor(double error) const
    {
        return std::max(1,
                        static_cast<int>(std::ceil(std::log(start / error) / std::log(perDegree))));
    }
};
constexpr ErrorModel c_errors[] = { { 0.1, 3 }, { 0.05, 4.5 } };

//! Degrees beyond the one in use that tell its error in a periodic box.
constexpr int c_degreesBeyond = 3;

//! Points whose exact fields tell it without images.
constexpr int c_samples = 512;

//! The highest in use.
constexpr int c_highest = c_mostDegree - c_degreesBeyond;

//! Calls between two measurements of the error.
constexpr int c_callsBetween = 64;

} // namespace

template<class Real>
class KernelSum<Real>::Impl
{
public:
    Impl(const Kernel& kernel, const KernelOptions& options);

    void evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output);
    const KernelSetup& setup() const { return setup_; }

private:
    //! The space that holds all points.
    Region regionOf(const KernelInput<Real>& input);
    //! An evaluation with such a plan; operators are kept where they suit.
    KernelEvaluation<Real>& evaluationFor(const KernelPlan& plan, const Region& region);
    //! Chooses degree and cells, and measures their error. \returns potentials and fields
    std::vector<double> choose(const PointSystem<Real>& system, const Region& region);
    /*! \brief The cheapest plan, by the model.
     *  \param[in] off     what errors are, over those of the model
     *  \param[in] levels  see KernelCosts::cheapest() */
    KernelPlan planFor(double off, int levels, KernelCosts* costs, double* cost) const;
    //! Potentials and fields of a plan, and the error of the fields.
    double measured(const KernelPlan& plan,
                    const PointSystem<Real>& system,
                    const Region& region,
                    std::vector<double>* sums);
    //! The periodic box, or the extents of the points.
    Mat3 shapeOf(const Region& region) const
    {
        return region.isPeriodic ? region.box : Mat3(extents_.asDiagonal());
    }
    //! What is left for points that were not measured.
    double wanted() const { return 0.75 * options_.accuracy; }
    //! That there is a number for every result, and that this precision has them.
    void checkResult(const PointSystem<Real>& system, const std::vector<double>& sums) const;
    //! That a result is no number.
    Error noValueAt(const PointSystem<Real>& system, int result) const;

    Kernel kernel_;
    KernelOptions options_;
    Team team_;
    KernelSetup setup_;
    std::unique_ptr<KernelEvaluation<Real>> evaluation_;
    KernelPlan plan_;
    int calls_ = 0; //!< since the error was measured
    //! The system that the plan was chosen for.
    struct
    {
        int charges = -1; //!< -1: there is no plan
        int results = 0, sets = 0;
        bool areOwn = true;
        Mat3 shape  = Mat3::Zero(); //!< see shapeOf()
    } chosen_;
    Vec3 extents_ = Vec3::Zero(); //!< of the points at hand, without images
    double edge_  = 0;            //!< of the cube, without images
};

template<class Real>
KernelSum<Real>::Impl::Impl(const Kernel& kernel, const KernelOptions& options) :
    kernel_(kernel), options_(options), team_(usableThreads(options.threads))
{
    checkKernelOptions<Real>(kernel, options);
    setup_.threads = team_.threads();
}

template<class Real>
Region KernelSum<Real>::Impl::regionOf(const KernelInput<Real>& input)
{
    if (options_.boundary == Boundary::Periodic)
    {
        const Mat3 box = reducedPeriodicBox(input.box);
        return { Vec3::Zero(), box, true };
    }
    // A cube of one of few sizes, with room to move: it, and with it operators, stay while points move.
    constexpr double c_room = 1.07, c_steps = 4;
    const Extent extent = Extent::of(input);
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
        evaluation_ = std::make_unique<KernelEvaluation<Real>>(
                kernel_.pairKernel(), plan, region, 1e-3 * options_.accuracy, &team_);
    }
    return *evaluation_;
}

template<class Real>
KernelPlan
KernelSum<Real>::Impl::planFor(double off, int levels, KernelCosts* costs, double* cost) const
{
    KernelPlan best;
    *cost = std::numeric_limits<double>::infinity();
    for (int ws = 1; ws <= 2; ws++)
    {
        const int degree = c_errors[ws - 1].degreeFor(wanted() / off);
        if (degree > c_highest && ws == 1)
        {
            continue; // the other one reaches more
        }
        double ofPlan;
        const KernelPlan plan = costs->cheapest(std::min(degree, c_highest), ws, levels, &ofPlan);
        if (ofPlan < *cost)
        {
            *cost = ofPlan;
            best  = plan;
        }
    }
    return best;
}

template<class Real>
double KernelSum<Real>::Impl::measured(const KernelPlan& plan,
                                       const PointSystem<Real>& system,
                                       const Region& region,
                                       std::vector<double>* sums)
{
    *sums = evaluationFor(plan, region)(system, region);
    if (region.isPeriodic)
    {
        // fields cancel in a crystal: a part of the potential per size of a leaf is what they are without
        constexpr double c_part = 0.1;
        // a higher degree and a longer direct range, and points elsewhere in their cells
        KernelPlan better = plan;
        better.degree += plan.ws == 2 ? c_degreesBeyond : c_degreesBeyond - 1;
        better.ws    = 2;
        Region moved = region;
        moved.origin -= region.leaves(plan).edges.transpose() * Vec3(0.37, 0.29, 0.43);
        KernelEvaluation<Real> reference(
                kernel_.pairKernel(), better, region, 1e-3 * options_.accuracy, &team_);
        return errorOf(
                *sums, reference(system, moved), system.sets, c_part / region.leaves(plan).unit());
    }
    // evenly among the results, in no order that these may have: multiples of the golden ratio
    std::vector<int> some;
    const int results = system.results();
    for (int k = 0; k < std::min(results, c_samples); k++)
    {
        const double turns = 0.6180339887498949 * k;
        some.push_back(
                results <= c_samples ? k : static_cast<int>(results * (turns - std::floor(turns))));
    }
    std::vector<double> ofSome;
    for (int c = 0; c < 4 * system.sets; c++)
    {
        for (const int i : some)
        {
            ofSome.push_back((*sums)[static_cast<size_t>(c) * results + i]);
        }
    }
    const std::vector<double> exact =
            directSums(kernel_.pairKernel(), system, region, some, &team_);
    for (size_t i = 0; i < exact.size(); i++)
    {
        if (!std::isfinite(exact[i]))
        {
            throw noValueAt(system, some[i % some.size()]);
        }
    }
    return errorOf(ofSome, exact, system.sets, 0);
}

template<class Real>
std::vector<double> KernelSum<Real>::Impl::choose(const PointSystem<Real>& system,
                                                  const Region& region)
{
    constexpr int c_tries = 10;
    KernelCosts costs(kernel_.pairKernel(), region, system.x, system.n, system.results(), &team_);
    chosen_.charges  = -1; // until there is another choice
    double off       = 1;
    int levels       = 1;
    double bestError = std::numeric_limits<double>::infinity(), leastCost = bestError;
    std::vector<double> best, sums;
    std::unique_ptr<KernelEvaluation<Real>> kept;     // with its operators
    std::vector<std::pair<KernelPlan, double>> tried; // and its error
    for (int k = 0; k < c_tries; k++)
    {
        double cost;
        const KernelPlan plan = planFor(off, levels, &costs, &cost);
        if (std::any_of(tried.begin(),
                        tried.end(),
                        [&](const auto& other) { return other.first == plan; }))
        {
            break;
        }
        const double error = measured(plan, system, region, &sums);
        // the cheapest that is accurate, or the most accurate
        const bool isFine = error <= wanted();
        if (isFine ? bestError > wanted() || cost < leastCost : error < bestError)
        {
            plan_     = plan;
            bestError = error;
            leastCost = cost;
            best.swap(sums);
            kept = std::move(evaluation_);
        }
        const double ofModel = c_errors[plan.ws - 1].error(plan.degree);
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
                                && (plan.levels == 1 || plan.degree == c_highest || !isHelped
                                    || !std::isfinite(error));
        tried.emplace_back(plan, error);
        if (isRounding)
        {
            levels = plan.levels + 1;
        }
        else
        {
            off = std::max(error / ofModel, isFine ? 0 : 1.01 * wanted() / ofModel);
        }
        if (off == 0 || !std::isfinite(off))
        {
            break;
        }
    }
    if (best.empty())
    {
        checkResult(system, sums);
    }
    if (bestError > options_.accuracy)
    {
        throw Error(ErrorCode::Unsupported,
                    "The accuracy " + text(options_.accuracy) + " cannot be reached for the kernel "
                            + kernel_.name() + " and these points: the best is " + text(bestError)
                            + ". Ask for less"
                            + (sizeof(Real) == 4 ? ", or use double precision." : "."),
                    "accuracy");
    }
    evaluation_          = std::move(kept);
    setup_.measuredError = bestError;
    calls_               = 0;
    // charges that make nothing show no error
    const bool isNothing = std::all_of(best.begin(), best.end(), [](double v) { return v == 0; });
    if (!isNothing)
    {
        chosen_ = { system.n, system.results(), system.sets, system.areOwn(), shapeOf(region) };
    }
    return best;
}

template<class Real>
Error KernelSum<Real>::Impl::noValueAt(const PointSystem<Real>& system, int result) const
{
    const double* x    = (system.areOwn() ? system.x : system.at) + 3 * static_cast<size_t>(result);
    const bool isTable = kernel_.pairKernel().kind() == PairLawKind::Table;
    return { ErrorCode::InvalidArgument,
             "The kernel " + kernel_.name() + " has no value at "
                     + nameOfPlace(system.areOwn() ? "particle" : "point", result, x) + ": "
                     + (isTable ? "a distance is outside of the table, or a charge is at the same "
                                  "place."
                                : "another charge is at the same place, or too near for this "
                                  "precision."),
             "positions" };
}

template<class Real>
void KernelSum<Real>::Impl::checkResult(const PointSystem<Real>& system,
                                        const std::vector<double>& sums) const
{
    double largest = 0;
    for (size_t i = 0; i < sums.size(); i++)
    {
        if (!std::isfinite(sums[i]))
        {
            throw noValueAt(system, static_cast<int>(i % system.results()));
        }
        largest = std::max(largest, std::abs(sums[i]));
    }
    if (largest > static_cast<double>(std::numeric_limits<Real>::max())
        || (largest > 0 && largest < static_cast<double>(std::numeric_limits<Real>::min())))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "Results are up to " + text(largest)
                            + ", which is beyond this precision: take another unit of length or of "
                              "charge"
                            + (sizeof(Real) == 4 ? ", or double precision." : "."),
                    "positions");
    }
}

template<class Real>
void KernelSum<Real>::Impl::evaluate(const KernelInput<Real>& input,
                                     const KernelOutput<Real>& output)
{
    checkKernelInput(input, options_.boundary);
    const Region region = regionOf(input);
    const PointSystem<Real> system{ input.x, input.q, input.n, input.sets, input.at, input.points };
    if (system.results() == 0)
    {
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
    const auto isLike = [](double a, double b) { return std::abs(a - b) <= 0.1 * b; };
    const Mat3 shape  = shapeOf(region);
    const bool isNew =
            chosen_.charges < 0 || !isLike(input.n, chosen_.charges)
            || !isLike(system.results(), chosen_.results) || input.sets != chosen_.sets
            || system.areOwn() != chosen_.areOwn
            || !isLike((shape - chosen_.shape).cwiseAbs().maxCoeff() + chosen_.shape.norm(),
                       chosen_.shape.norm());
    std::vector<double> sums;
    if (isNew)
    {
        sums = choose(system, region);
    }
    else if (++calls_ % c_callsBetween == 0)
    {
        const double error   = measured(plan_, system, region, &sums);
        setup_.measuredError = error;
        if (error > options_.accuracy)
        {
            sums = choose(system, region);
        }
    }
    else
    {
        sums = evaluationFor(plan_, region)(system, region);
    }
    checkResult(system, sums);
    setup_.degree       = plan_.degree;
    setup_.coefficients = polynomialCount(plan_.degree);
    setup_.directRange  = plan_.ws;
    setup_.levels       = plan_.levels;
    setup_.cell         = region.leaves(plan_).unit();
    const size_t n      = system.results();
    for (int s = 0; s < input.sets; s++)
    {
        for (size_t i = 0; i < n; i++)
        {
            const size_t to  = i * input.sets + s;
            const auto value = [&](int k)
            { return static_cast<Real>(sums[(static_cast<size_t>(s) * 4 + k) * n + i]); };
            if (output.potentials != nullptr)
            {
                output.potentials[to] = value(0);
            }
            for (int k = 0; output.fields != nullptr && k < 3; k++)
            {
                output.fields[3 * to + k] = value(1 + k);
            }
        }
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
KernelSetup KernelSum<Real>::setup() const
{
    return impl_->setup();
}

template class KernelSum<float>;
template class KernelSum<double>;

} // namespace farfield
