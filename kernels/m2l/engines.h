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

//! What is asked of an engine.
struct EngineDemands
{
    bool reproducible; //!< bitwise the same in every run
    double rounding;   //!< relative error of forces that rounding may cause
};

/*! \brief Makes an engine.
 *  \throws Error  Unsupported: it does not meet the demands, or none has the name */
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeDeviceM2l(M2lEngine name, const EngineDemands& demands);

//! One thread per coefficient, dense operators: the baseline (approach 1 of Kohnke et al. 2021).
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeNaiveM2l(const EngineDemands& demands);
//! The same work in child kernels launched from the device (approach 2); not reproducible.
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeDynamicM2l(const EngineDemands& demands);
//! Displacements related by reflections share their products (after approach 3).
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeSymmetricM2l(const EngineDemands& demands);
//! Families as columns of matrix products on tensor cores; the rounding that is allowed decides
//! the format of the operands.
template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeGemmM2l(const EngineDemands& demands);

} // namespace farfield

#endif
