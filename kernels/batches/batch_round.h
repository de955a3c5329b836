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
    /*! \brief Plans sums.
     *  \param[in] measured    systems that have sums with another splitting, too
     *  \param[in] most        no more systems are left */
    void plan(SystemsOnDevice<Real>* systems,
              const MeasuredSystems& measured,
              int most,
              bool tangents,
              cudaStream_t stream);
    /*! \brief Waits for what the host has to know of the sums that were planned last.
     *  \param[in] potentials  see BatchSums::wantsPotentials
     *  \throws Error  as SystemsOnDevice::read() */
    const BatchStatus& read(SystemsOnDevice<Real>* systems, bool potentials, cudaStream_t stream);
    //! Whether there is room for any sums, as earlier ones have left it.
    bool hasRoom() const { return room_.blocks[OfParticles] > 0; }
    //! Makes room for the sums of a status.
    void makeRoom(const BatchStatus& status);
    /*! \brief Computes forces, potentials and totals of the planned systems, as far as there is room.
     *
     *  The others are left. Their forces and potentials stay as they are.
     *  \param[in] most     as plan()
     *  \param[in] potentials  see BatchSums::wantsPotentials
     *  \param[out] detour  of measured systems with the other splitting */
    void compute(SystemsOnDevice<Real>* systems,
                 int most,
                 bool virials,
                 bool tangents,
                 bool potentials,
                 BatchTargets* to,
                 BatchTargets* detour,
                 cudaStream_t stream);
    //! Of the systems that were computed, [BatchStatus::computed].
    const SystemSums* sums() const { return sums_.data(); }
    const SystemTotals* totals() const { return totals_.data(); }

private:
    //! \throws Error  InvalidArgument: the sums of a system are too long
    void refuseLength(const SystemsOnDevice<Real>& systems, int system, cudaStream_t stream) const;
    void launch(const BatchSums<Real>& sums, int most, BatchStatus* status, cudaStream_t stream);

    bool isSlab() const { return options_.boundary == Boundary::Slab; }

    BatchOptions options_;
    BatchSizes room_ = {}; //!< of the arrays below
    int mostPhases_  = 0;  //!< of a particle
    int tables_      = 0;  //!< of the sums that were planned last
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
