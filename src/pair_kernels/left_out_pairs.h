/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs: near ones are never summed, as their rounding would drown the others; far ones are
 *         subtracted.
 */
#ifndef FARFIELD_PAIR_KERNELS_LEFT_OUT_PAIRS_H
#define FARFIELD_PAIR_KERNELS_LEFT_OUT_PAIRS_H

#include <vector>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"
#include "pair_kernels/sorted_points.h"

namespace farfield
{

/*! \brief Compressed rows with each pair at both of its particles, once.
 *  \throws Error  as checkExclusions() */
ExcludedPairs pairsOnBothSides(const int* offsets, const int* partners, int n);

//! Shortest images of displacements, in a box with any vectors; without images the displacements themselves.
class ShortestImages
{
public:
    ShortestImages(const Mat3& box, bool isPeriodic);
    Vec3 operator()(const double* to, const double* from) const;

    //! What it searches with, of displacements as rows that are turned.
    const MinimumImage& image() const { return image_; }
    const Mat3& turn() const { return turn_; }

private:
    bool isPeriodic_;
    MinimumImage image_ = {};
    Mat3 turn_          = Mat3::Identity(); //!< of rows, to axes along which the box is triangular
};

//! Where sources of near cells are staged.
struct StagedCell
{
    int place, displacement, to;
};

//! The excluded partners of the targets of a cell.
struct LeftOutOfCell
{
    struct FarPair
    {
        int target, source; //!< particles
        Vec3 d;             //!< from the source
    };

    std::vector<int> awayStart, away; //!< see PairTask
    std::vector<FarPair> far;
};

/*! \brief Finds them.
 *  \param[in] x       positions of all, [n][3]
 *  \param[in] sorted  all, by the first particle of each cell and by particle
 *  \param[in] place   of the cell
 *  \param[in] staged  positions of staged sources, in units of leaves */
template<class Real>
void findLeftOut(const ExcludedPairs& pairs,
                 const ShortestImages& shortest,
                 const double* x,
                 const SortedPoints<Real>& sorted,
                 const std::vector<int>& sortedOf,
                 int place,
                 double unit,
                 const std::vector<StagedCell>& cells,
                 const Real* const (&staged)[3],
                 LeftOutOfCell* found);

} // namespace farfield

#endif
