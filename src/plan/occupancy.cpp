/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/occupancy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "cells/morton.h"

namespace farfield
{
namespace
{

//! Edge of the smallest cells that are counted, nm.
constexpr double c_smallest = 0.15;
//! A coordinate in units of the box, wrapped into it.
double wrapped(double fraction)
{
    return std::clamp(fraction - std::floor(fraction), 0.0, 1.0);
}

//! Positions in units of the box, [n].
template<class Real>
std::vector<Vec3> fractions(const Real* x, int n, const Mat3& box)
{
    const Mat3 inverse = box.inverse();
    std::vector<Vec3> result(n);
    for (int i = 0; i < n; i++)
    {
        const Real* r              = x + 3 * static_cast<size_t>(i);
        const Eigen::RowVector3d f = Eigen::RowVector3d(r[0], r[1], r[2]) * inverse;
        result[i]                  = { wrapped(f[0]), wrapped(f[1]), wrapped(f[2]) };
    }
    return result;
}

/*! \brief Where cells begin in a dimension, in units of the box: behind the widest gap if it is wide.
 *
 *  The border of the box would cut a droplet that lies across it into parts, whose pairs would be
 *  missed. */
double beginOfCells(const std::vector<Vec3>& fractions, int dimension)
{
    constexpr int c_bins    = 64;
    constexpr int c_wideGap = c_bins / 4;
    std::array<bool, c_bins> isOccupied{};
    for (const Vec3& f : fractions)
    {
        isOccupied[std::min(static_cast<int>(f[dimension] * c_bins), c_bins - 1)] = true;
    }
    int begin = 0, widest = c_wideGap - 1;
    for (int bin = 0, empty = 0; bin < 2 * c_bins; bin++)
    {
        const bool endsGap = isOccupied[bin % c_bins];
        if (endsGap && empty > widest)
        {
            begin  = bin % c_bins;
            widest = empty;
        }
        empty = endsGap ? 0 : empty + 1;
    }
    return static_cast<double>(begin) / c_bins;
}

} // namespace

template<class Real>
Occupancy::Occupancy(const Real* x, int n, const Mat3& box)
{
    const std::vector<Vec3> inBox = fractions(x, n, box);
    const Vec3 begin(beginOfCells(inBox, 0), beginOfCells(inBox, 1), beginOfCells(inBox, 2));
    const Vec3 lengths = box.diagonal(); // of a triangular box, whose volume is their product
    double edge        = c_smallest;
    while (lengths.maxCoeff() / edge >= (1 << c_keyBits))
    {
        edge *= 2;
    }
    // Morton order: cells that merge are neighbours in the list
    std::vector<std::pair<uint64_t, double>> cells(n);
    for (int i = 0; i < n; i++)
    {
        Int3 cell;
        for (int k = 0; k < 3; k++)
        {
            cell[k] = static_cast<int>(wrapped(inBox[i][k] - begin[k]) * lengths[k] / edge);
        }
        cells[i] = { mortonKey(cell), 1.0 };
    }
    std::sort(cells.begin(), cells.end());
    const double pairs = std::max(1.0, static_cast<double>(n) * (n - 1.0));
    for (;; edge *= 2)
    {
        size_t kept     = 0;
        double together = 0;
        for (size_t c = 0; c < cells.size(); c++)
        {
            if (kept > 0 && cells[kept - 1].first == cells[c].first)
            {
                cells[kept - 1].second += cells[c].second;
            }
            else
            {
                cells[kept++] = cells[c];
            }
        }
        cells.resize(kept);
        for (auto& cell : cells)
        {
            together += cell.second * (cell.second - 1);
            cell.first >>= 3;
        }
        // an even filling: whole cells, and the rest of the box
        double all = 1, even = 1;
        for (int k = 0; k < 3; k++)
        {
            const double whole = std::floor(lengths[k] / edge);
            const double rest  = lengths[k] / edge - whole;
            all *= std::ceil(lengths[k] / edge);
            even *= (whole + rest * rest) * std::pow(edge / lengths[k], 2);
        }
        samples_.push_back({ edge,
                             std::max<double>(1, static_cast<double>(kept)) / all,
                             together / pairs / even });
        if (edge >= lengths.maxCoeff())
        {
            break;
        }
    }
}

double Occupancy::interpolated(double edge, double Sample::*value) const
{
    const double at = std::clamp(
            std::log2(edge / samples_.front().edge), 0.0, static_cast<double>(samples_.size() - 1));
    const size_t k   = std::min(static_cast<size_t>(at), samples_.size() - 1);
    const size_t up  = std::min(k + 1, samples_.size() - 1);
    const double low = std::max(samples_[k].*value, 1e-300);
    return low * std::pow(std::max(samples_[up].*value, 1e-300) / low, at - static_cast<double>(k));
}

double Occupancy::cells(double edge, double boxVolume) const
{
    const double filled =
            samples_.empty() ? volume_ : boxVolume * interpolated(edge, &Sample::occupied);
    return filled / (edge * edge * edge);
}

double Occupancy::density(double width, double boxVolume) const
{
    if (samples_.empty())
    {
        return boxVolume / std::max(volume_, std::min(width * width * width, boxVolume));
    }
    return interpolated(width, &Sample::density);
}

template Occupancy::Occupancy(const float*, int, const Mat3&);
template Occupancy::Occupancy(const double*, int, const Mat3&);

} // namespace farfield
