/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The sums of some systems of a call, all at once.
 */
#ifndef FARFIELD_KERNELS_BATCHES_BATCH_ROUND_H
#define FARFIELD_KERNELS_BATCHES_BATCH_ROUND_H

#include "batches/systems_on_device.h"

namespace farfield
{

//! Where forces and potentials go, in device memory.
struct BatchTargets
{
    DeviceBuffer<double> forces;     //!< [n][3], kJ/mol/nm
    DeviceBuffer<double> potentials; //!< [n][channels], kJ/mol/e
};

//! Plans and computes sums; work space is kept for the next ones.
template<class Real>
class BatchRound
{
public:
    explicit BatchRound(const BatchOptions& options) : options_(options) {}
    /*! \brief Plans sums and waits for what the host has to know of them.
     *  \param[in] measured    systems that have sums with another splitting, too
     *  \param[in] most        no more systems are left
     *  \param[in] potentials  whether those of neutral particles matter where charges are at one place
     *  \returns how many systems are listed, and more
     *  \throws Error  as SystemsOnDevice::read() */
    const BatchStatus& plan(SystemsOnDevice<Real>* systems,
                            const MeasuredSystems& measured,
                            int most,
                            bool tangents,
                            bool potentials,
                            cudaStream_t stream);
    /*! \brief Computes forces, potentials and totals of the planned systems.
     *
     *  Forces and potentials of other systems stay as they are.
     *  \param[out] detour  of measured systems with the other splitting */
    void compute(SystemsOnDevice<Real>* systems,
                 const BatchStatus& status,
                 bool virials,
                 bool tangents,
                 BatchTargets* to,
                 BatchTargets* detour,
                 cudaStream_t stream);
    //! Of the systems that were computed, [listed].
    const SystemSums* sums() const { return sums_.data(); }
    const SystemTotals* totals() const { return totals_.data(); }

private:
    //! \throws Error  InvalidArgument: the sums of a system are too long
    void refuseLength(const SystemsOnDevice<Real>& systems, int system, cudaStream_t stream) const;
    BatchSums<Real> makeRoom(SystemsOnDevice<Real>* systems,
                             const BatchStatus& status,
                             bool virials,
                             bool tangents,
                             BatchTargets* to,
                             BatchTargets* detour);
    void launch(const BatchSums<Real>& sums, const BatchStatus& status, cudaStream_t stream);

    bool isSlab() const { return options_.boundary == Boundary::Slab; }

    BatchOptions options_;
    DeviceBuffer<int> list_;
    DeviceBuffer<SystemSums> sums_;
    DeviceBuffer<WaveColumn> columns_;
    DeviceBuffer<BlockPart> blocks_[BlockKinds];
    DeviceBuffer<SystemTotals> totals_, ofSlabs_;
    DeviceBuffer<Real> places_, tiles_, phases_, factors_;
    DeviceBuffer<double> pairTotals_, waveTotals_;
    DeviceBuffer<char> contacts_;
};

} // namespace farfield

#endif
