/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory aligned to cache lines, as vectors and FFTW want it.
 */
#ifndef FARFIELD_BASE_ALIGNED_VECTOR_H
#define FARFIELD_BASE_ALIGNED_VECTOR_H

#include <cstddef>
#include <new>
#include <vector>

namespace farfield
{

//! Allocator of memory aligned to cache lines.
template<class T>
struct AlignedAllocator
{
    using value_type   = T;
    AlignedAllocator() = default;
    template<class U>
    AlignedAllocator(const AlignedAllocator<U>&)
    {
    }
    T* allocate(size_t n)
    {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64)));
    }
    void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
    template<class U>
    bool operator==(const AlignedAllocator<U>&) const
    {
        return true;
    }
    template<class U>
    bool operator!=(const AlignedAllocator<U>&) const
    {
        return false;
    }
};

template<class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

} // namespace farfield

#endif
