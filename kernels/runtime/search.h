/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Binary search; for host and device.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_SEARCH_H
#define FARFIELD_KERNELS_RUNTIME_SEARCH_H

#include "base/host_device.h"

namespace farfield
{

//! As std::partition_point(): how many of the first elements are before. \param[in] isBefore  isBefore(index)
template<class IsBefore>
FARFIELD_HD int partitionPoint(int count, const IsBefore& isBefore)
{
    int low = 0, high = count;
    while (low < high)
    {
        const int middle = low + (high - low) / 2;
        if (isBefore(middle))
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return low;
}

} // namespace farfield

#endif
