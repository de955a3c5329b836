/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief An evaluation, as all layers hand it on.
 */
#ifndef FARFIELD_BACKEND_TASK_H
#define FARFIELD_BACKEND_TASK_H

#include "farfield/farfield.h"

namespace farfield
{

//! What is evaluated, what of it is wanted, and where it goes to.
template<class Real>
struct Task
{
    const Real* x;          //!< positions, nm, [n][3], any image
    const double (*box)[3]; //!< rows, nm, host memory
    Real* forces;           //!< kJ/mol/nm, [n][3]
    Real* potentials;       //!< kJ/mol/e, [n], or null
    Request request;
    void* stream    = nullptr; //!< cudaStream_t, where the arrays are in device memory
    Real* gradients = nullptr; //!< of the potentials, kJ/mol/e/nm, [n][3], or null
    Real* hessians =
            nullptr; //!< of the potentials, kJ/mol/e/nm^2, [n][6]: xx yy zz xy xz yz; or null
    Real* torques = nullptr; //!< on moments, kJ/mol, [n][3], or null

    //! Where not, forces may get any values.
    bool wantsForces = true;

    //! Whether derivatives of potentials are wanted, or what follows from them.
    bool wantsDerivatives() const
    {
        return gradients != nullptr || hessians != nullptr || torques != nullptr;
    }
    //! Whether anything is wanted at particles without a charge.
    bool wantsAllPlaces() const { return potentials != nullptr || wantsDerivatives(); }
    //! Whether the stages sum the energy: virials and potentials come with it.
    bool sumsEnergy() const { return request.energy || request.virial || potentials != nullptr; }
};

//! The task with what is wanted besides the forces.
template<class Real>
Task<Real> taskOf(Task<Real> task, const Outputs<Real>& outputs)
{
    task.potentials = outputs.potentials;
    task.gradients  = outputs.gradients;
    task.hessians   = outputs.hessians;
    task.torques    = outputs.torques;
    return task;
}

} // namespace farfield

#endif
