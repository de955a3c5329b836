/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "farfield/farfield_kernels.h"

#include "base/text.h"
#include "batch/reduced_box.h"
#include "cells/position_error.h"
#include "evaluation/memory_errors.h"
#include "pair_kernels/direct_sums.h"

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

//! A periodic box is at most so many times as long as it is high.
constexpr double c_longestBox = 1000;

void refuseUnless(bool isFine, const std::string& text, const char* parameter)
{
    if (!isFine)
    {
        throw Error(ErrorCode::InvalidArgument, text, parameter);
    }
}

//! The extent of points along the axes.
struct Extent
{
    Vec3 low  = Vec3::Constant(std::numeric_limits<double>::infinity());
    Vec3 high = -low;

    void take(const double* x, int n, const char* what)
    {
        for (int i = 0; i < n; i++)
        {
            const Vec3 at(x[3 * static_cast<size_t>(i)],
                          x[3 * static_cast<size_t>(i) + 1],
                          x[3 * static_cast<size_t>(i) + 2]);
            if (!at.allFinite())
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The position of "
                                    + nameOfPlace(what, i, x + 3 * static_cast<size_t>(i))
                                    + " is not finite.",
                            "positions");
            }
            low  = low.cwiseMin(at);
            high = high.cwiseMax(at);
        }
    }
};

/*! \brief The RMS difference of fields from better ones, relative to the RMS of those.
 *
 *  Fields above ten times the median count as that. The worst of the sets of charges.
 *  \param[in] perPotential  errors are relative to no less than this times the median of the potentials */
double errorOf(const std::vector<double>& fields,
               const std::vector<double>& better,
               int sets,
               double perPotential)
{
    constexpr double c_most = 10; // medians
    const size_t n          = fields.size() / (4 * static_cast<size_t>(sets));
    double worst            = 0;
    for (int s = 0; s < sets; s++)
    {
        const auto component = [n, s](const std::vector<double>& of, int k, size_t i)
        { return of[(static_cast<size_t>(s) * 4 + k) * n + i]; };
        std::vector<double> sizes(n), differences(n);
        for (size_t i = 0; i < n; i++)
        {
            double size = 0, difference = 0;
            for (int k = 1; k < 4; k++)
            {
                const double is = component(better, k, i);
                size += is * is;
                difference += std::pow(component(fields, k, i) - is, 2);
            }
            sizes[i]       = size;
            differences[i] = difference;
        }
        std::vector<double> sorted = sizes;
        std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.end());
        const double median = sorted[n / 2];
        for (size_t i = 0; i < n; i++)
        {
            sorted[i] = std::abs(component(better, 0, i));
        }
        std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.end());
        const double least = static_cast<double>(n) * std::pow(perPotential * sorted[n / 2], 2);
        const double most =
                median > 0 ? c_most * c_most * median : std::numeric_limits<double>::infinity();
        double total = 0, error = 0;
        for (size_t i = 0; i < n; i++)
        {
            // a large field may have the error of its pairs
            const double counted = std::min(sizes[i], most);
            total += counted;
            error += sizes[i] > 0 ? differences[i] * counted / sizes[i] : differences[i];
        }
        const double ofSet = error > 0 ? std::sqrt(error / std::max(total, least)) : 0;
        // what is no number is too large
        worst = std::isfinite(ofSet) && std::isfinite(error)
                        ? std::max(worst, ofSet)
                        : std::numeric_limits<double>::infinity();
    }
    return worst;
}

} // namespace

template<class Real>
class KernelSum<Real>::Impl
{
public:
    Impl(const Kernel& kernel, const KernelOptions& options);

    void evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output);
    const KernelSetup& setup() const { return setup_; }

private:
    void check(const KernelInput<Real>& input) const;
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
    //! Fields of a plan and their error.
    double measured(const KernelPlan& plan,
                    const PointSystem<Real>& system,
                    const Region& region,
                    std::vector<double>* fields);
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
    refuseUnless(options.accuracy >= c_bestAccuracy<Real> && options.accuracy <= c_worstAccuracy,
                 "The option accuracy = " + text(options.accuracy) + " is outside its range, "
                         + text(c_bestAccuracy<Real>) + " to " + text(c_worstAccuracy) + ".",
                 "accuracy");
    refuseUnless(options.threads >= 0 && options.threads <= c_maxThreads,
                 "The option threads = " + text(options.threads) + " is outside its range, 0 to "
                         + text(c_maxThreads) + ".",
                 "threads");
    if (options.boundary == Boundary::Slab)
    {
        throw Error(
                ErrorCode::Unsupported,
                "Sums of other kernels than 1/r have no slabs: boundary must be Open or Periodic.",
                "boundary");
    }
    if (options.boundary == Boundary::Periodic && !kernel.pairKernel().hasPeriodicSum())
    {
        throw Error(ErrorCode::Unsupported,
                    "The kernel " + kernel.name()
                            + " has no sum over periodic images here: use exp(-kappa r)/r, an even "
                              "power "
                              "from 1/r^4 on, or a table that ends at 0.",
                    "kernel");
    }
    setup_.threads = team_.threads();
}

template<class Real>
void KernelSum<Real>::Impl::check(const KernelInput<Real>& input) const
{
    refuseUnless(input.n >= 0 && input.points >= -1 && input.sets >= 1,
                 "There are " + text(input.n) + " charges in " + text(input.sets) + " sets and "
                         + text(input.points)
                         + " points: no number may be negative, and there must be a set.",
                 "n");
    refuseUnless((input.n == 0 || (input.x != nullptr && input.q != nullptr))
                         && (input.points <= 0 || input.at != nullptr),
                 "Positions or charges are missing: a pointer is null.",
                 "x");
    refuseUnless(
            options_.boundary == Boundary::Periodic || input.box == nullptr,
            "A box is given, but the boundary is open: make the sum for a periodic one, or leave "
            "the box out.",
            "box");
    const size_t charges = static_cast<size_t>(input.n) * input.sets;
    for (size_t i = 0; i < charges; i++)
    {
        if (!std::isfinite(input.q[i]))
        {
            throw Error(ErrorCode::InvalidArgument,
                        "A charge of particle " + std::to_string(i / input.sets)
                                + " is not finite.",
                        "charges");
        }
    }
}

template<class Real>
Region KernelSum<Real>::Impl::regionOf(const KernelInput<Real>& input)
{
    if (options_.boundary == Boundary::Periodic)
    {
        refuseUnless(input.box != nullptr, "A periodic sum needs a box.", "box");
        Mat3 box;
        for (int i = 0; i < 9; i++)
        {
            box(i / 3, i % 3) = input.box[i / 3][i % 3];
        }
        const double volume = std::abs(box.determinant());
        refuseUnless(box.allFinite() && volume > 1e-10 * std::pow(box.norm(), 3),
                     "The box is not finite or has no volume.",
                     "box");
        const ReducedBox reduced(box);
        box = reduced.vectors;
        refuseUnless(box.rowwise().norm().maxCoeff() <= c_longestBox * reduced.heights.minCoeff(),
                     "The box is more than " + text(c_longestBox) + " times as long as it is high.",
                     "box");
        if (box.determinant() < 0)
        {
            box.row(2) *= -1; // the same lattice
        }
        return { Vec3::Zero(), box, true };
    }
    Extent extent;
    extent.take(input.x, input.n, "particle");
    extent.take(input.at, std::max(input.points, 0), "point");
    if (!extent.low.allFinite())
    {
        extent.low = extent.high = Vec3::Zero(); // there are no points
    }
    // A cube of one of few sizes, with room to move: it, and with it operators, stay while points move. A place is
    // known to rounding.
    constexpr double c_room = 1.07, c_steps = 4;
    const double far =
            std::max(extent.low.cwiseAbs().maxCoeff(), extent.high.cwiseAbs().maxCoeff());
    extents_       = extent.high - extent.low;
    double longest = std::max(extents_.maxCoeff(), 1e-12 * far);
    longest        = longest > 0 ? longest : 1;
    if (!(c_room * longest <= edge_ && edge_ <= 2 * c_room * longest))
    {
        edge_ = std::exp2(std::ceil(c_steps * std::log2(c_room * longest)) / c_steps);
    }
    const Vec3 centre = 0.5 * (extent.low + extent.high);
    return { centre - Vec3::Constant(0.5 * edge_), edge_ * Mat3::Identity(), false };
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
            best      = std::move(sums);
            kept      = std::move(evaluation_);
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
    check(input);
    const Region region = regionOf(input);
    const PointSystem<Real> system{ input.x, input.q, input.n, input.sets, input.at, input.points };
    if (system.results() == 0)
    {
        return;
    }
    const PairKernel& kernel = kernel_.pairKernel();
    if (!region.isPeriodic && !kernel.endsAtZero())
    {
        refuseUnless(std::sqrt(3.0) * edge_ <= kernel.last(),
                     "The kernel " + kernel.name() + " ends too early: points fill a cube of "
                             + text(edge_) + ", and cells in it are up to "
                             + text(std::sqrt(3.0) * edge_)
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
