/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs: which there are, and how near they surely are.
 */
#ifndef FARFIELD_CELLS_EXCLUDED_PAIRS_H
#define FARFIELD_CELLS_EXCLUDED_PAIRS_H

#include <vector>

#include "cells/grid.h"

namespace farfield
{

//! Excluded pairs as compressed rows.
struct ExcludedPairs
{
    std::vector<int> offsets;  //!< [n + 1], ascending from 0
    std::vector<int> partners; //!< [offsets[n]]
};

/*! \brief The pairs of which both particles are charged, or take part; there is nothing to leave out
 *         of others.
 *
 *  In four-site water the massless site lies 0.015 nm from an uncharged oxygen: without this, every
 *  molecule has a close pair, and the near field has to look for them everywhere.
 *  \param[in] isCharged  [n] */
ExcludedPairs chargedPairs(const ExcludedPairs& pairs, const std::vector<char>& isCharged);

//! Number of charged particles that have an excluded partner with a charge. \param[in] isCharged  [n]
long long countWithPartners(const ExcludedPairs& pairs, const std::vector<char>& isCharged);

//! Smallest distance of opposite faces of a parallelepiped; rows of its inverse as in a Grid.
double smallestWidth(const Mat3& inverseEdges);

/*! \brief The distance, nm, below which two particles are in near cells of each other, wherever the
 *         grid lies, and below which one meets a single image of the other.
 *
 *  Cell coordinates of particles at distance r differ by at most r over the distance of opposite
 *  faces of a cell: if that is less than ws, the cells differ by at most ws. Lattice vectors are
 *  at least as long as the smallest distance of opposite faces of the box; two images within
 *  half of it would be closer to each other than that. A hundredth is left for rounding. */
double surelyNear(const Grid& leaf, int ws);

/*! \brief Squared distance, nm^2, that a pair nearer than closeDistance is within once positions
 *         are relative to cells, which rounds them differently.
 *
 *  Other images of the pair are farther apart, as closeDistance is at most surelyNear(): the
 *  hundredth that it leaves is twice that in squares. */
inline double closeInCells(double closeDistance)
{
    return 1.02 * closeDistance * closeDistance;
}

} // namespace farfield

#endif
