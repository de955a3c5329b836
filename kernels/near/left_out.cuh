/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs, for kernels that look at one pair after the other.
 */
#ifndef FARFIELD_KERNELS_NEAR_LEFT_OUT_CUH
#define FARFIELD_KERNELS_NEAR_LEFT_OUT_CUH

#include "cells/minimum_image.h"
#include "near/near.h"

namespace farfield
{

//! Whether the near field leaves a pair out. \param[in] own, other  indices before sorting
template<class Real>
__device__ bool isLeftOut(const typename DeviceExclusions<Real>::View& rows, int own, int other)
{
    for (int k = rows.offsets[own]; k < rows.offsets[own + 1]; k++)
    {
        if (rows.partners[k] == other && rows.close[k])
        {
            return true;
        }
    }
    return false;
}

/*! \brief The shortest displacement from one particle to another, of all images.
 *  \param[in] x  [n][3], nm */
template<class Real>
__device__ void
displacementOf(const Real* x, int to, int from, const MinimumImage& image, double (&d)[3])
{
    for (int axis = 0; axis < 3; axis++)
    {
        d[axis] = static_cast<double>(x[3 * static_cast<size_t>(to) + axis])
                  - static_cast<double>(x[3 * static_cast<size_t>(from) + axis]);
    }
    if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > image.safe2)
    {
        image.search(d);
    }
}

} // namespace farfield

#endif
