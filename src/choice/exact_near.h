/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What near functions add to the exact forces of few particles.
 */
#ifndef FARFIELD_CHOICE_EXACT_NEAR_H
#define FARFIELD_CHOICE_EXACT_NEAR_H

#include <vector>

#include "cells/minimum_image.h"
#include "choice/exact_forces.h"
#include "operators/near_pairs.h"

namespace farfield
{

//! Sums over all pairs in double precision.
struct ExactNear
{
    std::vector<double> forces; //!< kJ/mol/nm, [n][3], to be added
    //! Pairs that ExactForces must leave out: the excluded ones, and those whose forces are here, as
    //! they are so close that 1/r would cancel them.
    ExcludedPairs leftOut;

    /*! \param[in] pairs  not none
     *  \param[in] image  of periodic boundaries, or null */
    template<class Real>
    ExactNear(const PointCharges<Real>& particles,
              const NearPairs<Real>& pairs,
              const MinimumImage* image,
              double coulombConstant);
};

} // namespace farfield

#endif
