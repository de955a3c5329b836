/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief FFTW in single and double precision behind one type, and memory aligned for it.
 */
#ifndef FARFIELD_FFT_H
#define FARFIELD_FFT_H

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "grid.h"

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

/*! \brief To be held while FFTW plans are made or destroyed: its planner is not thread-safe.
 *
 *  One for all solvers of the process and both precisions. Executing plans needs no lock. FFTW's
 * own remedy, fftw_make_planner_thread_safe(), would change the planner for the whole program and
 * needs libfftw3_threads, which nothing else here does. */
std::mutex& plannerMutex();

/*! \brief Real transforms of many fields over the cells of a grid.
 *
 *  Plans are estimated, not measured: the same input then always takes the same path. */
template<class Real>
class RealTransform
{
public:
    explicit RealTransform(const Int3& lengths);
    ~RealTransform();
    RealTransform(const RealTransform&)            = delete;
    RealTransform& operator=(const RealTransform&) = delete;

    //! Distance of fields in the spectrum, in complex numbers.
    int spectrumStride() const { return spectrumStride_; }
    //! One field to its spectrum; fields may be transformed by several threads at once.
    void forward(const Real* field, Real* spectrum) const;
    //! The inverse, not normalised; destroys the spectrum.
    void backward(Real* spectrum, Real* field) const;

private:
    int spectrumStride_;
    void* forward_;
    void* backward_;
};

} // namespace farfield

#endif
