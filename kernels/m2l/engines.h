/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The engines of M2L over interaction lists, by name.
 */
#ifndef FARFIELD_KERNELS_M2L_ENGINES_H
#define FARFIELD_KERNELS_M2L_ENGINES_H

#include <memory>

#include "m2l/m2l.h"

namespace farfield
{

/*! \brief Makes an engine.
 *  \param[in] rounding  relative error of forces that rounding may cause
 *  \throws Error  Unsupported: none has the name */
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeDeviceM2l(M2lEngine name, double rounding);

//! Displacements related by reflections share their products (after approach 3 of Kohnke et al. 2021).
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeSymmetricM2l(double rounding);
//! Families as columns of matrix products on tensor cores; the rounding that is allowed decides
//! the format of the operands.
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeGemmM2l(double rounding);

} // namespace farfield

#endif
