/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "m2l_periodic/level_transform.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "m2l_periodic/library_fft.h"
#include "m2l_periodic/small_fft.cuh"

namespace farfield
{
namespace
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

} // namespace

template<class Real>
struct LevelTransform<Real>::Ways
{
    bool useSmall = false; //!< a block transforms a field in shared memory
    SmallTransform<Real> small;
    std::unique_ptr<LibraryTransform<Real>> library; //!< by cuFFT; null for a single cell, too
};

template<class Real>
LevelTransform<Real>::LevelTransform() : ways_(std::make_unique<Ways>())
{
}
template<class Real>
LevelTransform<Real>::~LevelTransform() = default;

template<class Real>
void LevelTransform<Real>::prepare(const Int3& lengths,
                                   const WaveGrid& waves,
                                   int fields,
                                   int stride,
                                   size_t shared)
{
    fields_         = fields;
    stride_         = stride;
    spectrumStride_ = waves.stride;
    ways_->useSmall = waves.halved == 2 && ways_->small.prepare(lengths.data(), shared);
    if (ways_->useSmall)
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
        ways_->library =
                std::make_unique<LibraryTransform<Real>>(longer, stride_, spectrumStride_, fields_);
    }
}

template<class Real>
void LevelTransform<Real>::forward(const Real* fields, Complex<Real>* spectra, cudaStream_t stream)
{
    if (ways_->useSmall)
    {
        ways_->small.forward(fields, stride_, fields_, spectra, spectrumStride_, stream);
    }
    else if (ways_->library)
    {
        ways_->library->forward(fields, spectra, stream);
    }
    else
    {
        singleForwardKernel<<<blocksFor(fields_, 128), 128, 0, stream>>>(
                fields, stride_, fields_, spectra, spectrumStride_);
        checkLaunch("singleForwardKernel");
    }
}

template<class Real>
void LevelTransform<Real>::backward(Complex<Real>* spectra, Real* fields, cudaStream_t stream)
{
    if (ways_->useSmall)
    {
        ways_->small.backward(spectra, spectrumStride_, fields_, fields, stride_, stream);
    }
    else if (ways_->library)
    {
        ways_->library->backward(spectra, fields, stream);
    }
    else
    {
        singleBackwardKernel<<<blocksFor(fields_, 128), 128, 0, stream>>>(
                spectra, spectrumStride_, fields_, fields, stride_);
        checkLaunch("singleBackwardKernel");
    }
}

template class LevelTransform<float>;
template class LevelTransform<double>;

} // namespace farfield
