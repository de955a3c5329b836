/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The Fourier transforms of the fields of level 0, by the fastest way that its lengths allow.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_LEVEL_TRANSFORM_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_LEVEL_TRANSFORM_CUH

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "m2l_periodic/library_fft.h"
#include "m2l_periodic/small_fft.cuh"

namespace farfield
{

//! The transform of a single cell.
template<class Real>
__global__ void singleForwardKernel(const Real* field,
                                    int stride,
                                    int fields,
                                    Complex<Real>* spectrum,
                                    int spectrumStride)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < fields)
    {
        spectrum[static_cast<size_t>(i) * spectrumStride] = {
            field[static_cast<size_t>(i) * stride], Real(0)
        };
    }
}

//! Its inverse.
template<class Real>
__global__ void singleBackwardKernel(const Complex<Real>* spectrum,
                                     int spectrumStride,
                                     int fields,
                                     Real* field,
                                     int stride)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < fields)
    {
        field[static_cast<size_t>(i) * stride] =
                spectrum[static_cast<size_t>(i) * spectrumStride].re;
    }
}

//! Transforms real fields, a coefficient of all cells each, to their spectra and back.
template<class Real>
class LevelTransform
{
public:
    /*! \param[in] lengths  of the grid
     *  \param[in] fields   their number
     *  \param[in] stride   distance of fields; that of spectra is waves.stride
     *  \param[in] shared   memory that a block may have, bytes */
    void prepare(const Int3& lengths, const WaveGrid& waves, int fields, int stride, size_t shared)
    {
        fields_         = fields;
        stride_         = stride;
        spectrumStride_ = waves.stride;
        useSmall_       = waves.halved == 2 && small_.prepare(lengths.data(), shared);
        if (useSmall_)
        {
            return;
        }
        std::vector<int> longer;
        std::copy_if(lengths.begin(),
                     lengths.end(),
                     std::back_inserter(longer),
                     [](int k) { return k > 1; });
        if (!longer.empty())
        {
            library_ = std::make_unique<LibraryTransform<Real>>(
                    longer, stride_, spectrumStride_, fields_);
        }
    }
    void forward(const Real* fields, Complex<Real>* spectra, cudaStream_t stream)
    {
        if (useSmall_)
        {
            small_.forward(fields, stride_, fields_, spectra, spectrumStride_, stream);
        }
        else if (library_)
        {
            library_->forward(fields, spectra, stream);
        }
        else
        {
            singleForwardKernel<<<blocksFor(fields_, 128), 128, 0, stream>>>(
                    fields, stride_, fields_, spectra, spectrumStride_);
            checkLaunch("singleForwardKernel");
        }
    }
    void backward(Complex<Real>* spectra, Real* fields, cudaStream_t stream)
    {
        if (useSmall_)
        {
            small_.backward(spectra, spectrumStride_, fields_, fields, stride_, stream);
        }
        else if (library_)
        {
            library_->backward(spectra, fields, stream);
        }
        else
        {
            singleBackwardKernel<<<blocksFor(fields_, 128), 128, 0, stream>>>(
                    spectra, spectrumStride_, fields_, fields, stride_);
            checkLaunch("singleBackwardKernel");
        }
    }

private:
    int fields_ = 0, stride_ = 0, spectrumStride_ = 0;
    bool useSmall_ = false; //!< a block transforms a field in shared memory
    SmallTransform<Real> small_;
    std::unique_ptr<LibraryTransform<Real>> library_; //!< by cuFFT; null for a single cell, too
};

} // namespace farfield

#endif
