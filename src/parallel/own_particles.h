/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What all particles are, and which of them a rank has.
 */
#ifndef FARFIELD_PARALLEL_OWN_PARTICLES_H
#define FARFIELD_PARALLEL_OWN_PARTICLES_H

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
    //! \throws Error  InvalidArgument: a partner does not exist
    explicit WholeSystem(const SystemOfRanks<Real>& system);

    int count() const { return static_cast<int>(charges.size()); }
};

//! The particles of this rank.
template<class Real>
struct OwnParticles
{
    std::vector<int> index;    //!< of each in the whole system
    std::vector<Real> charges; //!< e
    ExcludedPairs excluded;    //!< partners by their index in the whole system, every pair at both

    int count() const { return static_cast<int>(index.size()); }
    /*! \brief Says which these are.
     *  \throws Error  InvalidArgument: there is no such particle */
    void setIndex(const int* which, int n, const WholeSystem<Real>& system);
    //! Looks up charges and partners of these.
    void lookUp(const WholeSystem<Real>& system, int threads);
};

} // namespace farfield

#endif
