/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batches/batch_round.h"

#include "batch/batch_check.h"
#include "batch/images.h"
#include "batch/wave_columns.h"

namespace farfield
{
namespace
{

//! Some more than what is needed: what differs from call to call need not grow each time.
size_t roomFor(long long size)
{
    return size + size / 16;
}

} // namespace

template<class Real>
const BatchStatus& BatchRound<Real>::plan(SystemsOnDevice<Real>* systems,
                                          const MeasuredSystems& measured,
                                          int most,
                                          bool tangents,
                                          bool potentials,
                                          cudaStream_t stream)
{
    const SystemArrays arrays = systems->arrays();
    list_.resize(most);
    sums_.resize(most);
    planSystems<Real>(arrays,
                      options_,
                      measured,
                      most,
                      options_.channels * (tangents ? c_tangentSets : 1),
                      list_.data(),
                      sums_.data(),
                      stream);
    const auto refuse = [&](const BatchStatus& status)
    { refuseLength(*systems, status.tooLong, stream); };
    return systems->read(contacts_.data(), potentials, refuse, stream);
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
BatchSums<Real> BatchRound<Real>::makeRoom(SystemsOnDevice<Real>* systems,
                                           const BatchStatus& status,
                                           bool virials,
                                           bool tangents,
                                           BatchTargets* to,
                                           BatchTargets* detour)
{
    const BatchSizes& sizes = status.sizes;
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        blocks_[kind].resize(roomFor(sizes.blocks[kind]));
    }
    columns_.resize(roomFor(sizes.columns));
    totals_.resize(status.listed);
    ofSlabs_.resize(isSlab() ? status.listed : 0);
    places_.resize(3 * c_tile * sizes.tiles);
    tiles_.resize(6 * sizes.tiles);
    phases_.resize(roomFor(sizes.phases));
    factors_.resize(roomFor(sizes.factors));
    contacts_.resize(systems->particles());
    const auto blocksOf = [&](BlockKind kind) { return static_cast<size_t>(sizes.blocks[kind]); };
    pairTotals_.resize(blocksOf(OfTargets) * BlockTotals);
    waveTotals_.resize(blocksOf(OfWeights) * BlockTotals * options_.channels);
    return { sums_.data(),
             systems->view(),
             systems->changes(),
             options_.coulombConstant,
             virials,
             tangents,
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
             systems->arrays().slabs,
             ofSlabs_.data() };
}

template<class Real>
void BatchRound<Real>::launch(const BatchSums<Real>& sums,
                              const BatchStatus& status,
                              cudaStream_t stream)
{
    const bool hasImages      = options_.boundary != Boundary::Open;
    const int* const counts   = status.sizes.blocks;
    const auto blocksOf       = [&](BlockKind kind) { return blocks_[kind].data(); };
    BlockPart* const blocks[] = { blocksOf(OfParticles),
                                  blocksOf(OfTargets),
                                  blocksOf(OfFactors),
                                  blocksOf(OfWeights),
                                  blocksOf(OfFields) };
    fillPlans(sums_.data(), status.listed, columns_.data(), blocks, stream);
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
        sumFactors(sums, blocksOf(OfFactors), counts[OfFactors], status.phases, stream);
        weighFactors(sums, blocksOf(OfWeights), counts[OfWeights], stream);
        addFields(sums, blocksOf(OfFields), counts[OfFields], stream);
    }
    if (isSlab())
    {
        addSlabs(sums, status.listed, stream);
    }
    addTotals(sums, status.listed, stream);
}

template<class Real>
void BatchRound<Real>::compute(SystemsOnDevice<Real>* systems,
                               const BatchStatus& status,
                               bool virials,
                               bool tangents,
                               BatchTargets* to,
                               BatchTargets* detour,
                               cudaStream_t stream)
{
    launch(makeRoom(systems, status, virials, tangents, to, detour), status, stream);
}

template class BatchRound<float>;
template class BatchRound<double>;

} // namespace farfield
