/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many cells and pairs there are in a division of some points.
 */
#ifndef FARFIELD_PAIR_KERNELS_CELL_COUNTS_H
#define FARFIELD_PAIR_KERNELS_CELL_COUNTS_H

#include <vector>

#include "base/team.h"
#include "pair_kernels/kernel_plan.h"

namespace farfield
{

//! Counts all levels of a plan. \param[in] x, n  positions of the charges
std::vector<LevelCount>
countLevels(const Region& region, const KernelPlan& plan, const double* x, int n, Team* team);

} // namespace farfield

#endif
