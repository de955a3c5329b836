/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which places of a rank are near the cells of another; what plans on hosts and devices share.
 */
#ifndef FARFIELD_PARALLEL_NEIGHBOURHOOD_H
#define FARFIELD_PARALLEL_NEIGHBOURHOOD_H

#include <vector>

#include "parallel/reach.h"
#include "parallel/regions.h"

namespace farfield
{

//! Made for one plan.
class Neighbourhood
{
public:
    //! \param[in] drift  how far particles may move, in cells along each axis
    Neighbourhood(const Discretisation& d, const Mat3& box, double drift, int threads);
    Neighbourhood(const Neighbourhood&)            = delete;
    Neighbourhood& operator=(const Neighbourhood&) = delete;

    const Grid& leaf() const { return leaf_; }
    const Reach& reach() const { return reach_; }
    /*! \brief The cells that particles of all ranks may come to. All ranks together.
     *  \param[in] isHeld  [places] those that hold some of ours, see Reach */
    Regions regions(const std::vector<char>& isHeld, Ranks* ranks) const;
    //! [places] Those from which particles may come near cells of a rank; empty if it has none.
    std::vector<char> placesNear(const Regions& regions, int rank) const;

private:
    Discretisation d_;
    Mat3 box_;
    Grid leaf_;
    Reach reach_;
};

} // namespace farfield

#endif
