/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Some of the results, by sums over all pairs: what errors are measured beside.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_SAMPLES_H
#define FARFIELD_PAIR_KERNELS_KERNEL_SAMPLES_H

#include <vector>

#include "farfield/farfield_kernels.h"

#include "pair_kernels/kernel_backend.h"

namespace farfield
{

template<class Real>
class KernelSamples
{
public:
    //! \param[in] backend  has the points \throws Error  InvalidArgument: a result is no number
    KernelSamples(const PairKernel& kernel,
                  KernelBackend<Real>* backend,
                  const Region& region,
                  const KernelOptions& options,
                  Team* team);

    /*! \brief The error of fields of the last evaluation, or of forces if the options say so.
     *  \param[in] unit  size of a leaf */
    double error(double unit) const;

private:
    //! Takes fields times charges, where forces are wanted.
    void weigh(std::vector<double>* sums) const;

    KernelBackend<Real>& backend_;
    PointNumbers numbers_;
    bool isPeriodic_, areForces_;
    std::vector<int> places_;
    std::vector<double> exact_;
};

//! That a result is no number.
template<class Real>
Error noValueAt(const PairKernel& kernel, const PointSystem<Real>& system, int result);

} // namespace farfield

#endif
