/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles with points among them, at which potentials and fields are wanted.
 */
#ifndef FARFIELD_KERNELS_POINTS_POINTS_H
#define FARFIELD_KERNELS_POINTS_POINTS_H

#include <memory>

#include "backend/points_on_device.h"

namespace farfield
{

//! Of the current device, which has to be current in every call.
template<class Real>
std::unique_ptr<PointsOnDevice<Real>> makePoints();

} // namespace farfield

#endif
