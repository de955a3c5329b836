/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which pairs the near field leaves out, for kernels that look at one pair after the other.
 */
#ifndef FARFIELD_KERNELS_NEAR_LEFT_OUT_CUH
#define FARFIELD_KERNELS_NEAR_LEFT_OUT_CUH

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

} // namespace farfield

#endif
