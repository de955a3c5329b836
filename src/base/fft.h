/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief FFTW in single and double precision behind one type.
 */
#ifndef FARFIELD_BASE_FFT_H
#define FARFIELD_BASE_FFT_H

#include <mutex>

#include "base/aligned_vector.h"
#include "base/vectors.h"

namespace farfield
{

/*! \brief To be held while FFTW plans are made or destroyed: its planner is not thread-safe.
 *
 *  One for all solvers of the process and both precisions. Executing plans needs no lock. FFTW's
 *  own remedy, fftw_make_planner_thread_safe(), would change the planner for the whole program
 *  and needs libfftw3_threads, which nothing else here does. */
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
