/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Ghosts: particles of other ranks that act on ours in the near field.
 *
 *  Who they are, and their charges, is exchanged when it is planned; their positions at every
 *  evaluation. Excluded partners are among them wherever they are, since excluded pairs are
 *  subtracted from exact positions.
 */
#ifndef FARFIELD_PARALLEL_GHOSTS_H
#define FARFIELD_PARALLEL_GHOSTS_H

#include <vector>

#include "parallel/directory.h"
#include "parallel/neighbourhood.h"
#include "parallel/own_particles.h"

namespace farfield
{

//! Which ghosts there are, and how positions get to them.
template<class Real>
class Ghosts
{
public:
    /*! \brief Finds out who needs whose particles.
     *  \param[in] takePart  our particles that are in cells
     *  \param[in] places    where they are, see Reach, [takePart]
     *  \throws Error  InvalidArgument: an excluded partner is on no rank */
    void plan(const OwnParticles<Real>& own,
              const std::vector<int>& takePart,
              const std::vector<int>& places,
              const Regions& regions,
              const Neighbourhood& neighbourhood,
              int threads,
              Ranks* ranks);

    int count() const { return static_cast<int>(charges_.size()); }
    //! Our particles that are ghosts elsewhere, by rank.
    const ByRank<int>& sent() const { return sent_; }
    //! [ranks + 1] Where the ghosts from a rank begin.
    const std::vector<size_t>& offsets() const { return offsets_; }
    //! e, [count()].
    const std::vector<Real>& charges() const { return charges_; }
    //! Excluded pairs of ours, then of ghosts, that both have a charge: partners are numbered likewise.
    const ExcludedPairs& excluded() const { return excluded_; }

    /*! \brief Exchanges positions.
     *  \param[in]  x    of our particles, nm, [own][3]
     *  \param[out] all  of ours, then of the ghosts */
    void exchange(const Real* x, int own, std::vector<Real>* all, Ranks* ranks);

private:
    //! What is told of a particle when it becomes a ghost.
    struct Introduction
    {
        int index;
        Real charge;
    };
    //! Our particles that are near cells of other ranks, by rank.
    static std::vector<std::vector<int>> nearOthers(const std::vector<int>& takePart,
                                                    const std::vector<int>& places,
                                                    const Regions& regions,
                                                    const Neighbourhood& neighbourhood,
                                                    const Ranks& ranks);
    //! Looks for our excluded partners here, and adds those of ours that are partners of the particles
    //! of others, wherever they are.
    void addPartners(const OwnParticles<Real>& own,
                     int threads,
                     std::vector<std::vector<int>>* sent,
                     Ranks* ranks);
    void setExcluded(const OwnParticles<Real>& own, int threads);

    Directory directory_;
    //! Excluded partners of ours, numbered as excluded() has them; -1: not looked for elsewhere.
    std::vector<int> partners_;
    std::vector<int> elsewhere_; //!< which of these are on other ranks
    ByRank<int> sent_;           //!< our particles that are ghosts elsewhere
    std::vector<Real> charges_;
    std::vector<size_t> offsets_; //!< ghosts of each rank
    ExcludedPairs excluded_ = { { 0 }, {} };
    std::vector<Real> packed_;
};

} // namespace farfield

#endif
