/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batches/batch_round.h"

#include <algorithm>
#include <utility>

#include "batch/batch_check.h"
#include "batch/images.h"
#include "batch/wave_columns.h"

namespace farfield
{
namespace
{

/*! \brief Makes room for a size.
 *
 *  Some more than what is needed: what differs from call to call need not grow each time, and calls that
 *  do not wait cannot make room. */
template<class Size>
void raise(Size* room, Size size, bool waits)
{
    if (size > *room)
    {
        *room = size + size / (waits ? 16 : 2);
    }
}

} // namespace

template<class Real>
void BatchRound<Real>::plan(SystemsOnDevice<Real>* systems,
                            const MeasuredSystems& measured,
                            int most,
                            bool tangents,
                            cudaStream_t stream)
{
    list_.resize(most);
    sums_.resize(most);
    tables_ = options_.channels * (tangents ? c_tangentSets : 1);
    planSystems<Real>(systems->arrays(),
                      options_,
                      measured,
                      most,
                      tables_,
                      list_.data(),
                      sums_.data(),
                      stream);
}

template<class Real>
const BatchStatus& BatchRound<Real>::read(SystemsOnDevice<Real>* systems,
                                          bool potentials,
                                          cudaStream_t stream)
{
    const auto refuse = [&](const BatchStatus& status)
    { refuseLength(*systems, status.tooLong, stream); };
    const BatchStatus& status = systems->read(contacts_.data(), potentials, refuse, stream);
    mostPhases_               = std::max(mostPhases_, status.phases);
    return status;
}

template<class Real>
void BatchRound<Real>::refuseLength(const SystemsOnDevice<Real>& systems,
                                    int system,
                                    cudaStream_t stream) const
{
    using Rows     = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
    const auto own = systems.fetch(system, stream);
    const ReducedBox box(Eigen::Map<const Rows>(own.box.data()));
    withSystemNamed(
            system,
            [&]
            {
                for (const double detour : { 1.0, c_detour })
                {
                    const EwaldPlan plan = planFor(
                            options_, own.traits, own.error, detour, c_pairCostOfGpus<Real>);
                    checkImages(box, plan.cutoff, own.n);
                    WaveColumns().find(2 * M_PI * box.inverse.transpose(), plan.waveCutoff);
                }
            });
    // the host may round the other way
    throw inSystem(system,
                   "needs too many images or waves: its box is too flat or too long. Check its box "
                   "vectors, or use a Solver for it.",
                   "boxes");
}

template<class Real>
void BatchRound<Real>::makeRoom(const BatchStatus& status)
{
    const BatchSizes& sizes = status.sizes;
    BatchSizes wanted       = std::exchange(room_, {}); // until all of it is there
    const bool waits        = !options_.asynchronous;
    raise(&wanted.tiles, sizes.tiles, waits);
    raise(&wanted.columns, sizes.columns, waits);
    raise(&wanted.phases, sizes.phases, waits);
    raise(&wanted.factors, sizes.factors, waits);
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        raise(&wanted.blocks[kind], sizes.blocks[kind], waits);
        blocks_[kind].resize(wanted.blocks[kind]);
    }
    columns_.resize(wanted.columns);
    places_.resize(3 * c_tile * wanted.tiles);
    tiles_.resize(6 * wanted.tiles);
    phases_.resize(wanted.phases);
    factors_.resize(wanted.factors);
    pairTotals_.resize(static_cast<size_t>(wanted.blocks[OfTargets]) * BlockTotals);
    waveTotals_.resize(static_cast<size_t>(wanted.blocks[OfWeights]) * BlockTotals
                       * options_.channels);
    room_ = wanted;
}

template<class Real>
void BatchRound<Real>::launch(const BatchSums<Real>& sums,
                              int most,
                              BatchStatus* status,
                              cudaStream_t stream)
{
    const bool hasImages      = options_.boundary != Boundary::Open;
    const int* const counts   = room_.blocks;
    const auto blocksOf       = [&](BlockKind kind) { return blocks_[kind].data(); };
    BlockPart* const blocks[] = { blocksOf(OfParticles),
                                  blocksOf(OfTargets),
                                  blocksOf(OfFactors),
                                  blocksOf(OfWeights),
                                  blocksOf(OfFields) };
    fillPlans(sums_.data(), tables_, status, most, room_, columns_.data(), blocks, stream);
    if (counts[OfTargets] > 0)
    {
        placeParticles(sums, hasImages, blocksOf(OfParticles), counts[OfParticles], stream);
        sumPairs(sums,
                 hasImages,
                 blocksOf(OfTargets),
                 counts[OfTargets],
                 scaledErfc<Real>(),
                 stream);
    }
    if (hasImages)
    {
        findPhases(sums, blocksOf(OfParticles), counts[OfParticles], stream);
        sumFactors(sums, blocksOf(OfFactors), counts[OfFactors], mostPhases_, stream);
        weighFactors(sums, blocksOf(OfWeights), counts[OfWeights], stream);
        addFields(sums, blocksOf(OfFields), counts[OfFields], stream);
    }
    if (isSlab())
    {
        addSlabs(sums, most, stream);
    }
    addTotals(sums, most, stream);
}

template<class Real>
void BatchRound<Real>::compute(SystemsOnDevice<Real>* systems,
                               int most,
                               bool virials,
                               bool tangents,
                               bool potentials,
                               BatchTargets* to,
                               BatchTargets* detour,
                               cudaStream_t stream)
{
    const SystemArrays arrays = systems->arrays();
    totals_.resize(most);
    ofSlabs_.resize(isSlab() ? most : 0);
    contacts_.resize(systems->particles());
    const BatchSums<Real> sums = { sums_.data(),
                                   &arrays.status->computed,
                                   systems->view(),
                                   systems->changes(),
                                   options_.coulombConstant,
                                   virials,
                                   tangents,
                                   potentials,
                                   places_.data(),
                                   tiles_.data(),
                                   phases_.data(),
                                   columns_.data(),
                                   factors_.data(),
                                   pairTotals_.data(),
                                   waveTotals_.data(),
                                   { to->forces.data(), detour->forces.data() },
                                   { to->potentials.data(), detour->potentials.data() },
                                   contacts_.data(),
                                   totals_.data(),
                                   arrays.slabs,
                                   ofSlabs_.data() };
    launch(sums, most, arrays.status, stream);
}

template class BatchRound<float>;
template class BatchRound<double>;

} // namespace farfield
