/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over all pairs and their images at some points, without cells.
 */
#ifndef FARFIELD_PAIR_KERNELS_EWALD_SUMS_H
#define FARFIELD_PAIR_KERNELS_EWALD_SUMS_H

#include <vector>

#include "base/team.h"
#include "pair_kernels/kernel_plan.h"
#include "pair_kernels/point_system.h"

namespace farfield
{

/*! \brief Potentials and fields, [sets][4][some], in a periodic box.
 *
 *  The splitting is that of half a box, where a charge meets one image of another.
 *  \param[in] some      which results
 *  \param[in] accuracy  of the terms that are left out */
template<class Real>
std::vector<double> ewaldSums(const PairKernel& kernel,
                              const PointSystem<Real>& system,
                              const Region& region,
                              const std::vector<int>& some,
                              double accuracy,
                              Team* team);

} // namespace farfield

#endif
