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
 * \brief Declares the force provider that calls libfarfield.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDFORCEPROVIDER_H
#define GMX_FMM_FARFIELDFORCEPROVIDER_H

#include <memory>
#include <string>
#include <vector>

#include "gromacs/mdtypes/ideviceforceprovider.h"
#include "gromacs/mdtypes/iforceprovider.h"

#include "farfieldrun.h"

class DeviceContext;
struct gmx_mtop_t;

namespace farfield
{
enum class Device;
}

namespace gmx
{

class FarfieldDispersion;
class MDLogger;
struct MDModulesAtomsRedistributedSignal;

/*! \brief Computes all Coulomb interactions, near and far, with farfield::Solver.
 *
 * The particles are handed over in the order of the local state, see FarfieldParticles. A run uses
 * one of the two interfaces, throughout.
 */
class FarfieldForceProvider final : public IForceProvider, public IDeviceForceProvider
{
public:
    /*! \brief Creates the solver.
     *
     * \param[in] options  the mdp options
     * \param[in] mtop     the global topology; must outlive this object
     * \param[in] logger   for the log file; must outlive this object
     * \param[in] run      what the run decides
     *
     * \throws InvalidInputError, InconsistentInputError  an option or the device cannot be used
     */
    FarfieldForceProvider(const FarfieldOptions& options,
                          const gmx_mtop_t&      mtop,
                          const MDLogger&        logger,
                          const FarfieldRun&     run);
    ~FarfieldForceProvider();

    /*! \brief Decides whether coordinates and forces are those of GROMACS on the device.
     *
     * The last two arguments are reasons for the log, to follow a colon, or empty.
     *
     * \param[in] deviceContext  the device of this rank, can be nullptr
     * \param[in] obstacle       why GROMACS does not have them there
     * \param[in] updateOnHost   why GROMACS copies them from and to the host at every step
     * \returns whether this object is to be used as IDeviceForceProvider
     */
    bool useDevice(const DeviceContext* deviceContext,
                   const std::string&   obstacle,
                   const std::string&   updateOnHost);

    //! Where the solver works.
    farfield::Device device() const;

    //! Computes dispersion with coordinates and forces on the device, after useDevice(); it must outlive this object.
    void addDispersion(FarfieldDispersion* dispersion);

    /*! \brief Hands charges and exclusions of the local atoms to the solver.
     *
     * The first call, which comes before the first step, also sets up the operators and logs the
     * discretisation.
     */
    void atomsRedistributed(const MDModulesAtomsRedistributedSignal& signal);

    //! Adds forces, and the energy and the virial at the steps that compute them.
    void calculateForces(const ForceProviderInput& forceProviderInput,
                         ForceProviderOutput*      forceProviderOutput) override;

    // From IDeviceForceProvider
    void reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction) override;
    bool mustBeRecordedAgain(const matrix box, ArrayRef<const real> lambda) const override;
    void launch(const matrix          box,
                int64_t               step,
                const StepWorkload&   stepWork,
                ArrayRef<const real>  lambda,
                GpuEventSynchronizer* xReadyOnDevice) override;
    void waitAndReduce(const StepWorkload& stepWork,
                       ForceWithVirial*    forceWithVirial,
                       gmx_enerdata_t*     enerd) override;
    bool recordingsMayBeUpdated() const override;
    void waitForLaunches(int64_t step) override;

    //! Why steps can not be recorded as graphs; empty if they can.
    std::string obstacleToGraphs() const;

    //! The discretisation that was chosen at run time, for the checkpoint.
    std::vector<double> state() const;

    //! Writes the time spent in each stage to the log.
    void logTimings() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
