/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \libinternal \file
 * \brief Declares the interface of a force provider that works in device memory.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_DEVICEFORCEPROVIDER_H
#define GMX_FMM_DEVICEFORCEPROVIDER_H

#include <cstdint>

#include "gromacs/utility/vectypes.h"

class GpuEventSynchronizer;
struct gmx_enerdata_t;

namespace gmx
{

class ForceWithVirial;
class GpuForceReduction;
class StatePropagatorDataGpu;
class StepWorkload;

/*! \libinternal \brief
 * Reads the coordinates of the local atoms from device memory, and leaves the forces there for the
 * reduction of forces.
 *
 * On steps where the forces are reduced on the host, which are those with a virial, they are added
 * there.
 */
class IDeviceForceProvider
{
public:
    /*! \brief Takes over the buffers of the local atoms and registers the forces.
     *
     * To be called at search steps, after \p forceReduction has been set up.
     *
     * \param[in] stateGpu        owner of the coordinates
     * \param[in] forceReduction  sums up the forces of the local atoms
     */
    virtual void reinit(StatePropagatorDataGpu* stateGpu, GpuForceReduction* forceReduction) = 0;

    //! Whether \p box is another one than at the last launch: that step can not become a graph.
    virtual bool boxHasChanged(const matrix box) const = 0;

    /*! \brief Puts the computation of a step into a stream; consumes \p xReadyOnDevice once.
     *
     * May be called while the step is recorded as a CUDA graph.
     */
    virtual void launch(const matrix box,
                        int64_t step,
                        const StepWorkload& stepWork,
                        GpuEventSynchronizer* xReadyOnDevice) = 0;

    /*! \brief Waits for the energy and the virial of the last launch and adds them, and adds the
     * forces unless they are reduced on the device.
     */
    virtual void waitAndReduce(const StepWorkload& stepWork,
                               ForceWithVirial* forceWithVirial,
                               gmx_enerdata_t* enerd) = 0;

protected:
    ~IDeviceForceProvider() = default;
};

} // namespace gmx

#endif
