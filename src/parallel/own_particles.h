/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What all particles are, and which of them a rank has.
 */
#ifndef FARFIELD_PARALLEL_OWN_PARTICLES_H
#define FARFIELD_PARALLEL_OWN_PARTICLES_H

#include <cstdint>

#include <vector>

#include "cells/excluded_pairs.h"
#include "farfield/farfield_parallel.h"

namespace farfield
{

//! A copy of SystemOfRanks.
template<class Real>
struct WholeSystem
{
    std::vector<Real> charges; //!< e
    ExcludedPairs excluded = { { 0 }, {} };

    WholeSystem() = default;
    /*! \brief Copies it, each excluded pair once at both of its particles.
     *  \param[in] system  charges and rows are valid
     *  \throws Error  InvalidArgument: a pair is listed at one of its particles only */
    explicit WholeSystem(const SystemOfRanks<Real>& system);

    int count() const { return static_cast<int>(charges.size()); }
};

//! Sum of hashes of the particles [0, count): what ranks have together if each is on one of them.
std::uint64_t hashOfAll(int count);

//! The particles of this rank.
template<class Real>
struct OwnParticles
{
    std::vector<int> index;    //!< of each in the whole system
    std::vector<Real> charges; //!< e
    ExcludedPairs excluded;    //!< partners by their index in the whole system, every pair at both

    int count() const { return static_cast<int>(index.size()); }
    //! Sum over the hashes of their indices.
    std::uint64_t hash() const { return hash_; }
    /*! \brief Says which these are.
     *  \throws Error  InvalidArgument: there is no such particle */
    void setIndex(const int* which, int n, const WholeSystem<Real>& system);
    //! Forgets them: they were of another system.
    void clear();
    //! Looks up charges and partners of these.
    void lookUp(const WholeSystem<Real>& system, int threads);

private:
    std::uint64_t hash_ = 0;
};

} // namespace farfield

#endif
