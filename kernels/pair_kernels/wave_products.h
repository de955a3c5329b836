/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Local expansions of all cells of a periodic box as a convolution of their multipoles, on the device.
 *
 *  As CellConvolution, which says what is transformed and what is multiplied.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_WAVE_PRODUCTS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_WAVE_PRODUCTS_H

#include <vector>

#include "cells/wave_vectors.h"
#include "m2l_periodic/level_transform.h"
#include "pair_kernels/kernel_operators.h"

namespace farfield
{

template<class Real>
class WaveProducts
{
public:
    //! Symmetric matrices of all representatives, [representatives][coefficients][coefficients].
    using Operators = DeviceBuffer<Real>;

    //! \param[in] grid  cells, slots in the order of Grid::slot()
    WaveProducts(const Grid& grid,
                 const WaveVectors& waves,
                 const LegendreBasis& basis,
                 cudaStream_t stream);

    size_t operatorSize() const { return static_cast<size_t>(coefficients_) * coefficients_; }
    //! Puts the matrix of a representative into an array of all.
    void pack(int representative, const Matrix& K, std::vector<Real>* all) const;

    //! Distance of coefficients in fields.
    int stride() const { return stride_; }
    //! [coefficients][stride()] multipoles before, and local expansions after.
    Real* fields() { return fields_.data(); }
    //! The three steps.
    void forward(cudaStream_t stream)
    {
        transform_.forward(fields_.data(), spectra_.data(), stream);
    }
    void multiply(const Operators& kappas, cudaStream_t stream);
    void backward(cudaStream_t stream)
    {
        transform_.backward(spectra_.data(), fields_.data(), stream);
    }
    /*! \brief Sums of M times L, after forward(), for operators of the kernel or of a derivative.
     *  \param[out] sums  [representatives] */
    void products(const Operators& kappas, int derivative, double* sums, cudaStream_t stream);
    int representatives() const { return representatives_; }

private:
    int coefficients_, stride_, representatives_;
    WaveGrid waves_;
    DeviceBuffer<unsigned char> phases_; //!< [coefficients]
    DeviceBuffer<Real> fields_;
    DeviceBuffer<Complex<Real>> spectra_;
    LevelTransform<Real> transform_;
};

} // namespace farfield

#endif
