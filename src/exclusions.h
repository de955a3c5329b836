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

//! Excluded pairs and their forces.
template<class Real>
class Exclusions
{
public:
    //! Takes pairs in either or both directions; ranges are validated by the caller.
    void set(const int* offsets, const int* partners, int n);

    //! Pairs nearer than this, nm, are left out of the near field instead of being subtracted.
    static constexpr double c_closeDistance = 0.04;

    /*! \brief Subtracts the pairs that are not close, and lists those that are.
     *  \param[in]     x, q    positions, nm, [n][3], any image, and scaled charges [n]
     *  \param[in]     closeDistance  at most c_closeDistance, nm
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
