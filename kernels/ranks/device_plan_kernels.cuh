/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Kernels of DevicePlan; a thread has a particle, a partner or a place.
 */
#ifndef FARFIELD_KERNELS_RANKS_DEVICE_PLAN_KERNELS_CUH
#define FARFIELD_KERNELS_RANKS_DEVICE_PLAN_KERNELS_CUH

#include "cells/cell_index.h"
#include "ranks/device_plan.h"

namespace farfield
{

constexpr int c_planThreads = 128;

//! The number of this thread; those beyond the last do nothing.
__device__ inline int threadNumber()
{
    return static_cast<int>(blockIdx.x * c_planThreads + threadIdx.x);
}

//! Launches a kernel with a thread for each of so many.
template<class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...),
            long long count,
            cudaStream_t stream,
            Arguments... arguments)
{
    if (const int blocks = blocksFor(count, c_planThreads); blocks > 0)
    {
        kernel<<<blocks, c_planThreads, 0, stream>>>(arguments...);
        checkLaunch("planning what GPUs exchange");
    }
}

//! Calls f(number, index) for the partners of a particle that have a charge, if it has one.
template<class Real, class F>
__device__ void forCharged(const SystemRows<Real>& rows, int particle, const F& f)
{
    if (rows.q[particle] == 0)
    {
        return;
    }
    for (int k = rows.offsets[particle]; k < rows.offsets[particle + 1]; k++)
    {
        if (const int partner = rows.partners[k]; rows.q[partner] != 0 && partner != particle)
        {
            f(rows.localOf[partner], partner);
        }
    }
}

template<class Real>
struct PlaceTask
{
    int own;
    const int* index;
    const Real* x;
    const Real* systemQ;
    double toCells[3][3];
    CellGrid grid;
    int parts; //!< see Reach
    int* localOf;
    const Real* planned; //!< where they were at the time of the plan, or null
    Real* where;
    int* place;
    char* isHeld;
    int* lost;
    int* farthest; //!< bits of a float
};

//! As Partition::locate() and Reach::place().
template<class Real>
__global__ void __launch_bounds__(c_planThreads) locateOwn(const PlaceTask<Real> task)
{
    const int i = threadNumber();
    if (i >= task.own)
    {
        return;
    }
    const int index     = task.index[i];
    task.localOf[index] = i;
    const Real* r       = task.x + 3 * static_cast<size_t>(i);
    Real* where         = task.where + 3 * static_cast<size_t>(i);
    task.place[i]       = -1;
    if (task.systemQ[index] == 0)
    {
        // as bits: the compiler may take numbers for finite
        where[0] = where[1] = where[2] = static_cast<Real>(__int_as_float(0x7fffffff));
        return;
    }
    int c[3];
    int part    = 0;
    bool valid  = true;
    float moved = 0;
    for (int k = 0; k < 3; k++)
    {
        const double u = static_cast<double>(r[0]) * task.toCells[0][k]
                         + static_cast<double>(r[1]) * task.toCells[1][k]
                         + static_cast<double>(r[2]) * task.toCells[2][k];
        valid    = valid && u < 1e9 - 3 && u > 3 - 1e9;
        where[k] = static_cast<Real>(u);
        if (task.planned != nullptr)
        {
            const Real before = task.planned[3 * static_cast<size_t>(i) + k];
            moved             = fmaxf(moved, static_cast<float>(abs(where[k] - before)));
        }
        const double f = valid ? floor(u) : 0;
        c[k]           = static_cast<int>(f);
        part += u - f >= 0.5 ? 1 << k : 0;
    }
    if (!valid)
    {
        atomicMin(task.lost, i);
        return;
    }
    if (moved > __int_as_float(*static_cast<volatile int*>(task.farthest)))
    {
        // few are ahead of the others; numbers that are not negative are in the order of their bits
        atomicMax(task.farthest, __float_as_int(moved));
    }
    task.grid.reduceDistant(c);
    const int place    = task.parts * task.grid.index(c) + part % task.parts;
    task.place[i]      = place;
    task.isHeld[place] = 1;
}

//! Marks partners of ours that are not here.
template<class Real>
__global__ void __launch_bounds__(c_planThreads)
        markElsewhere(const SystemRows<Real> rows, const int* index, int own, char* wanted)
{
    const int i = threadNumber();
    if (i < own)
    {
        forCharged(rows,
                   index[i],
                   [&](int local, int partner)
                   {
                       if (local < 0)
                       {
                           wanted[partner] = 1;
                       }
                   });
    }
}

//! Flags our particles that may come near cells of a rank.
static __global__ void __launch_bounds__(c_planThreads)
        flagNear(const int* place, int own, const char* isNear, char* flags)
{
    if (const int i = threadNumber(); i < own)
    {
        flags[i] = isNear != nullptr && place[i] >= 0 && isNear[place[i]] ? 1 : 0;
    }
}

//! Flags those that a rank wants wherever they are.
static __global__ void __launch_bounds__(c_planThreads)
        flagWanted(const int* wanted, int count, const int* localOf, char* flags, int* found)
{
    if (const int k = threadNumber(); k < count)
    {
        if (const int i = localOf[wanted[k]]; i >= 0)
        {
            flags[i] = 1;
            atomicAdd(found, 1);
        }
    }
}

static __global__ void __launch_bounds__(c_planThreads)
        gatherIndices(const int* which, int count, const int* index, int* to)
{
    if (const int k = threadNumber(); k < count)
    {
        to[k] = index[which[k]];
    }
}

//! Numbers ghosts, and looks the charges of all up.
template<class Real>
__global__ void __launch_bounds__(c_planThreads)
        introduce(const int* all, int own, int count, const Real* systemQ, int* localOf, Real* q)
{
    if (const int i = threadNumber(); i < count)
    {
        q[i] = systemQ[all[i]];
        if (i >= own)
        {
            localOf[all[i]] = i;
        }
    }
}

template<class Real>
__global__ void __launch_bounds__(c_planThreads)
        flagCharged(const Real* q, int count, bool isCharged, char* flags)
{
    if (const int i = threadNumber(); i < count)
    {
        flags[i] = (q[i] != 0) == isCharged ? 1 : 0;
    }
}

//! Of pairs of two ghosts nothing is computed.
__device__ inline bool isListed(int i, int local, int own)
{
    return local >= 0 && (i < own || local < own);
}

//! Lengths of the rows of excluded pairs, of ours and of ghosts.
template<class Real>
__global__ void __launch_bounds__(c_planThreads) countExcluded(const SystemRows<Real> rows,
                                                               const int* all,
                                                               int own,
                                                               int count,
                                                               int* lengths,
                                                               int* longest)
{
    if (const int i = threadNumber(); i < count)
    {
        int length = 0;
        forCharged(rows,
                   all[i],
                   [&](int local, int /*partner*/) { length += isListed(i, local, own) ? 1 : 0; });
        lengths[i] = length;
        if (length > *static_cast<volatile int*>(longest))
        {
            atomicMax(longest, length);
        }
    }
}

//! The rows, each ascending, as the near field searches for partners.
template<class Real>
__global__ void __launch_bounds__(c_planThreads) listRows(const SystemRows<Real> rows,
                                                          const int* all,
                                                          int own,
                                                          int count,
                                                          const int* ends,
                                                          int* partners)
{
    if (const int i = threadNumber(); i < count)
    {
        int* row   = partners + ends[i];
        int length = 0;
        forCharged(rows,
                   all[i],
                   [&](int local, int /*partner*/)
                   {
                       if (!isListed(i, local, own))
                       {
                           return;
                       }
                       int at = length++;
                       for (; at > 0 && row[at - 1] > local; at--)
                       {
                           row[at] = row[at - 1];
                       }
                       row[at] = local;
                   });
    }
}

} // namespace farfield

#endif
