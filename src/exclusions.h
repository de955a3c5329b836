/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Pairs of particles whose minimum-image interaction is left out.
 *
 *  The FMM contains every pair; the interaction of an excluded pair is subtracted. Where the two
 * are so close that subtraction would cancel all digits (shells, coinciding sites), the near field
 *  leaves the pair out instead.
 */
#ifndef FARFIELD_EXCLUSIONS_H
#define FARFIELD_EXCLUSIONS_H

#include <utility>
#include <vector>

#include "grid.h"

namespace farfield
{

//! Excluded pairs as compressed rows.
struct ExcludedPairs
{
    std::vector<int> offsets;  //!< [n + 1], ascending from 0
    std::vector<int> partners; //!< [offsets[n]]
};

/*! \brief The pairs of which both particles are charged; there is nothing to leave out of others.
 *
 *  In four-site water the massless site lies 0.015 nm from an uncharged oxygen: without this, every
 *  molecule has a close pair, and the near field has to look for them everywhere.
 *  \param[in] isCharged  [n] */
ExcludedPairs chargedPairs(const ExcludedPairs& pairs, const std::vector<char>& isCharged);

//! Smallest distance of opposite faces of a parallelepiped; rows of its inverse as in a Grid.
double smallestWidth(const Mat3& inverseEdges);

/*! \brief The distance, nm, below which two particles are in near cells of each other, wherever the
 *         grid lies, and below which one meets a single image of the other.
 *
 *  Cell coordinates of particles at distance r differ by at most r over the distance of opposite
 *  faces of a cell: if that is less than ws, the cells differ by at most ws. Lattice vectors are at
 *  least as long as the smallest distance of opposite faces of the box; two images within half of
 * it would be closer to each other than that. A hundredth is left for rounding. */
double surelyNear(const Grid& leaf, int ws);

//! Excluded pairs and their forces.
template<class Real>
class Exclusions
{
public:
    //! Takes pairs in either or both directions; ranges are validated by the caller. Nothing has
    //! changed if memory is missing.
    void set(const int* offsets, const int* partners, int n);

    /*! \brief Subtracts the pairs that are not close, and lists those that are.
     *  \param[in]     x, q    positions, nm, [n][3], any image, and scaled charges [n]
     *  \param[in]     closeDistance  pairs nearer than this are close, nm; at most surelyNear()
     *  \param[in,out] forces  [n][3]
     *  \param[in,out] energy, virial  added to: the virial as xx yy zz xy xz yz */
    void subtract(const Mat3& box,
                  const Real* x,
                  const Real* q,
                  double closeDistance,
                  Real* forces,
                  int threads,
                  double* energy,
                  double* virial);
    //! The close pairs of the last subtract(), i < j, ascending: the near field has to leave them
    //! out.
    const std::vector<std::pair<int, int>>& close() const { return close_; }

private:
    struct Pair
    {
        int i, j;
    };
    //! Ranges of pairs for threads that share no particle.
    std::vector<int> ranges(int threads) const;

    std::vector<Pair> pairs_; //!< i < j, ascending
    std::vector<int> cuts_;   //!< positions in pairs_ between which particles are disjoint
    std::vector<std::pair<int, int>> close_;
};

//! The shortest image of a displacement.
class MinimumImage
{
public:
    explicit MinimumImage(const Mat3& box);
    //! Replaces dx by its shortest image.
    void operator()(double* dx) const
    {
        // most pairs are bonded neighbours in one image
        const double r2 = dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2];
        if (r2 > safe2_)
        {
            search(dx);
        }
    }

private:
    void search(double* dx) const;

    double box_[3][3];
    double half_[3];
    bool rectangular_;
    double safe2_; //!< below this squared length no other image can be shorter
};

} // namespace farfield

#endif
