/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/batch_system.h"

#include <algorithm>

#include "farfield/farfield.h"

#include "base/text.h"
#include "batch/slab_box.h"

namespace farfield
{

std::string tooFarMessage(int particle)
{
    return "has its particle " + text(particle) + " too far away: more than a billion box vectors.";
}

std::string tooHighMessage(double thickness)
{
    return "is a slab whose particles are spread over " + text(thickness) + " nm, more than "
           + text(c_highestSlab)
           + " times its longer vector: leave out what is far from the others, or use a Solver "
             "for it.";
}

Mat3 tensorOf(const double components[6])
{
    const double* const v = components;
    Mat3 tensor;
    tensor << v[0], v[3], v[4], v[3], v[1], v[5], v[4], v[5], v[2];
    return tensor;
}

template<class Real>
void refuseContact(const BatchSystem<Real>& system,
                   const ReducedBox* box,
                   int channels,
                   int target,
                   double rounding,
                   bool potentials)
{
    const auto chargesOf  = [&](int i) { return system.q + static_cast<size_t>(i) * channels; };
    const auto positionOf = [&](int i) -> Eigen::RowVector3d
    {
        return Eigen::Map<const Eigen::Matrix<Real, 1, 3>>(system.x + 3 * static_cast<size_t>(i))
                .template cast<double>();
    };
    const auto placeOf = [&](int i) -> Vec3
    {
        const Eigen::RowVector3d x = positionOf(i);
        return (box != nullptr ? Eigen::RowVector3d(x * box->inverse) : x).transpose();
    };
    const auto distance = [&](Vec3 d)
    {
        return box != nullptr ? (box->vectors.transpose() * (d - d.array().rint().matrix())).norm()
                              : d.norm();
    };
    const Vec3 place = placeOf(target);
    // coordinates are computed here once more, and may have other last digits
    constexpr double c_digits = 1e-14;
    const double least        = 2 * rounding + c_digits * positionOf(target).norm();
    for (int j = 0; j < system.n; j++)
    {
        if (j == target || distance(place - placeOf(j)) > least + c_digits * positionOf(j).norm())
        {
            continue;
        }
        bool matters = false;
        for (int c = 0; c < channels; c++)
        {
            const bool one = chargesOf(target)[c] != 0, other = chargesOf(j)[c] != 0;
            matters = matters || (one && other) || (potentials && (one || other));
        }
        if (matters)
        {
            throw Error(
                    ErrorCode::InvalidArgument,
                    "has its particles " + text(std::min(target, j)) + " and "
                            + text(std::max(target, j))
                            + " at one place, where the energy or a potential is infinite: move "
                              "one of them.");
        }
    }
}

template void refuseContact(const BatchSystem<float>&, const ReducedBox*, int, int, double, bool);
template void refuseContact(const BatchSystem<double>&, const ReducedBox*, int, int, double, bool);

} // namespace farfield
