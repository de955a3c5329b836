/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/placement.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "evaluation/input_check.h"
#include "plan/open_box.h"

namespace farfield
{
namespace
{

//! Slabs without empty layers are worth it when they are so many times lower.
constexpr double c_worthNarrowing = 2;

} // namespace

template<class Real>
Mat3 Placement<Real>::boxFor(const double box[3][3]) const
{
    const Mat3 checked = checkedBox(box, options_.boundary);
    checkNearRange(charges_->nearPairs().range, checked, options_.boundary);
    return checked;
}

template<class Real>
double Placement<Real>::kept(const Mat3& box) const
{
    if (charges_->hasMoments())
    {
        return std::numeric_limits<double>::infinity(); // corrections are those of charges
    }
    // layers that are farther apart have 1/r between them
    return std::max(keptWidth(box, options_), charges_->nearPairs().range);
}

template<class Real>
Place<Real> Placement<Real>::onHost(const Real* x, const double box[3][3], const Vec3& chosen) const
{
    const Mat3 checked = boxFor(box);
    if (options_.boundary == Boundary::Periodic)
    {
        return { checked, Vec3::Zero(), {} };
    }
    const Vec3 extent = charges_->count() > 0 ? charges_->extent(x) : Vec3::Zero();
    return withoutImages(checked, extent, chosen, [x] { return x; });
}

template<class Real>
Place<Real> Placement<Real>::onDevice(const Task<Real>& task,
                                      GpuBackend<Real>* gpu,
                                      const Vec3& chosen) const
{
    const Mat3 box = boxFor(task.box);
    if (options_.boundary == Boundary::Periodic)
    {
        return { box, Vec3::Zero(), {} };
    }
    if (options_.boundary == Boundary::Open)
    {
        checkOpenVirialOnDevice(task.request);
    }
    const Vec3 extent = gpu->extent(task.x, task.stream);
    std::vector<Real> onHost;
    const auto positions = [&]
    {
        onHost = gpu->onHost(task.x, charges_->count(), task.stream);
        return static_cast<const Real*>(onHost.data());
    };
    if (!extent.allFinite())
    {
        charges_->extent(positions()); // says which of them is not finite
    }
    checkExtent(extent);
    return withoutImages(box, extent, chosen, positions);
}

template<class Real>
Place<Real> Placement<Real>::withoutImages(const Mat3& box,
                                           const Vec3& extent,
                                           const Vec3& chosen,
                                           const std::function<const Real*()>& positions) const
{
    const Mat3 ours =
            operators_->exist()
                    ? openBoxLike(options_.boundary, box, operators_->discretisation().referenceBox)
                    : box;
    Place<Real> place = { ours, extentInBox(options_.boundary, box, extent), {} };
    if (mayBeNarrowed(box, extent, chosen))
    {
        NarrowedSlab<Real> narrowed(positions(), charges_->areChosenFor(), kept(box));
        if (narrowed.any() && c_worthNarrowing * narrowed.height() <= extent[2])
        {
            place.extent[2] = narrowed.height();
            place.narrowed  = std::move(narrowed);
        }
    }
    return place;
}

template<class Real>
bool Placement<Real>::mayBeNarrowed(const Mat3& box, const Vec3& extent, const Vec3& chosen) const
{
    // what cells were chosen for is held by them
    return options_.boundary == Boundary::Slab
           && !(operators_->exist() && extent[2] <= largestLike(chosen)[2])
           && extent[2] > c_worthNarrowing * kept(box);
}

template<class Real>
SlabCorrection<Real> Placement<Real>::correctionOf(const Place<Real>& place) const
{
    return place.narrowed.correction(*charges_, place.box, options_.coulombConstant);
}

template<class Real>
void Placement<Real>::checkPoints(const Real* at, int points, const double box[3][3]) const
{
    const std::vector<char> all(points, 1);
    if (options_.boundary != Boundary::Periodic)
    {
        checkedExtent(at, all, "point");
    }
    if (options_.boundary != Boundary::Open)
    {
        checkPositions(at, all, checkedBox(box, options_.boundary), "point");
    }
}

template class Placement<float>;
template class Placement<double>;

} // namespace farfield
