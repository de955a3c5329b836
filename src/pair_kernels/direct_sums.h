/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over all pairs for some points, in double precision: what errors are told by.
 */
#ifndef FARFIELD_PAIR_KERNELS_DIRECT_SUMS_H
#define FARFIELD_PAIR_KERNELS_DIRECT_SUMS_H

#include <vector>

#include "base/team.h"
#include "pair_kernels/kernel_plan.h"
#include "pair_kernels/point_system.h"

namespace farfield
{

//! Potentials and fields of some of the results of a system without images, [sets][4][some].
template<class Real>
std::vector<double> directSums(const PairKernel& kernel,
                               const PointSystem<Real>& system,
                               const Region& region,
                               const std::vector<int>& some,
                               Team* team);

} // namespace farfield

#endif
