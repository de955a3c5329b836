/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L on the device: the periodic M2L of level 0 and what an engine of the finer levels is.
 *
 *  Operators are built on the host, by the same code as for the CPU backend.
 */
#ifndef FARFIELD_KERNELS_M2L_M2L_H
#define FARFIELD_KERNELS_M2L_M2L_H

#include <memory>

#include "runtime/device.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

#include "operators/m2l_list_operators.h"
#include "operators/m2l_periodic_operators.h"

namespace farfield
{

//! The periodic M2L: Fourier transforms over the cells of level 0 and one operator per wave
//! vector.
template<class Real>
class DevicePeriodicM2l
{
public:
    /*! \param[in] stride  of the expansions that apply() will be given */
    DevicePeriodicM2l(const PeriodicM2lOperators<Real>& operators, int stride, cudaStream_t stream);
    ~DevicePeriodicM2l();

    /*! \brief L of all cells of level 0 from M.
     *  \param[out] virial  if not null, device memory [StrainCount]: as PeriodicM2l::apply(), times
     *                      virialScale, is added */
    void
    apply(const LevelView<Real>& level, double virialScale, double* virial, cudaStream_t stream);

    //! As PeriodicM2l::setStrain(); applied on the device.
    void setStrain(const double strain[3][3], cudaStream_t stream);
    //! Takes the derivatives at the other end of a line of strains for the virial; the host waits.
    void setStrainedSums(const typename PeriodicM2lOperators<Real>::StrainSums& sums,
                         cudaStream_t stream);
    //! Derivatives for the virial: of a place on the line, see alongStrain().
    void interpolate(double along, cudaStream_t stream);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

//! One way to do M2L over the interaction lists of a level > 0.
template<class Real>
class DeviceM2l
{
public:
    virtual ~DeviceM2l() = default;
    //! Adds to L of the level. All launches go to the stream; nothing waits for the host.
    virtual void apply(const LevelView<Real>& level,
                       const Families& families,
                       cudaStream_t stream) = 0;
    //! Takes the operators anew, after they followed a strain.
    virtual void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream) = 0;
};

/*! \brief The virial of M2L over interaction lists: with dT the strain derivatives of the
 *         operators, 1/4 scale sum M dT M is added to virial [StrainCount] (device memory), in an
 *         order that does not depend on the run.
 *
 *  Room is made by the first apply() for a capacity, which so cannot be captured. */
template<class Real>
class DeviceM2lVirial
{
public:
    DeviceM2lVirial();
    ~DeviceM2lVirial();
    //! Takes the derivatives, which do not depend on the strain: once for a set of operators.
    void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream);
    void apply(const LevelView<Real>& level,
               const Families& families,
               double scale,
               double* virial,
               OrderedSums* scratch,
               cudaStream_t stream);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace farfield

#endif
