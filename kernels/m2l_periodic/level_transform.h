/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The Fourier transforms of the fields of level 0, by the fastest way that its lengths allow.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_LEVEL_TRANSFORM_H
#define FARFIELD_KERNELS_M2L_PERIODIC_LEVEL_TRANSFORM_H

#include <memory>

#include "m2l_periodic/index.h"
#include "runtime/device.h"

namespace farfield
{

//! Transforms real fields, a coefficient of all cells each, to their spectra and back.
template<class Real>
class LevelTransform
{
public:
    LevelTransform();
    ~LevelTransform();
    LevelTransform(const LevelTransform&)            = delete;
    LevelTransform& operator=(const LevelTransform&) = delete;

    /*! \param[in] lengths  of the grid
     *  \param[in] fields   their number
     *  \param[in] stride   distance of fields; that of spectra is waves.stride
     *  \param[in] shared   memory that a block may have, bytes */
    void prepare(const Int3& lengths, const WaveGrid& waves, int fields, int stride, size_t shared);
    void forward(const Real* fields, Complex<Real>* spectra, cudaStream_t stream);
    void backward(Complex<Real>* spectra, Real* fields, cudaStream_t stream);

private:
    struct Ways;
    int fields_ = 0, stride_ = 0, spectrumStride_ = 0;
    std::unique_ptr<Ways> ways_;
};

} // namespace farfield

#endif
