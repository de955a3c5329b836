/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */

/*! \libinternal \file
 * \brief Declares arrays of the FMM in the memory of CUDA devices, of that of the rank or another one.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDELSEWHERE_H
#define GMX_FMM_FARFIELDELSEWHERE_H

#include <cuda_runtime.h>

#include <memory>

#include "gromacs/utility/real.h"

namespace gmx
{

//! Throws farfield::Error if a call of CUDA failed.
void checkCuda(cudaError_t status, const char* what);

//! Vectors of atoms in the memory of the device that was current at construction.
class FarfieldVectors
{
public:
    FarfieldVectors();
    ~FarfieldVectors();
    FarfieldVectors(const FarfieldVectors&)            = delete;
    FarfieldVectors& operator=(const FarfieldVectors&) = delete;

    real* data() const { return data_; }
    //! Makes room; \p stream has what uses the vectors. What is new is zero.
    void resize(int numAtoms, cudaStream_t stream);

private:
    int   device_   = 0;
    real* data_     = nullptr;
    int   capacity_ = 0;
};

//! What an evaluation works on, on the device of its solver.
struct FarfieldArrays
{
    const real*  x;
    real*        forces;
    cudaStream_t stream;
};

/*! \brief Arrays and a stream on the device that has the FMM, where that is not the device of the rank.
 *
 * Work of either device waits for that of the other through events, so that steps may be recorded
 * as graphs. The device of the rank is the current one in all calls, which throw farfield::Error.
 */
class FarfieldElsewhere
{
public:
    explicit FarfieldElsewhere(int device);
    ~FarfieldElsewhere();
    FarfieldElsewhere(const FarfieldElsewhere&)            = delete;
    FarfieldElsewhere& operator=(const FarfieldElsewhere&) = delete;

    int            device() const { return device_; }
    FarfieldArrays arrays() const { return { x_->data(), forces_->data(), stream_ }; }
    //! Makes room.
    void resize(int numAtoms);
    //! Copies coordinates to there, once the \p stream of the rank's device comes to this.
    void fetch(const real* x, cudaStream_t stream);
    //! Copies forces to the rank's device; its \p stream goes on with them.
    void deliver(real* forces, cudaStream_t stream);

private:
    //! Copies a vector for each atom.
    void copy(real* to, const real* from);

    int          device_;
    size_t       size_        = 0;
    cudaStream_t stream_      = nullptr;
    cudaEvent_t  xReady_      = nullptr;
    cudaEvent_t  forcesReady_ = nullptr;
    //! Made where they are
    std::unique_ptr<FarfieldVectors> x_, forces_;
};

} // namespace gmx

#endif
