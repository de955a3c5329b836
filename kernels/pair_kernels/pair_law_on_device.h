/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A PairLaw with its table in device memory.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_PAIR_LAW_ON_DEVICE_H
#define FARFIELD_KERNELS_PAIR_KERNELS_PAIR_LAW_ON_DEVICE_H

#include "pair_kernels/pair_kernel.h"
#include "runtime/device.h"

namespace farfield
{

//! See PairLaw. Plain data.
template<class Real>
struct PairLawNumbers
{
    PairLawKind kind;
    int exponent;
    Real decay;
    Real first, perStep;
    int steps;
    Real beyond;
    const Real* polynomials; //!< device memory
};

template<class Real>
class PairLawOnDevice
{
public:
    void set(const PairLaw<Real>& law, cudaStream_t stream)
    {
        polynomials_.upload(law.polynomials.data(), law.polynomials.size(), stream);
        factor_  = law.factor;
        numbers_ = { law.kind,    law.exponent, law.decay,  law.first,
                     law.perStep, law.steps,    law.beyond, polynomials_.data() };
    }
    const PairLawNumbers<Real>& numbers() const { return numbers_; }
    //! What results are to be multiplied with.
    double factor() const { return factor_; }

private:
    DeviceBuffer<Real> polynomials_;
    PairLawNumbers<Real> numbers_ = {};
    double factor_                = 1;
};

} // namespace farfield

#endif
