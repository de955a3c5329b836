/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles whose charges differ between two states.
 */
#ifndef FARFIELD_KERNELS_PERTURBED_PERTURBED_H
#define FARFIELD_KERNELS_PERTURBED_PERTURBED_H

#include <memory>

#include "backend/perturbed_on_device.h"

namespace farfield
{

//! Of the current device, which has to be current in every call.
template<class Real>
std::unique_ptr<PerturbedOnDevice<Real>> makePerturbed();

} // namespace farfield

#endif
