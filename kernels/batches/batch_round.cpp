/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batches/batch_round.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "batch/batch_check.h"
#include "batch/images.h"
#include "batch/places.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;
using Rows            = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

int partsOf(int count, int ofBlock)
{
    return (count + ofBlock - 1) / ofBlock;
}

//! What a coordinate is counted in, nm, so that no difference of partners is too large an integer.
double unitOfPlaces(const ReducedBox& box, double cutoff)
{
    double span = 0;
    for (int d = 0; d < 3; d++)
    {
        double component = 0;
        for (int k = 0; k < 3; k++)
        {
            component += (1 + 2 * cutoff / box.heights[k]) * std::abs(box.vectors(k, d));
        }
        span = std::max(span, component);
    }
    return span / c_largestDifference;
}

} // namespace

template<class Real>
SystemSums BatchRound<Real>::sumsOf(const SystemsOnDevice<Real>& systems,
                                    const PlannedSystem& planned) const
{
    SystemSums s = {};
    s.system     = planned.system;
    s.first      = systems.first(s.system);
    s.n          = systems.size(s.system);
    s.hasImages  = systems.hasImages();
    s.unit       = 1;
    s.splitting  = planned.plan.splitting;
    s.cutoff     = planned.plan.cutoff;
    s.waveCutoff = planned.plan.waveCutoff;
    s.tiles      = partsOf(s.n, c_tile);
    s.chunks     = partsOf(s.n, c_chunk);
    s.columns    = static_cast<int>(planned.waves.columns.size());
    s.waveCount  = planned.waves.count;
    std::copy(planned.waves.range.begin(), planned.waves.range.end(), s.range);
    std::copy_n(systems.strain(s.system), 9, s.strain);
    if (!s.hasImages)
    {
        return s;
    }
    const ReducedBox& box         = systems.box(s.system);
    Eigen::Map<Rows>{ s.inverse } = box.inverse;
    Eigen::Map<Rows>{ s.waves }   = 2 * c_pi * box.inverse.transpose();
    const auto [self, background] = constantsOf(options_, planned.plan, box.volume);
    s.self                        = self;
    s.background                  = background;
    s.scale                       = 4 * c_pi * options_.coulombConstant / box.volume;
    if constexpr (std::is_integral<typename PlaceOfImage<Real>::Type>::value)
    {
        s.unit = unitOfPlaces(box, s.cutoff);
    }
    Eigen::Map<Rows>{ s.vectors } = box.vectors / s.unit;
    for (int k = 0; k < 3; k++)
    {
        s.margin[k] = s.cutoff / box.heights[k];
    }
    const double rounding = placesRounding(
            box, s.cutoff, static_cast<double>(std::numeric_limits<Real>::epsilon()));
    s.contact = rounding * rounding;
    return s;
}

template<class Real>
void BatchRound<Real>::addBlocks(BlockKind kind, int system, int parts)
{
    auto& blocks       = blocks_[kind];
    const size_t first = blocks.size();
    blocks.resize(first + parts);
    for (int part = 0; part < parts; part++)
    {
        blocks[first + part] = { system, part };
    }
}

template<class Real>
void BatchRound<Real>::layOut(const SystemsOnDevice<Real>& systems,
                              const std::vector<PlannedSystem>& planned,
                              int sets)
{
    systems_.resize(planned.size());
    columns_.clear();
    for (auto& blocks : blocks_)
    {
        blocks.clear();
    }
    tileCount_  = 0;
    phaseCount_ = factorCount_ = 0;
    for (size_t k = 0; k < planned.size(); k++)
    {
        const auto index = static_cast<int>(k);
        SystemSums& s    = systems_[k];
        s                = sumsOf(systems, planned[k]);
        s.firstTile      = tileCount_;
        s.firstColumn    = static_cast<int>(columns_.size());
        s.firstPhase     = phaseCount_;
        s.firstSum       = factorCount_;
        s.firstPairBlock = blockCount(OfTargets);
        s.firstWaveBlock = blockCount(OfWeights);
        if (!s.hasImages || s.cutoff > 0)
        {
            s.pairBlocks = partsOf(s.n, c_targetsOfBlock);
        }
        if (s.hasImages)
        {
            s.waveBlocks = partsOf(s.columns * (s.range[2] + 1), c_batchThreads);
            addBlocks(OfFactors, index, partsOf(warpsOfFactors(s), c_batchThreads / c_tile));
            addBlocks(OfFields, index, partsOf(s.n, c_fieldThreads));
        }
        addBlocks(OfParticles, index, partsOf(s.n, c_batchThreads));
        addBlocks(OfTargets, index, s.pairBlocks);
        addBlocks(OfWeights, index, s.waveBlocks);
        tileCount_ += s.tiles;
        phaseCount_ += 2LL * s.n * (s.range[0] + s.range[1] + s.range[2] + 3);
        factorCount_ += static_cast<long long>(options_.channels) * sets * s.chunks * s.waveCount
                        * WaveProducts;
        columns_.insert(
                columns_.end(), planned[k].waves.columns.begin(), planned[k].waves.columns.end());
    }
}

template<class Real>
BatchSums<Real> BatchRound<Real>::makeRoom(SystemsOnDevice<Real>* systems,
                                           bool virials,
                                           bool tangents,
                                           BatchTargets* to,
                                           cudaStream_t stream)
{
    size_t blocks = 0;
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        firstBlock_[kind] = blocks;
        blocks += blocks_[kind].size();
    }
    allBlocks_.resize(blocks);
    onDevice_.resize(systems_.size());
    columnsOnDevice_.resize(columns_.size());
    totalsOnDevice_.resize(systems_.size());
    places_.resize(3 * systems->particles());
    tiles_.resize(6 * static_cast<size_t>(tileCount_));
    phases_.resize(phaseCount_);
    factors_.resize(factorCount_);
    contacts_.resize(systems->particles());
    pairTotals_.resize(blocks_[OfTargets].size() * BlockTotals);
    waveTotals_.resize(blocks_[OfWeights].size() * BlockTotals * options_.channels);
    const char* const action = "copying plans to the GPU";
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        copyAsync(allBlocks_.data() + firstBlock_[kind],
                  blocks_[kind].data(),
                  blocks_[kind].size(),
                  stream,
                  action);
    }
    copyAsync(onDevice_.data(), systems_.data(), systems_.size(), stream, action);
    copyAsync(columnsOnDevice_.data(), columns_.data(), columns_.size(), stream, action);
    return { onDevice_.data(),
             systems->view(),
             systems->changes(),
             options_.coulombConstant,
             virials,
             tangents,
             places_.data(),
             tiles_.data(),
             phases_.data(),
             columnsOnDevice_.data(),
             factors_.data(),
             pairTotals_.data(),
             waveTotals_.data(),
             to->forces.data(),
             to->potentials.data(),
             contacts_.data(),
             totalsOnDevice_.data() };
}

template<class Real>
void BatchRound<Real>::launch(const BatchSums<Real>& sums, bool hasImages, cudaStream_t stream)
{
    if (blockCount(OfTargets) > 0)
    {
        placeParticles(sums, hasImages, blocksOf(OfParticles), blockCount(OfParticles), stream);
        sumPairs(sums,
                 hasImages,
                 blocksOf(OfTargets),
                 blockCount(OfTargets),
                 scaledErfc<Real>(),
                 stream);
    }
    if (hasImages)
    {
        findPhases(sums, blocksOf(OfParticles), blockCount(OfParticles), stream);
        sumFactors(sums, blocksOf(OfFactors), blockCount(OfFactors), stream);
        weighFactors(sums, blocksOf(OfWeights), blockCount(OfWeights), stream);
        addFields(sums, blocksOf(OfFields), blockCount(OfFields), stream);
    }
    addTotals(sums, static_cast<int>(systems_.size()), stream);
}

template<class Real>
const std::vector<SystemTotals>&
BatchRound<Real>::compute(SystemsOnDevice<Real>* systems,
                          const std::vector<PlannedSystem>& planned,
                          bool virials,
                          bool tangents,
                          bool potentials,
                          BatchTargets* to,
                          cudaStream_t stream)
{
    totals_.resize(planned.size());
    layOut(*systems, planned, tangents ? c_tangentSets : 1);
    launch(makeRoom(systems, virials, tangents, to, stream), systems->hasImages(), stream);
    copyAsync(totals_.data(),
              totalsOnDevice_.data(),
              totals_.size(),
              stream,
              "copying totals from the GPU");
    check(cudaStreamSynchronize(stream), "sums of systems");
    for (size_t k = 0; k < planned.size(); k++)
    {
        if (totals_[k].contacts > 0)
        {
            const SystemSums& s = systems_[k];
            withSystemNamed(s.system,
                            [&] {
                                systems->refuseContacts(s.system,
                                                        contacts_.data(),
                                                        std::sqrt(s.contact),
                                                        potentials,
                                                        stream);
                            });
        }
    }
    return totals_;
}

template class BatchRound<float>;
template class BatchRound<double>;

} // namespace farfield
