/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/sorted_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cells/position_error.h"

namespace farfield
{
namespace
{

constexpr double c_farthest = 1e9; // cells

//! The cell of a position. \param[out] inCell  from its centre, in edges \returns false: there is none
bool cellOf(const double* x, const LeafFrame& frame, const Mat3& toCells, Int3* cell, Vec3* inCell)
{
    const Eigen::RowVector3d at =
            (Eigen::RowVector3d(x[0], x[1], x[2]) - frame.origin.transpose()) * toCells;
    for (int k = 0; k < 3; k++)
    {
        if (!(std::abs(at[k]) < c_farthest)) // NaN, too
        {
            return false;
        }
        const double whole = std::floor(at[k]);
        (*inCell)[k]       = at[k] - whole - 0.5;
        (*cell)[k]         = static_cast<int>(whole);
    }
    moveInside({ 0, 0, 0 }, frame.counts, frame.isPeriodic, cell);
    return true;
}

} // namespace

std::vector<int> orderOfKeys(std::vector<std::uint64_t> keys, int bits)
{
    constexpr int c_digit = 11;
    std::vector<int> order(keys.size()), next(keys.size());
    std::vector<std::uint64_t> sorted(keys.size());
    std::iota(order.begin(), order.end(), 0);
    for (int shift = 0; shift < bits; shift += c_digit)
    {
        const auto digit = [shift](std::uint64_t key)
        { return static_cast<size_t>(key >> shift) & ((1U << c_digit) - 1); };
        std::vector<int> begin((size_t(1) << c_digit) + 1, 0);
        for (const std::uint64_t key : keys)
        {
            begin[digit(key) + 1]++;
        }
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        for (size_t i = 0; i < keys.size(); i++)
        {
            const int to = begin[digit(keys[i])]++;
            sorted[to]   = keys[i];
            next[to]     = order[i];
        }
        keys.swap(sorted);
        order.swap(next);
    }
    return order;
}

template<class Real>
void SortedPoints<Real>::sort(const double* x,
                              int n,
                              const char* what,
                              const LeafFrame& frame,
                              Team* team)
{
    const Mat3 toCells    = frame.edges.inverse();
    const Mat3 scaled     = frame.edges / frame.unit();
    constexpr int c_grain = 4096;
    std::vector<Int3> cells(n);
    std::vector<Vec3> places(n);
    std::vector<std::uint64_t> keys(n);
    std::vector<int> invalid((n + c_grain - 1) / c_grain, n);
    team->forTasks(
            static_cast<int>(invalid.size()),
            [&](int task, int /*thread*/)
            {
                const int end = std::min(n, (task + 1) * c_grain);
                for (int i = task * c_grain; i < end; i++)
                {
                    Vec3 inCell;
                    if (!cellOf(x + 3 * static_cast<size_t>(i), frame, toCells, &cells[i], &inCell))
                    {
                        invalid[task] = std::min(invalid[task], i);
                        continue;
                    }
                    places[i] = scaled.transpose() * inCell;
                    keys[i]   = mortonKey(cells[i]);
                }
            });
    const int first = std::accumulate(
            invalid.begin(), invalid.end(), n, [](int a, int b) { return std::min(a, b); });
    if (first < n)
    {
        throw positionError(what, first, x + 3 * static_cast<size_t>(first));
    }
    int bits = 0;
    for (const int count : frame.counts)
    {
        while ((1LL << bits / 3) < count)
        {
            bits += 3;
        }
    }
    order_ = orderOfKeys(std::move(keys), bits);
    for (AlignedVector<Real>* component : { &x_, &y_, &z_ })
    {
        component->assign(static_cast<size_t>(n) + c_stagePadding, Real(0));
    }
    team->forRanges(n,
                    c_grain,
                    [&](int begin, int end)
                    {
                        for (int i = begin; i < end; i++)
                        {
                            const Vec3& at = places[order_[i]];
                            x_[i]          = static_cast<Real>(at[0]);
                            y_[i]          = static_cast<Real>(at[1]);
                            z_[i]          = static_cast<Real>(at[2]);
                        }
                    });
    cells_.clear();
    start_.clear();
    for (int i = 0; i < n; i++)
    {
        if (cells_.empty() || cells_.back() != cells[order_[i]])
        {
            cells_.push_back(cells[order_[i]]);
            start_.push_back(i);
        }
    }
    start_.push_back(n);
    places_.set(cells_);
}

template class SortedPoints<float>;
template class SortedPoints<double>;

} // namespace farfield
