/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory of the heap that is taken, in bytes.
 *
 *  In a program that takes the place of what allocates: that tells countBytes() what it gives and
 *  gets back.
 */
#ifndef FARFIELD_TESTS_COUNTED_ALLOCATIONS_H
#define FARFIELD_TESTS_COUNTED_ALLOCATIONS_H

#include <atomic>

namespace farfield
{
namespace test
{

//! Bytes that are allocated, and the most that there have been.
inline std::atomic<long long> g_bytes{ 0 }, g_mostBytes{ 0 };

//! \param[in] change  negative if memory is given back
inline void countBytes(long long change)
{
    const long long now = g_bytes += change;
    long long most      = g_mostBytes;
    while (now > most && !g_mostBytes.compare_exchange_weak(most, now))
    {
    }
}

//! The most bytes that work() has taken at any time, beyond those that there were before.
template<class Work>
double mostBytesOf(const Work& work)
{
    const long long before = g_bytes;
    g_mostBytes            = before;
    work();
    return static_cast<double>(g_mostBytes - before);
}

} // namespace test
} // namespace farfield

#endif
