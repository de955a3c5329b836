/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Pairs of particles whose minimum-image interaction is left out.
 *
 *  The FMM contains every pair; the interaction of an excluded pair is subtracted. Where the two
 *  are so close that subtraction would cancel all digits (shells, coinciding sites), the near field
 *  leaves the pair out instead.
 */
#ifndef FARFIELD_CPU_EXCLUSIONS_H
#define FARFIELD_CPU_EXCLUSIONS_H

#include <utility>
#include <vector>

#include "base/vectors.h"
#include "cells/excluded_pairs.h"

namespace farfield
{

//! Excluded pairs and their forces.
template<class Real>
class Exclusions
{
public:
    /*! \brief Takes pairs in either or both directions, any number of times.
     *
     *  In time and memory proportional to what is listed: a group of which all pairs are excluded
     *  may have more of them than anything else has elements. Ranges are validated by the caller.
     *  Nothing has changed if memory is missing.
     *  \param[in] own  particles from this one on are ghosts: they get no forces, energy and virial of
     *                  pairs with them are halved, and there are no pairs of two */
    void set(const int* offsets, const int* partners, int n, int own);
    //! Pairs, each of which subtract() visits once.
    size_t count() const { return pairs_.partners.size(); }

    /*! \brief Subtracts the pairs that are not close, and lists those that are.
     *  \param[in]     x, q    positions, nm, [n][3], any image, and scaled charges [n]
     *  \param[in]     closeDistance  pairs nearer than this are close, nm; at most surelyNear()
     *  \param[in,out] forces  [own][3]
     *  \param[in,out] potentials  [own], or null
     *  \param[in,out] energy, virial  added to: the virial as xx yy zz xy xz yz */
    void subtract(const Mat3& box,
                  const Real* x,
                  const Real* q,
                  double closeDistance,
                  Real* forces,
                  Real* potentials,
                  int threads,
                  double* energy,
                  double* virial);
    //! The close pairs of the last subtract(), i < j, ascending: the near field has to leave them
    //! out.
    const std::vector<std::pair<int, int>>& close() const { return close_; }

private:
    //! Ranges of rows for threads that share no particle.
    std::vector<int> ranges(int threads) const;

    ExcludedPairs pairs_   = { { 0 }, {} }; //!< at the first of the two, ascending
    int own_               = 0;
    std::vector<int> cuts_ = { 0 }; //!< rows whose particles are in no row before; the end
    std::vector<std::pair<int, int>> close_;
};

} // namespace farfield

#endif
