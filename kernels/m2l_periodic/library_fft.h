/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Fourier transforms by cuFFT.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_LIBRARY_FFT_H
#define FARFIELD_KERNELS_M2L_PERIODIC_LIBRARY_FFT_H

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <cufft.h>

#include "m2l_periodic/index.h"
#include "runtime/device.h"

namespace farfield
{

inline void checkTransform(cufftResult status, const char* action)
{
    if (status == CUFFT_ALLOC_FAILED)
    {
        throw Error(ErrorCode::OutOfMemory,
                    std::string(action)
                            + " failed on the GPU: no memory for the Fourier transform. Larger "
                              "cells or a lower order need less memory.");
    }
    if (status != CUFFT_SUCCESS)
    {
        throw Error(ErrorCode::DeviceFailure,
                    std::string(action) + " failed on the GPU: cuFFT error "
                            + std::to_string(status) + ".");
    }
}

//! A plan of cuFFT with the calls of its precision.
template<class Real>
class LibraryPlan
{
public:
    LibraryPlan()                              = default;
    LibraryPlan(const LibraryPlan&)            = delete;
    LibraryPlan& operator=(const LibraryPlan&) = delete;
    ~LibraryPlan()
    {
        if (made_)
        {
            cufftDestroy(plan_);
        }
    }
    /*! \brief Makes a plan without memory of its own.
     *  \param[in] lengths  longer than 1
     *  \returns bytes of working memory */
    size_t
    make(bool forward, std::vector<int> lengths, int fieldStride, int spectrumStride, int fields)
    {
        checkTransform(cufftCreate(&plan_), "making a Fourier transform");
        made_ = true;
        checkTransform(cufftSetAutoAllocation(plan_, 0), "making a Fourier transform");
        std::vector<int> stored = lengths;
        stored.back()           = lengths.back() / 2 + 1;
        constexpr bool c_single = sizeof(Real) == 4;
        size_t bytes            = 0;
        checkTransform(cufftMakePlanMany(plan_,
                                         static_cast<int>(lengths.size()),
                                         lengths.data(),
                                         forward ? lengths.data() : stored.data(),
                                         1,
                                         forward ? fieldStride : spectrumStride,
                                         forward ? stored.data() : lengths.data(),
                                         1,
                                         forward ? spectrumStride : fieldStride,
                                         forward ? (c_single ? CUFFT_R2C : CUFFT_D2Z)
                                                 : (c_single ? CUFFT_C2R : CUFFT_Z2D),
                                         fields,
                                         &bytes),
                       "making a Fourier transform");
        return bytes;
    }
    void setWork(void* memory)
    {
        checkTransform(cufftSetWorkArea(plan_, memory), "making a Fourier transform");
    }
    void forward(const Real* field, Complex<Real>* spectrum, cudaStream_t stream)
    {
        checkTransform(cufftSetStream(plan_, stream), "transforming");
        // the input of a forward transform out of place stays as it is
        Real* in = const_cast<Real*>(field);
        if constexpr (sizeof(Real) == 4)
        {
            checkTransform(cufftExecR2C(plan_, in, reinterpret_cast<cufftComplex*>(spectrum)),
                           "transforming");
        }
        else
        {
            checkTransform(cufftExecD2Z(plan_, in, reinterpret_cast<cufftDoubleComplex*>(spectrum)),
                           "transforming");
        }
    }
    void backward(Complex<Real>* spectrum, Real* field, cudaStream_t stream)
    {
        checkTransform(cufftSetStream(plan_, stream), "transforming");
        if constexpr (sizeof(Real) == 4)
        {
            checkTransform(cufftExecC2R(plan_, reinterpret_cast<cufftComplex*>(spectrum), field),
                           "transforming");
        }
        else
        {
            checkTransform(
                    cufftExecZ2D(plan_, reinterpret_cast<cufftDoubleComplex*>(spectrum), field),
                    "transforming");
        }
    }

private:
    cufftHandle plan_ = 0;
    bool made_        = false;
};

//! Both directions for so many fields at a time, with the memory that they work in.
template<class Real>
class LibraryTransform
{
public:
    //! \param[in] lengths  longer than 1
    LibraryTransform(const std::vector<int>& lengths,
                     int fieldStride,
                     int spectrumStride,
                     int fields)
    {
        work_.resize(std::max({ forward_.make(true, lengths, fieldStride, spectrumStride, fields),
                                backward_.make(false, lengths, fieldStride, spectrumStride, fields),
                                size_t(1) }));
        forward_.setWork(work_.data());
        backward_.setWork(work_.data());
    }
    void forward(const Real* fields, Complex<Real>* spectra, cudaStream_t stream)
    {
        forward_.forward(fields, spectra, stream);
    }
    void backward(Complex<Real>* spectra, Real* fields, cudaStream_t stream)
    {
        backward_.backward(spectra, fields, stream);
    }

private:
    DeviceBuffer<char> work_;
    LibraryPlan<Real> forward_, backward_;
};

} // namespace farfield

#endif
