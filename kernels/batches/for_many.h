/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Short work on the host for each of many systems.
 */
#ifndef FARFIELD_KERNELS_BATCHES_FOR_MANY_H
#define FARFIELD_KERNELS_BATCHES_FOR_MANY_H

#include <algorithm>

#include "base/threads.h"

namespace farfield
{

//! Calls use(index) for all of so many, by several threads if that pays.
template<class Use>
void forMany(int count, int threads, const Use& use)
{
    constexpr int c_share   = 32; // microseconds, about as long as threads need to begin
    const auto useShareFrom = [&](int first)
    {
        for (int k = first; k < std::min(count, first + c_share); k++)
        {
            use(k);
        }
    };
    const int shares = (count + c_share - 1) / c_share;
    if (shares > 1 && threads > 1)
    {
        forTasks(shares, threads, [&](int share) { useShareFrom(share * c_share); });
        return;
    }
    for (int share = 0; share < shares; share++)
    {
        useShareFrom(share * c_share);
    }
}

} // namespace farfield

#endif
