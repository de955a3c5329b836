/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The sums of some systems of a call, all at once.
 */
#ifndef FARFIELD_KERNELS_BATCHES_BATCH_ROUND_H
#define FARFIELD_KERNELS_BATCHES_BATCH_ROUND_H

#include <vector>

#include "batch/wave_columns.h"
#include "batches/systems_on_device.h"

namespace farfield
{

//! A system and how long its sums are.
struct PlannedSystem
{
    int system;
    EwaldPlan plan;
    WaveColumns waves;
};

//! Where forces and potentials go, in device memory.
struct BatchTargets
{
    DeviceBuffer<double> forces;     //!< [n][3], kJ/mol/nm
    DeviceBuffer<double> potentials; //!< [n][channels], kJ/mol/e
};

//! Computes sums; work space is kept for the next ones.
template<class Real>
class BatchRound
{
public:
    explicit BatchRound(const BatchOptions& options) : options_(options) {}
    /*! \brief Computes forces, potentials and totals; waits for the totals.
     *
     *  Forces and potentials of other systems stay as they are.
     *  \param[in] potentials  whether those of neutral particles matter
     *  \returns totals of the systems, in the order given
     *  \throws Error  as BatchBackend::evaluate() */
    const std::vector<SystemTotals>& compute(SystemsOnDevice<Real>* systems,
                                             const std::vector<PlannedSystem>& planned,
                                             bool virials,
                                             bool tangents,
                                             bool potentials,
                                             BatchTargets* to,
                                             cudaStream_t stream);

private:
    //! What blocks of a kernel have.
    enum BlockKind
    {
        OfParticles,
        OfTargets,
        OfFactors,
        OfWeights,
        OfFields,
        BlockKinds
    };
    //! \param[in] sets  of structure factors
    void layOut(const SystemsOnDevice<Real>& systems,
                const std::vector<PlannedSystem>& planned,
                int sets);
    SystemSums sumsOf(const SystemsOnDevice<Real>& systems, const PlannedSystem& planned) const;
    void addBlocks(BlockKind kind, int system, int parts);
    BatchSums<Real> makeRoom(SystemsOnDevice<Real>* systems,
                             bool virials,
                             bool tangents,
                             BatchTargets* to,
                             cudaStream_t stream);
    void launch(const BatchSums<Real>& sums, bool hasImages, cudaStream_t stream);
    const BlockPart* blocksOf(BlockKind kind) const
    {
        return allBlocks_.data() + firstBlock_[kind];
    }
    int blockCount(BlockKind kind) const { return static_cast<int>(blocks_[kind].size()); }

    BatchOptions options_;
    std::vector<SystemSums> systems_;
    std::vector<WaveColumn> columns_;
    std::vector<BlockPart> blocks_[BlockKinds];
    size_t firstBlock_[BlockKinds] = {};
    int tileCount_                 = 0;
    long long phaseCount_ = 0, factorCount_ = 0;
    std::vector<SystemTotals> totals_;
    DeviceBuffer<SystemSums> onDevice_;
    DeviceBuffer<WaveColumn> columnsOnDevice_;
    DeviceBuffer<BlockPart> allBlocks_;
    DeviceBuffer<SystemTotals> totalsOnDevice_;
    DeviceBuffer<Real> places_, tiles_, phases_, factors_;
    DeviceBuffer<double> pairTotals_, waveTotals_;
    DeviceBuffer<char> contacts_;
};

} // namespace farfield

#endif
