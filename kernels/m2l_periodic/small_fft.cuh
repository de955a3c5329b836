/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Fourier transforms of many small real fields, one launch per direction.
 *
 *  A block keeps a field in shared memory and transforms its dimensions in turn, where a thread
 *  takes a whole line in registers: three passes with two barriers, with constant roots of unity
 *  and all wave vectors in natural order. Cooley and Tukey, Math. Comput. 19, 297 (1965),
 *  doi:10.1090/S0025-5718-1965-0178586-1. Rows of even length are taken as complex ones of half the
 *  length.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_SMALL_FFT_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_SMALL_FFT_CUH

#include <algorithm>

#include "m2l_periodic/fft_lines.cuh"
#include "runtime/device.h"

namespace farfield
{

//! The fields, by value.
struct SmallShape
{
    int lengths[3]; //!< the last is that of the rows
    int half;       //!< wave vectors of a row
    int pitch;      //!< distance of rows in shared memory

    FARFIELD_HD int rows() const { return lengths[0] * lengths[1]; }
    //! Lines along dimension 0 or 1.
    FARFIELD_HD int lines(int d) const { return lengths[1 - d] * half; }
    //! First element of a line if rows are so far apart, and the distance of its elements.
    FARFIELD_HD int start(int d, int line, int rowPitch) const
    {
        const int outer = line / half;
        return outer * (d == 1 ? lengths[1] : 1) * rowPitch + (line - outer * half);
    }
    FARFIELD_HD int step(int d, int rowPitch) const { return (d == 1 ? 1 : lengths[1]) * rowPitch; }
};

//! A shape; whether there is one is to be asked by fitsSmallShape().
inline SmallShape smallShape(const int lengths[3])
{
    const int half = lengths[2] / 2 + 1;
    // an odd distance: rows start in different banks
    return { { lengths[0], lengths[1], lengths[2] }, half, half | 1 };
}

//! Whether threads can take the lines.
inline bool fitsSmallShape(const int lengths[3])
{
    const int row = lengths[2] % 2 == 0 ? lengths[2] / 2 : lengths[2];
    return std::max({ lengths[0], lengths[1], row }) <= c_longestLine;
}

//! Most threads of a block.
template<class Real>
constexpr int c_transformThreads = sizeof(Real) == 4 ? 512 : 256;

//! Threads of a block: one per line.
template<class Real>
int transformThreads(const SmallShape& shape)
{
    const int lines = std::max({ shape.rows(), shape.lines(0), shape.lines(1) });
    return std::min((lines + 31) / 32 * 32, c_transformThreads<Real>);
}

//! Real fields to spectra; a block per field.
template<class Real>
__global__ void __launch_bounds__(c_transformThreads<Real>)
        smallForwardKernel(SmallShape shape,
                           const Real* __restrict__ fields,
                           int stride,
                           Complex<Real>* __restrict__ spectra,
                           int spectrumStride)
{
    extern __shared__ __align__(16) unsigned char s_transform[];
    auto* const field = reinterpret_cast<Complex<Real>*>(s_transform);
    const int thread  = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    const Real* from  = fields + static_cast<size_t>(blockIdx.x) * stride;
    for (int row = thread; row < shape.rows(); row += threads)
    {
        withRowLength(shape.lengths[2],
                      [&](auto length)
                      {
                          constexpr int c_length = decltype(length)::value;
                          forwardRow<c_length>(from + row * c_length, field + row * shape.pitch);
                      });
    }
    __syncthreads();
    // both dimensions with the same code: that of the second is at hand
#pragma unroll 1
    for (int d = 1; d >= 0; d--)
    {
        const int pitch = (d == 0) ? shape.half : shape.pitch;
        Complex<Real>* to =
                (d == 0) ? spectra + static_cast<size_t>(blockIdx.x) * spectrumStride : field;
        for (int line = thread; line < shape.lines(d); line += threads)
        {
            withLineLength(shape.lengths[d],
                           [&](auto length)
                           {
                               transformLine<decltype(length)::value, false>(
                                       field + shape.start(d, line, shape.pitch),
                                       shape.step(d, shape.pitch),
                                       to + shape.start(d, line, pitch),
                                       shape.step(d, pitch));
                           });
        }
        __syncthreads();
    }
}

//! Spectra to real fields, not normalised; a block per field.
template<class Real>
__global__ void __launch_bounds__(c_transformThreads<Real>)
        smallBackwardKernel(SmallShape shape,
                            const Complex<Real>* __restrict__ spectra,
                            int spectrumStride,
                            Real* __restrict__ fields,
                            int stride)
{
    extern __shared__ __align__(16) unsigned char s_transform[];
    auto* const field = reinterpret_cast<Complex<Real>*>(s_transform);
    const int thread  = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
#pragma unroll 1
    for (int d = 0; d < 2; d++)
    {
        const int pitch = (d == 0) ? shape.half : shape.pitch;
        const Complex<Real>* from =
                (d == 0) ? spectra + static_cast<size_t>(blockIdx.x) * spectrumStride : field;
        for (int line = thread; line < shape.lines(d); line += threads)
        {
            withLineLength(shape.lengths[d],
                           [&](auto length)
                           {
                               transformLine<decltype(length)::value, true>(
                                       from + shape.start(d, line, pitch),
                                       shape.step(d, pitch),
                                       field + shape.start(d, line, shape.pitch),
                                       shape.step(d, shape.pitch));
                           });
        }
        __syncthreads();
    }
    Real* to = fields + static_cast<size_t>(blockIdx.x) * stride;
    for (int row = thread; row < shape.rows(); row += threads)
    {
        withRowLength(shape.lengths[2],
                      [&](auto length)
                      {
                          constexpr int c_length = decltype(length)::value;
                          backwardRow<c_length>(field + row * shape.pitch, to + row * c_length);
                      });
    }
}

//! Transforms of the fields of a small grid.
template<class Real>
class SmallTransform
{
public:
    /*! \brief Chooses a shape.
     *  \param[in] shared  shared memory a block may have, bytes
     *  \returns whether there is one for the lengths */
    bool prepare(const int lengths[3], size_t shared)
    {
        if (!fitsSmallShape(lengths))
        {
            return false;
        }
        shape_ = smallShape(lengths);
        bytes_ = static_cast<size_t>(shape_.rows()) * shape_.pitch * sizeof(Complex<Real>);
        if (bytes_ > shared)
        {
            return false;
        }
        threads_        = transformThreads<Real>(shape_);
        const int limit = static_cast<int>(shared);
        check(cudaFuncSetAttribute(
                      smallForwardKernel<Real>, cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
              "asking for shared memory");
        check(cudaFuncSetAttribute(smallBackwardKernel<Real>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   limit),
              "asking for shared memory");
        return true;
    }
    void forward(const Real* fields,
                 int stride,
                 int count,
                 Complex<Real>* spectra,
                 int spectrumStride,
                 cudaStream_t stream) const
    {
        smallForwardKernel<Real><<<count, threads_, bytes_, stream>>>(
                shape_, fields, stride, spectra, spectrumStride);
        checkLaunch("smallForwardKernel");
    }
    void backward(const Complex<Real>* spectra,
                  int spectrumStride,
                  int count,
                  Real* fields,
                  int stride,
                  cudaStream_t stream) const
    {
        smallBackwardKernel<Real><<<count, threads_, bytes_, stream>>>(
                shape_, spectra, spectrumStride, fields, stride);
        checkLaunch("smallBackwardKernel");
    }

private:
    SmallShape shape_ = {};
    size_t bytes_     = 0;
    int threads_      = 0;
};

} // namespace farfield

#endif
