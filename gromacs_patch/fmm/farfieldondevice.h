/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \libinternal \file
 * \brief Declares what the farfield force provider has on the device.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDONDEVICE_H
#define GMX_FMM_FARFIELDONDEVICE_H

#include <memory>
#include <vector>

#include "gromacs/utility/real.h"
#include "gromacs/utility/vectypes.h"

class DeviceContext;
class GpuEventSynchronizer;

namespace farfield
{
struct Request;
struct StageTime;
struct Totals;
template<class Real>
class Solver;
} // namespace farfield

namespace gmx
{

template<typename>
class ArrayRef;
class GpuForceReduction;
class StatePropagatorDataGpu;

/*! \brief Stream, forces and calls of the library for coordinates in device memory.
 *
 * Knows nothing of energies, logs or errors: functions throw farfield::Error.
 */
class FarfieldOnDevice
{
public:
    //! \param[in] solver  has the device Gpu; must outlive this object
    FarfieldOnDevice(farfield::Solver<real>* solver, const DeviceContext& deviceContext);
    ~FarfieldOnDevice();

    //! Whether GROMACS and the library were both built with CUDA.
    static bool isCompiled();

    //! As IDeviceForceProvider::reinit().
    void reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction);

    /*! \brief Puts an evaluation into the stream.
     *
     * \param[in] box             box vectors as rows
     * \param[in] request         what to compute besides forces
     * \param[in] forcesToHost    copy the forces to the host, rather than telling the reduction
     * \param[in] xReadyOnDevice  when the coordinates are complete
     */
    void launch(const double box[DIM][DIM],
                const farfield::Request& request,
                bool forcesToHost,
                GpuEventSynchronizer* xReadyOnDevice);

    //! Waits for the last launch.
    farfield::Totals wait();
    //! The forces of a launch with forcesToHost, after wait().
    ArrayRef<const RVec> forces() const;

    //! Copies the coordinates to the host, to tell what is wrong with them.
    std::vector<RVec> coordinates() const;

    //! Device time of every stage at the current coordinates; overwrites the forces.
    std::vector<farfield::StageTime> measureStages(const double box[DIM][DIM]);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
