/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/slab_box.h"

#include <cmath>

#include <algorithm>

#include "batch/compact_box.h"

namespace farfield
{

Vec3 normalOf(const double* plane)
{
    return Eigen::Map<const Vec3>(plane).cross(Eigen::Map<const Vec3>(plane + 3)).normalized();
}

SlabBox slabBox(const double* plane, double lowest, double highest, double accuracy, double detour)
{
    // what fields are left, relative to those of neighbours: all charges of a layer may act alike
    constexpr double c_margin = 9;
    // of the longest vector: no layer counts as thinner
    constexpr double c_thinnest = 0.1;

    double a[3], b[3];
    std::copy_n(plane, 3, a);
    std::copy_n(plane + 3, 3, b);
    while (shorten(a, b) || shorten(b, a))
    {
    }
    const double shorter   = std::sqrt(std::min(dotOf(a, a), dotOf(b, b)));
    const double longer    = std::sqrt(std::max(dotOf(a, a), dotOf(b, b)));
    const double area      = Eigen::Map<const Vec3>(a).cross(Eigen::Map<const Vec3>(b)).norm();
    const double vacuum    = detour * area / shorter * (c_margin - std::log(accuracy)) / (2 * M_PI);
    const double thickness = highest - lowest;

    SlabBox box;
    box.normal      = normalOf(plane);
    box.height      = thickness + vacuum;
    box.middle      = 0.5 * (lowest + highest);
    box.fullness    = std::max(thickness, c_thinnest * longer) / box.height;
    box.rows.row(0) = Eigen::Map<const Eigen::RowVector3d>(plane);
    box.rows.row(1) = Eigen::Map<const Eigen::RowVector3d>(plane + 3);
    box.rows.row(2) = box.height * box.normal.transpose();
    return box;
}

Mat3 changeOfRows(const SlabBox& box, const double* change)
{
    using Row          = Eigen::Map<const Eigen::RowVector3d>;
    const Mat3 inverse = box.rows.inverse();
    Mat3 rows;
    rows.row(0) = Row(change);
    rows.row(1) = Row(change + 3);
    // the normal stays normal
    const Vec3 normal = -(inverse.col(0) * rows.row(0).dot(box.normal)
                          + inverse.col(1) * rows.row(1).dot(box.normal));
    rows.row(2)       = box.height * normal.transpose();
    return rows;
}

} // namespace farfield
