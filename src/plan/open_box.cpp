/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/open_box.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cells/grid.h"
#include "plan/cost_model.h"

namespace farfield
{
namespace
{

//! By how much particles may spread before cells are chosen anew, and how much they may shrink to:
//! to half of what they were when their box was doubled.
constexpr double c_reserve = 1.1, c_leastShare = 0.25;
//! Lengths of the box over the longest: flat and long systems need a few cells across.
constexpr double c_thinnest = 0.1;
//! More than what rounding of a position may be in cells.
constexpr double c_rounding = 1e-3;

} // namespace

bool OpenCells::hold(const Mat3& box, const Vec3& extent) const
{
    for (int k = 0; k < 3; k++)
    {
        if (!isOpenAlong(boundary, k))
        {
            continue;
        }
        // particles are at most so many cells apart, and from images of each other
        const int most  = mostApart(counts[k]);
        const int least = counts[k] - most;
        if (!(extent[k] < (most - c_rounding) * box(k, k) / counts[k]) || least <= ws)
        {
            return false;
        }
    }
    return true;
}

bool OpenCells::areAllNear() const
{
    return boundary == Boundary::Open
           && std::all_of(counts.begin(), counts.end(), [&](int n) { return mostApart(n) <= ws; });
}

Mat3 openBox(Boundary boundary,
             const Mat3& periodic,
             const Vec3& extent,
             double cell,
             double factor)
{
    double least = std::max(cell, c_thinnest * extent.maxCoeff());
    if (least == 0)
    {
        least = 1; // a single particle
    }
    Mat3 box = periodic;
    for (int k = 0; k < 3; k++)
    {
        if (isOpenAlong(boundary, k))
        {
            box.row(k) = c_reserve * factor * std::max(extent[k], least) * Vec3::Unit(k);
        }
    }
    return box;
}

Mat3 openBoxLike(Boundary boundary, const Mat3& periodic, const Mat3& chosen)
{
    if (boundary == Boundary::Open)
    {
        return chosen;
    }
    const auto area = [](const Mat3& box) { return box(0, 0) * box(1, 1); };
    Mat3 box        = periodic;
    box.row(2)      = chosen.row(2) * std::max(1.0, std::sqrt(area(periodic) / area(chosen)));
    return box;
}

Growth growthFor(Boundary boundary, const Vec3& extent, const Vec3& chosen)
{
    // particles that have gone farther are other ones
    constexpr int c_most = 256;
    const Vec3 held      = largestLike(chosen);
    Growth growth;
    growth.extent = extent;
    for (int k = 0; k < 3; k++)
    {
        if (!isOpenAlong(boundary, k))
        {
            continue;
        }
        int& factor = growth.factors[k];
        while (extent[k] > factor * held[k] && factor < c_most)
        {
            factor *= 2;
        }
        growth.extent[k] = std::max(extent[k], factor * held[k] / c_reserve);
    }
    return growth;
}

Vec3 extentInBox(Boundary boundary, const Mat3& periodic, const Vec3& extent)
{
    Vec3 result = extent;
    for (int k = 0; k < 3; k++)
    {
        result[k] = isOpenAlong(boundary, k) ? extent[k] : periodic(k, k);
    }
    return result;
}

Vec3 largestLike(const Vec3& chosen)
{
    return c_reserve * chosen.cwiseMax(c_thinnest * chosen.maxCoeff());
}

bool isLikeExtent(const Vec3& extent, const Vec3& chosen)
{
    return (extent.array() <= largestLike(chosen).array()).all()
           && extent.maxCoeff() >= c_leastShare * chosen.maxCoeff();
}

Mat3 chooseOpenBox(const PlanTask& task, const std::function<Occupancy(const Mat3&)>& measure)
{
    // the closer to 2, the less is empty, and the more cells the coarsest level needs
    constexpr std::array<double, 6> c_factors = { 2.2, 2.5, 3.1, 4.2, 7, 20 };
    // cubes of five and three cells across, in which all particles are near each other
    constexpr std::array<double, 2> c_allNear = { 2.6, 3.1 };
    // what larger boxes seem to gain may be where their cells happen to lie
    constexpr double c_gain = 0.97;
    struct Box
    {
        Mat3 vectors;
        bool mustBeAllNear;
    };
    std::vector<Box> boxes;
    const auto add = [&](const Vec3& extent, double factor, bool mustBeAllNear)
    {
        boxes.push_back(
                { openBox(task.options.boundary, task.box, extent, task.options.cellSize, factor),
                  mustBeAllNear });
    };
    if (task.options.boundary == Boundary::Open)
    {
        for (const double factor : c_allNear)
        {
            add(Vec3::Constant(task.extent.maxCoeff()), factor, true);
        }
    }
    for (const double factor : c_factors)
    {
        add(task.extent, factor, false);
    }
    Mat3 best    = Mat3::Zero();
    double least = std::numeric_limits<double>::infinity();
    std::optional<Error> failure;
    for (const auto& [box, mustBeAllNear] : boxes)
    {
        PlanTask inBox  = task;
        inBox.box       = box;
        inBox.occupancy = measure(box);
        inBox.network   = {};
        try
        {
            const Discretisation d = chooseDiscretisation(inBox);
            const double cost      = predictedCost(
                    task.device, Work(d, inBox.occupancy, static_cast<double>(task.particles)));
            if (cost < c_gain * least && (d.isAllNear() || !mustBeAllNear))
            {
                least = cost;
                best  = box;
            }
        }
        catch (const Error& error)
        {
            failure.emplace(error);
        }
    }
    if (!(least < std::numeric_limits<double>::infinity()))
    {
        throw Error(*failure);
    }
    return best;
}

} // namespace farfield
