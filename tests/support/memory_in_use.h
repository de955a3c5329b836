/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory of this process, for tests that bound it in bytes.
 */
#ifndef FARFIELD_TESTS_MEMORY_IN_USE_H
#define FARFIELD_TESTS_MEMORY_IN_USE_H

#include <cstddef>

#include <malloc.h>
#include <sys/resource.h>

namespace farfield
{
namespace test
{

//! Bytes that are allocated at the moment.
inline size_t heapInUse()
{
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

//! The most bytes that have been resident at once since the process began.
inline size_t peakInUse()
{
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return 1024 * static_cast<size_t>(usage.ru_maxrss);
}

} // namespace test
} // namespace farfield

#endif
