/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tangents on the device: what is evaluated besides charges, and what comes of it.
 */
#ifndef FARFIELD_KERNELS_SITES_DEVICE_TANGENT_H
#define FARFIELD_KERNELS_SITES_DEVICE_TANGENT_H

#include "backend/gpu_backend.h"
#include "runtime/device.h"

namespace farfield
{

//! See evaluateTangent() of the host. Charges q are scaled by the root of the Coulomb constant, all are in device memory.
template<class Real>
class DeviceTangent
{
public:
    using Room = typename GpuBackend<Real>::TangentRoom;

    Room room(int n);

    //! Charges dq and dipoles q dx.
    struct Sources
    {
        double unit = 0; //!< e, what the largest of them counts as; 0: there are none
        double net  = 0; //!< scaled charge, in units
    };
    //! Sets charges() and dipoles(), and waits.
    Sources make(const Real* q,
                 const Direction<Real>& direction,
                 int n,
                 double rootCoulomb,
                 cudaStream_t stream);
    //! [n] scaled, in units; idle ones in place of zeros.
    DeviceBuffer<Real>& charges() { return charges_; }
    //! [n][3] the same.
    DeviceBuffer<Real>& dipoles() { return dipoles_; }

    //! \param[in] q  as of make()
    void combine(const Real* q,
                 const Direction<Real>& direction,
                 double unit,
                 int n,
                 double rootCoulomb,
                 const Tangent<Real>& tangent,
                 cudaStream_t stream) const;

private:
    DeviceBuffer<Real> forces_, gradients_, hessians_, potentialsOfSources_, gradientsOfSources_;
    DeviceBuffer<Real> charges_, dipoles_;
    DeviceBuffer<double> found_; //!< largest strength and sum of charges
};

} // namespace farfield

#endif
