/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The Fourier transform where level 0 is a single cell: there is nothing to transform.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_SINGLE_CELL_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_SINGLE_CELL_CUH

#include "m2l_periodic/index.h"

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

} // namespace farfield

#endif
