/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Points sorted by leaf cells, which are as small as the points need.
 */
#ifndef FARFIELD_PAIR_KERNELS_SORTED_POINTS_H
#define FARFIELD_PAIR_KERNELS_SORTED_POINTS_H

#include <cstdint>
#include <utility>
#include <vector>

#include "base/aligned_vector.h"
#include "base/team.h"
#include "cells/cell_hash.h"
#include "cells/morton.h"
#include "pair_kernels/leaf_frame.h"
#include "pair_kernels/point_kernels.h"

namespace farfield
{

template<class Real>
class SortedPoints
{
public:
    /*! \brief Sorts them; the order of points in a cell is that in which they are given.
     *  \throws Error  InvalidArgument: a position is not finite, or a billion cells away */
    void sort(const double* x, int n, const char* what, const LeafFrame& frame, Team* team);

    int count() const { return static_cast<int>(order_.size()); }
    //! Index of each sorted point before sorting.
    const std::vector<int>& order() const { return order_; }
    //! Cells that have points, in Morton order, and the first point of each; one number more.
    const std::vector<Int3>& cells() const { return cells_; }
    const std::vector<int>& start() const { return start_; }
    //! Place of a cell among them, -1 for none.
    int find(const Int3& cell) const { return places_.find(cell); }
    //! Points of a cell by its place.
    CellPoints<Real> points(int place) const
    {
        const int first = start_[place];
        return {
            x_.data() + first, y_.data() + first, z_.data() + first, start_[place + 1] - first
        };
    }

private:
    std::vector<int> order_, start_;
    std::vector<Int3> cells_;
    CellHash places_;
    AlignedVector<Real> x_, y_, z_;
};

//! Sorts numbers from 0 on by their keys, those with the same key as they are. \param[in] bits  of the keys
std::vector<int> orderOfKeys(std::vector<std::uint64_t> keys, int bits);

} // namespace farfield

#endif
