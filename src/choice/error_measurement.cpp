/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/error_measurement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "choice/even_places.h"
#include "choice/exact_near.h"
#include "choice/worst_positions.h"
#include "plan/cost_model.h"
#include "plan/open_box.h"

namespace farfield
{

namespace
{

constexpr int c_manyPositions = 24; //!< of the grid

} // namespace

template<class Real>
double ErrorMeasurement<Real>::costOf(const Discretisation& d, const Occupancy& occupied) const
{
    return predictedCost(device_, Work(d, occupied, static_cast<double>(charges_->takingPart())));
}

template<class Real>
std::vector<Real> ErrorMeasurement<Real>::forcesAt(const Real* x, const Request& position)
{
    std::vector<Real> forces(3 * static_cast<size_t>(charges_->count()), Real(0));
    Request request = position;
    request.energy = request.virial = false;
    request.replaceForces           = true;
    pipeline_->run({ x, nullptr, forces.data(), nullptr, request });
    return forces;
}

template<class Real>
ForceSpread<Real> ErrorMeasurement<Real>::measureSpread(const Places& places,
                                                        const Mat3& box,
                                                        int positions,
                                                        int corners)
{
    const Discretisation& d = operators_->discretisation();
    const Real* const x     = places.x;
    std::vector<std::vector<Real>> forces;
    Request request;
    for (int k = 0; k < positions; k++)
    {
        request.step = k;
        forces.push_back(forcesAt(x, request));
    }
    request.step     = -1;
    const auto addAt = [&](const Vec3& corner)
    {
        request.gridOffset = cornerAt(corner, d.leafGrid(box));
        forces.push_back(forcesAt(x, request));
    };
    for (int i = 0, left = corners; left > 0; i++)
    {
        if (charges_->isCharged()[i])
        {
            const Real* r = x + 3 * static_cast<size_t>(i);
            addAt(Vec3(r[0], r[1], r[2]));
            left--;
        }
    }
    if (corners > 0)
    {
        const auto inMainPair = pointsInMainPair(*charges_, x, box, forces.front());
        std::for_each(inMainPair.begin(), inMainPair.end(), addAt);
    }
    if (corners > 0 && !places.exact.empty())
    {
        const auto atFarPairs = pointsAtFarPairs(*charges_, x, box, d);
        std::for_each(atFarPairs.begin(), atFarPairs.end(), addAt);
    }
    return { std::move(forces), static_cast<size_t>(positions), places.exact };
}

template<class Real>
int ErrorMeasurement<Real>::positionsToMeasure(const Places& places) const
{
    // few particles meet few of the places in a cell at one position of the grid
    constexpr int c_samples = 12000, c_least = 6;
    constexpr double c_timeOfFew = 4e7; //!< of all positions, ns
    int most                     = c_manyPositions;
    if (!places.exact.empty())
    {
        const double affordable = c_timeOfFew / costOf(operators_->discretisation(), occupied_);
        most = static_cast<int>(std::clamp<double>(affordable, most, places.mostPositions));
    }
    return static_cast<int>(std::clamp<long long>(
            c_samples / std::max(charges_->acting(), 1LL) + 1, c_least, most));
}

template<class Real>
MeasuredError ErrorMeasurement<Real>::measure(const Real* x, const Mat3& box)
{
    //! Times the force between neighbours in a system that fills its room.
    constexpr double c_crowded = 3;

    here_.x                  = x;
    const MeasuredError here = measureAt(here_, box);
    if (isSumOfPairs())
    {
        return here; // pairs are rounded alike in any places
    }
    // many particles in contact stay together, but for some
    const bool mayPart = charges_->areFew() && crowding(here) > c_crowded;
    if (charges_->charged() < 2 || !(mayPart || areAllNear(x, box)))
    {
        return here;
    }
    if (evenPlaces_.empty())
    {
        evenPlaces_ = evenPlaces<Real>(charges_->count(), room_);
        even_.x     = evenPlaces_.data();
        even_.exact = exactForces(even_.x, box);
    }
    const MeasuredError even = measureAt(even_, box);
    MeasuredError both       = here;
    both.worst               = std::max(here.worst, even.worst);
    both.beyondRounding      = std::max(here.beyondRounding, even.beyondRounding);
    return both;
}

template<class Real>
std::vector<double> ErrorMeasurement<Real>::roundingOfPositions(const ForceSpread<Real>& spread,
                                                                double cell) const
{
    const double unit = 0.5 * static_cast<double>(std::numeric_limits<Real>::epsilon());
    double largest    = 0;
    for (const Real q : charges_->strengths())
    {
        largest = std::max(largest, std::abs(static_cast<double>(q)));
    }
    // of each particle, if all of its force is that of the largest charge
    std::vector<double> rounding(charges_->count(), 0.0);
    for (size_t i = 0; i < rounding.size(); i++)
    {
        const double* f      = spread.mean().data() + 3 * i;
        const double force   = std::sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2]);
        const double product = options_.coulombConstant * largest
                               * std::abs(static_cast<double>(charges_->strengths()[i]));
        if (force > 0 && product > 0)
        {
            const double distance = std::sqrt(product / force);
            rounding[i]           = force * unit * (2 * std::sqrt(3.0) * cell / distance + 8);
        }
    }
    return rounding;
}

template<class Real>
typename ErrorMeasurement<Real>::Bias
ErrorMeasurement<Real>::biasAt(const Places& places,
                               const Mat3& box,
                               const ForceSpread<Real>& spread,
                               const std::vector<double>& weights)
{
    //! Boxes of no more cells show an error that is the same at all positions.
    constexpr long long c_fewCells = 27;
    constexpr int c_lowOrder = 10, c_higher = 4; //!< the same of their orders

    const Discretisation d = operators_->discretisation();
    // without multipoles there is no far field at any position
    const bool hasBias =
            d.order == 0 || (d.leafGrid(box).count() <= c_fewCells && d.order <= c_lowOrder);
    if (!hasBias || !places.exact.empty())
    {
        return {};
    }
    Discretisation better = d;
    better.order          = d.order + c_higher;
    const auto frame      = operators_->frame();
    operators_->build(better, frame);
    const auto positions             = static_cast<int>(spread.count());
    const ForceSpread<Real> ofBetter = measureSpread(places, box, positions, 0);
    operators_->build(d, frame);
    return { spread.bias(ofBetter, {}), spread.bias(ofBetter, weights) };
}

template<class Real>
double ErrorMeasurement<Real>::leastForce(const Mat3& box) const
{
    return std::max(
            farfield::leastForce(options_, sizeof(Real), charges_->sums(), box.determinant()),
            leastForce_);
}

template<class Real>
double ErrorMeasurement<Real>::typicalForce(const MeasuredField& field) const
{
    const double charged = static_cast<double>(charges_->charged());
    return charged > 0 ? field.level * std::sqrt(charges_->squaredCharges() / charged) : 0;
}

template<class Real>
double ErrorMeasurement<Real>::pairForce(const Mat3& room) const
{
    return typicalPairForce(options_.coulombConstant,
                            charges_->squaredCharges(),
                            charges_->charged(),
                            room.determinant());
}

template<class Real>
double ErrorMeasurement<Real>::crowding(const MeasuredError& measured) const
{
    const double perCharged = static_cast<double>(charges_->count()) / charges_->charged();
    return std::sqrt(perCharged) * measured.rms / pairForce(room_);
}

template<class Real>
bool ErrorMeasurement<Real>::isSumOfPairs() const
{
    return operators_->discretisation().isAllNear() && !roundsInCells(options_.boundary);
}

template<class Real>
bool ErrorMeasurement<Real>::areAllNear(const Real* x, const Mat3& box) const
{
    //! Cells across, more than the direct range, from which on most of what can be far is.
    constexpr int c_more = 2;

    const Discretisation& d = operators_->discretisation();
    if (d.boundary != Boundary::Open)
    {
        return false; // images are far
    }
    const Vec3 across = charges_->extent(x).cwiseProduct(d.leafGrid(box).inverseEdges().diagonal());
    return across.maxCoeff() < d.ws + c_more;
}

template<class Real>
MeasuredError ErrorMeasurement<Real>::measureAt(const Places& places, const Mat3& box)
{
    constexpr int c_corners = 8, c_fewCorners = 2;
    constexpr double c_certain = 0.5; //!< part of the request: no position has twice as much
    if (charges_->charged() == 0)
    {
        return {};
    }
    // pairs are the same ones wherever the grid lies: what differs is the order of their sum
    const bool isSum      = isSumOfPairs() && !places.exact.empty();
    const long long count = isSum ? 0 : charges_->charged();
    const int positions   = isSum ? 2 : positionsToMeasure(places);
    // those that act are counted; ChargeSet::areFew() counts all, as for the sums over all pairs
    const int corners = static_cast<int>(std::min<long long>(
            count, charges_->acting() <= c_fewParticles ? c_corners : c_fewCorners));
    const auto at     = [&](int numPositions)
    { return errorOf(measureSpread(places, box, numPositions, corners), places, box); };
    const auto [measured, isUneven] = at(positions);
    // Those of a crystal, or of copies of a small box, all meet the same places. Where few positions show
    // that an error is just small enough, others may show that it is not.
    const bool isDoubtful = isUneven && measured.worst <= options_.accuracy
                            && measured.worst > c_certain * options_.accuracy;
    return isDoubtful && !isSum && positions < c_manyPositions ? at(c_manyPositions).first
                                                               : measured;
}

template<class Real>
std::pair<MeasuredError, bool> ErrorMeasurement<Real>::errorOf(const ForceSpread<Real>& spread,
                                                               const Places& places,
                                                               const Mat3& box)
{
    //! More than those of many independent particles differ.
    constexpr double c_even = 1.25;

    const ForceScale scale(spread.mean(), *charges_, pairForce(box), leastForce(box));
    const auto even        = spread.squares(scale.weights);
    const Bias bias        = biasAt(places, box, spread, scale.weights);
    const auto errorBeyond = [&](const std::vector<double>& rounding)
    {
        // particles in contact, whose forces are most of all, count in one, and hardly in the other
        const auto all      = spread.squares({}, rounding);
        const auto ordinary = scale.weights.empty() ? all : spread.squares(scale.weights, rounding);
        const double usual  = std::sqrt(std::max((all.usual + bias.ofAll) / scale.ofAll,
                                                (ordinary.usual + bias.ofOrdinary) / scale.square));
        const double worst  = std::sqrt(std::max((all.worst + bias.ofAll) / scale.ofAll,
                                                (ordinary.worst + bias.ofOrdinary) / scale.square));
        // other positions may be worse than the worst of these: half as far again from the usual
        return std::make_pair(usual, worst + 0.5 * (worst - usual));
    };
    const auto [usual, error]   = errorBeyond({});
    const double cell           = roundsInCells(options_.boundary)
                                          ? operators_->discretisation().leafGrid(box).unit()
                                          : 0;
    const double beyondRounding = error <= c_margin * options_.accuracy
                                          ? error
                                          : errorBeyond(roundingOfPositions(spread, cell)).second;
    return { { usual,
               error,
               std::sqrt(scale.square / charges_->count()),
               std::sqrt(scale.ofAll / charges_->count()),
               beyondRounding,
               scale.field },
             even.most > c_even * even.usual };
}

template<class Real>
void ErrorMeasurement<Real>::look(const Real* x, const Mat3& box, const Vec3& extent)
{
    //! Edges of the room over the spread of particles, which is half of that of a cube that they fill.
    constexpr double c_roomy = 8;

    occupied_ = charges_->occupancy(x, box);
    room_     = box;
    // one that has flown away leaves no room to the others
    const double most = options_.boundary == Boundary::Periodic
                                ? 0
                                : c_roomy * charges_->spread(x, options_.boundary);
    for (int k = 0; k < 3; k++)
    {
        if (isOpenAlong(options_.boundary, k))
        {
            const double edge = largestLike(extent)[k];
            room_.row(k)      = (most > 0 ? std::min(edge, most) : edge) * Vec3::Unit(k);
        }
    }
    here_.exact = exactForces(x, box);
    evenPlaces_.clear();
}

template<class Real>
std::vector<double> ErrorMeasurement<Real>::exactForces(const Real* x, const Mat3& box) const
{
    if (charges_->charged() == 0 || !charges_->areFew() || charges_->hasMoments())
    {
        return {};
    }
    const PointCharges<Real> particles = {
        x, charges_->charges().data(), charges_->count(), charges_->excluded()
    };
    const bool isSlab = isOpenAlong(options_.boundary, 2) && options_.boundary != Boundary::Open;
    const double thickness = isSlab ? charges_->extent(x)[2] : 0;
    // of particles that fill a height evenly
    const double most = isSlab ? std::sqrt(12.0) * charges_->spread(x, options_.boundary) : 0;
    std::optional<ExactForces> images;
    if (options_.boundary != Boundary::Open)
    {
        // an order that is given may be meant to do better than the accuracy
        images.emplace(options_.boundary,
                       box,
                       ExactForces::Heights{ thickness, std::min(thickness, most) },
                       charges_->charged(),
                       options_.order < 0 ? options_.accuracy : c_bestAccuracy<Real>,
                       int{ sizeof(Real) });
        if (!images->areCheap())
        {
            return {};
        }
    }
    const auto coulomb = [&](const PointCharges<Real>& of)
    {
        return images ? (*images)(of, options_.coulombConstant)
                      : ExactForces::ofOpen(of, options_.coulombConstant);
    };
    std::vector<double> forces;
    if (charges_->nearPairs().any())
    {
        Mat3 imageBox = box;
        if (isSlab)
        {
            // so high that no image is nearer
            imageBox.row(2) = 3 * (thickness + box(0, 0) + box(1, 1)) * Vec3::UnitZ();
        }
        const MinimumImage image = MinimumImage::of(imageBox);
        const ExactNear near(particles,
                             charges_->nearPairs(),
                             images ? &image : nullptr,
                             options_.coulombConstant);
        forces = coulomb({ particles.x, particles.q, particles.n, near.leftOut });
        std::transform(
                forces.begin(), forces.end(), near.forces.begin(), forces.begin(), std::plus<>());
    }
    else
    {
        forces = coulomb(particles);
    }
    // charges at one place have no force between them that is a number
    const bool areNumbers =
            std::all_of(forces.begin(), forces.end(), [](double f) { return std::isfinite(f); });
    return areNumbers ? forces : std::vector<double>();
}

template class ErrorMeasurement<float>;
template class ErrorMeasurement<double>;

} // namespace farfield
