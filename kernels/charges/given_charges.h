/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges that a caller has in device memory.
 */
#ifndef FARFIELD_KERNELS_CHARGES_GIVEN_CHARGES_H
#define FARFIELD_KERNELS_CHARGES_GIVEN_CHARGES_H

#include <optional>
#include <vector>

#include "operators/charge_sums.h"
#include "runtime/device.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

template<class Real>
class GivenCharges
{
public:
    //! Sums, e, and that of the scaled charges.
    struct Found
    {
        ChargeSums sums;
        double scaledNet = 0;
    };
    /*! \brief Reads charges, e, [n], and waits. Copies are kept.
     *  \returns nothing if one of them is zero or not legal; what onHost() gives is what it was then */
    std::optional<Found> read(const Real* q, int n, double rootCoulomb, cudaStream_t stream);
    //! [n], times the root of the Coulomb constant.
    const DeviceBuffer<Real>& scaled() const { return scaled_; }
    //! [n], e; waits.
    std::vector<Real> onHost(cudaStream_t stream) const;

private:
    DeviceBuffer<Real> own_, next_, scaled_;
    DeviceBuffer<double> found_;
    OrderedSums sums_;
};

} // namespace farfield

#endif
