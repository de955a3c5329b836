/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges and where results are wanted.
 */
#ifndef FARFIELD_PAIR_KERNELS_POINT_SYSTEM_H
#define FARFIELD_PAIR_KERNELS_POINT_SYSTEM_H

#include "cells/excluded_pairs.h"

namespace farfield
{

struct PointNumbers
{
    int n = 0, sets = 1;
    int points = -1; //!< -1: results are wanted at the charges

    bool areOwn() const { return points < 0; }
    int results() const { return areOwn() ? n : points; }
};

//! Views of arrays in host memory.
template<class Real>
struct PointSystem : PointNumbers
{
    const double* x              = nullptr; //!< [n][3]
    const Real* q                = nullptr; //!< [n][sets]
    const double* at             = nullptr; //!< [points][3]
    const ExcludedPairs* leftOut = nullptr; //!< of the charges at each other, if there are any
};

} // namespace farfield

#endif
