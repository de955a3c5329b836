/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Checks of what a KernelSum is given, and where its points are.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_INPUT_H
#define FARFIELD_PAIR_KERNELS_KERNEL_INPUT_H

#include "farfield/farfield_kernels.h"

#include "base/vectors.h"

namespace farfield
{

//! \throws Error  as the constructor of KernelSum
template<class Real>
void checkKernelOptions(const Kernel& kernel, const KernelOptions& options);

//! All but positions, charges and the box. \throws Error  as KernelSum::evaluate()
template<class Real>
void checkKernelInput(const KernelInput<Real>& input, Boundary boundary);

//! That charges are finite. \throws Error  as above
template<class Real>
void checkCharges(const KernelInput<Real>& input);

//! That a charge or a position is not finite. \param[in] what  "particle" or "point"
Error notFiniteCharge(int particle);
Error notFinitePosition(const char* what, int index, const double* x);

//! That exclusions are those of these charges. \param[in] n  charges that they were set for \throws Error  as above
template<class Real>
void checkExcludedCharges(const KernelInput<Real>& input, int n);

//! That virials are those of charges. \throws Error  as above
template<class Real>
void checkVirials(const KernelInput<Real>& input);

//! Vectors of the same lattice that are as short as can be, rows. \throws Error  as KernelSum::evaluate()
Mat3 reducedPeriodicBox(const double (*box)[3]);

//! The least and the largest coordinates of points.
struct Extent
{
    Vec3 low = Vec3::Zero(), high = Vec3::Zero();

    //! Those of charges and of other points; 0 if there are none. \throws Error  InvalidArgument: one is not finite
    template<class Real>
    static Extent of(const KernelInput<Real>& input);

    Vec3 lengths() const { return high - low; }
    Vec3 centre() const { return 0.5 * (low + high); }
    //! Of a cube that holds the points; more than what they have lost to rounding.
    double edge() const;
};

} // namespace farfield

#endif
