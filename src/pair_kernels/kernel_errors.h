/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors of a choice of degree and cells by a model, and the cheapest choice for an error.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_ERRORS_H
#define FARFIELD_PAIR_KERNELS_KERNEL_ERRORS_H

#include <array>

#include "pair_kernels/kernel_plan.h"

namespace farfield
{

//! The highest degree in use.
constexpr int c_highestDegree = 11;

//! The error by the model.
double modelError(const KernelPlan& plan, const PairKernel& kernel, KernelCosts* costs);

/*! \brief The plan that costs least.
 *  \param[in]  wanted  error
 *  \param[in]  off     what errors are, over those of the model, for each direct range
 *  \param[in]  levels  see KernelCosts::cheapest()
 *  \param[out] cost    in any unit */
KernelPlan cheapestPlan(KernelCosts* costs,
                        const PairKernel& kernel,
                        double wanted,
                        const std::array<double, 2>& off,
                        int levels,
                        double* cost);

} // namespace farfield

#endif
