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
 * \brief Declares the force provider that computes dispersion with libfarfield.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDDISPERSION_H
#define GMX_FMM_FARFIELDDISPERSION_H

#include <cstdint>

#include <memory>
#include <vector>

#include <farfield/farfield_kernels.h>

#include "gromacs/mdtypes/iforceprovider.h"
#include "gromacs/utility/real.h"

struct gmx_enerdata_t;
struct gmx_mtop_t;

namespace gmx
{

template<typename>
class ArrayRef;
class ForceWithVirial;
class MDLogger;
class StepWorkload;
struct FarfieldOptions;
struct FarfieldRun;
struct MDModulesAtomsRedistributedSignal;

/*! \brief Computes -C6/r^6 of all pairs at any distance but excluded ones, with farfield::KernelSum.
 *
 * C6 is that of DispersionCharges. Pair kernels have the rest of the interaction. A run computes it
 * by calculateForces(), or where coordinates and forces are on the device by FarfieldOnDevice.
 */
class FarfieldDispersion final : public IForceProvider
{
public:
    /*! \brief Collects the sites.
     *
     * \param[in] options  the mdp options
     * \param[in] mtop     the global topology; must outlive this object
     * \param[in] logger   for the log file; must outlive this object
     * \param[in] run      what the run decides
     */
    FarfieldDispersion(const FarfieldOptions& options,
                       const gmx_mtop_t&      mtop,
                       const MDLogger&        logger,
                       const FarfieldRun&     run);
    ~FarfieldDispersion();

    //! Follows the local order of the atoms
    void atomsRedistributed(const MDModulesAtomsRedistributedSignal& signal);

    //! Adds forces, and the energy and the virial at the steps that compute them.
    void calculateForces(const ForceProviderInput& forceProviderInput,
                         ForceProviderOutput*      forceProviderOutput) override;

    //! \name For coordinates and forces on the device
    //!@{
    //! Whether the sums are computed on a GPU
    bool isOnGpu() const;
    //! Whether the box is periodic
    bool                       isPeriodic() const;
    farfield::KernelSum<real>& sum();
    //! Local atoms with dispersion
    farfield::KernelSites<real> sites() const;
    //! Whether logSetup() has something new to say
    bool hasNewSetup() const;
    //! Says what was chosen. \param[in] forces  of dispersion
    void logSetup(ArrayRef<const RVec> forces);
    //! Adds the energy and the virial at the steps that compute them
    void addTotals(const farfield::Totals& totals,
                   const StepWorkload&     stepWork,
                   ForceWithVirial*        forceWithVirial,
                   gmx_enerdata_t*         enerd) const;
    //! Throws the GROMACS exception for an error of step \p step
    [[noreturn]] void rethrow(const farfield::Error& error, int64_t step) const;
    //!@}

    //! What was chosen at run time, for the checkpoint
    std::vector<double> state() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
