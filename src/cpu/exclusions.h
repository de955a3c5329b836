/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Pairs of particles whose minimum-image interaction is left out.
 *
 *  The FMM contains every pair; the interaction of an excluded pair is subtracted. Where the two
 *  are so close that subtraction would cancel all digits (shells, coinciding sites), the near field
 *  leaves the pair out instead.
 *
 *  Particles are cut into stretches with about equal numbers of pairs, wherever a molecule lies. A
 *  stretch writes to its own particles only: a pair within it is computed once, a pair of two
 *  stretches by both. With few threads such pairs are few, or there are fewer stretches.
 */
#ifndef FARFIELD_CPU_EXCLUSIONS_H
#define FARFIELD_CPU_EXCLUSIONS_H

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/team.h"
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
     *                  pairs with them are halved, and there are no pairs of two
     *  \param[in] threads  that will share the work */
    void set(const int* offsets, const int* partners, int n, int own, int threads);
    //! Pairs.
    size_t count() const { return count_; }
    //! The pairs of particles that are not ghosts, each at both of its particles; until the next set().
    const ExcludedPairs& bothWays() const;

    /*! \brief Subtracts the pairs that are not close, and lists those that are, by the next run of the
     *         team.
     *  \param[in]     x, q    positions, nm, [n][3], any image, and scaled charges [n]
     *  \param[in]     closeDistance  pairs nearer than this are close, nm; at most surelyNear()
     *  \param[out] forces      [own][3]
     *  \param[out] potentials  [own], or null */
    void addSubtraction(const Mat3& box,
                        const Real* x,
                        const Real* q,
                        double closeDistance,
                        Real* forces,
                        Real* potentials,
                        Team* team);
    //! Adds the energy and the virial, as xx yy zz xy xz yz, after the run.
    void addSums(double* energy, double* virial) const;
    //! The close pairs of the last subtraction, i < j, ascending: the near field has to leave them
    //! out.
    std::vector<std::pair<int, int>> close() const;

private:
    //! Consecutive particles.
    struct Stretch
    {
        int begin, end;
        std::array<double, 7> sums;             //!< energy and virial
        std::vector<std::pair<int, int>> close; //!< i < j
    };
    //! Cuts the particles of pairs, listed at the first of the two, into stretches for threads.
    static std::vector<Stretch> cut(const ExcludedPairs& pairs, int own, int threads);
    //! Lists pairs of different stretches at the second particle, too.
    static ExcludedPairs
    withOthers(const ExcludedPairs& pairs, const std::vector<Stretch>& stretches, int n, int own);

    //! Of each particle: partners in its own stretch that come after it, all in others.
    ExcludedPairs pairs_ = { { 0 }, {} };
    size_t count_        = 0;
    std::vector<Stretch> stretches_;
    mutable std::optional<ExcludedPairs> bothWays_; //!< made when it is first asked for
};

} // namespace farfield

#endif
