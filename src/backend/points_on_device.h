/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What potentials and fields at points need of a GPU besides a solver.
 *
 *  Nothing here needs the headers of CUDA.
 */
#ifndef FARFIELD_BACKEND_POINTS_ON_DEVICE_H
#define FARFIELD_BACKEND_POINTS_ON_DEVICE_H

#include <memory>

namespace farfield
{

/*! \brief Particles and the points behind them, in device memory: place(), an evaluation of all of
 *         them in the same stream, collect(). */
template<class Real>
class PointsOnDevice
{
public:
    virtual ~PointsOnDevice() = default;

    /*! \brief Puts both into one array.
     *  \param[in] x       nm, [particles][3], device memory
     *  \param[in] at      nm, [points][3], device memory
     *  \param[in] stream  cudaStream_t */
    virtual void place(const Real* x, int particles, const Real* at, int points, void* stream) = 0;
    //! nm, [particles + points][3], device memory.
    virtual const Real* positions() const = 0;
    //! Room for forces, kJ/mol/nm, [particles + points][3], device memory.
    virtual Real* forces() = 0;
    //! Room for potentials, kJ/mol/e, [particles + points], device memory.
    virtual Real* potentials() = 0;
    /*! \brief Hands over what the points got.
     *  \param[in]  charge      of a point, e
     *  \param[out] potentials  kJ/mol/e, [points], device memory, or null
     *  \param[out] fields      kJ/mol/nm/e, [points][3], device memory, or null */
    virtual void collect(double charge, Real* potentials, Real* fields, void* stream) = 0;
    //! Sets both to zero, of so many points, and waits.
    virtual void clear(Real* potentials, Real* fields, int points, void* stream) = 0;
};

//! Of the current device, which has to be current in every call; defined in kernels/points/.
template<class Real>
std::unique_ptr<PointsOnDevice<Real>> makePoints();

} // namespace farfield

#endif
