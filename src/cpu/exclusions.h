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
#ifndef FARFIELD_CPU_EXCLUSIONS_H
#define FARFIELD_CPU_EXCLUSIONS_H

#include <utility>
#include <vector>

#include "base/vectors.h"

namespace farfield
{

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

} // namespace farfield

#endif
