/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What evaluations with charges of two states need of a GPU besides a backend.
 *
 *  Nothing here needs the headers of CUDA.
 */
#ifndef FARFIELD_BACKEND_PERTURBED_ON_DEVICE_H
#define FARFIELD_BACKEND_PERTURBED_ON_DEVICE_H

#include <memory>
#include <vector>

namespace farfield
{

/*! \brief The particles whose charges differ, and their arrays in device memory.
 *
 *  They are evaluated by themselves, see perturbation.h, in a stream beside that of the caller:
 *  begin(), that evaluation with positions() and forces(), the evaluation of all particles in the
 *  stream of the caller, end(). */
template<class Real>
class PerturbedOnDevice
{
public:
    virtual ~PerturbedOnDevice() = default;

    /*! \brief Sets who they are; nothing that was begun may be left to do.
     *  \param[in] particles   ascending
     *  \param[in] difference  e, [particles]
     *  \param[in] all         number of all particles */
    virtual void set(const std::vector<int>& particles,
                     const std::vector<Real>& difference,
                     int all) = 0;

    /*! \brief Gathers their positions, after what a stream has to do already.
     *  \param[in] x       nm, [all][3], device memory
     *  \param[in] stream  cudaStream_t of the caller
     *  \returns the stream of their evaluation, cudaStream_t */
    virtual void* begin(const Real* x, void* stream) = 0;
    //! nm, [particles][3], device memory.
    virtual const Real* positions() const = 0;
    //! Room for their forces, kJ/mol/nm, [particles][3], device memory.
    virtual Real* forces() = 0;
    /*! \brief Makes the stream of the caller wait for their evaluation and adds what it gave.
     *  \param[in]     factor  of forces()
     *  \param[in,out] all     kJ/mol/nm, [all][3], device memory */
    virtual void end(double factor, Real* all, void* stream) = 0;

    //! Room for potentials, kJ/mol/e, [all], device memory.
    virtual Real* potentials() = 0;
    //! Puts the sum of difference times potential into a stream. \param[in] potentials  [all]
    virtual void sum(const Real* potentials, void* stream) = 0;
    //! That sum, kJ/mol, once the stream has come to its end.
    virtual double summed() = 0;
};

//! Of the current device, which has to be current in every call; defined in kernels/perturbed/.
template<class Real>
std::unique_ptr<PerturbedOnDevice<Real>> makePerturbed();

} // namespace farfield

#endif
