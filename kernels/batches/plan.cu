/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Plans of the sums of systems, a warp a system.
 */
#include <cfloat>
#include <cmath>
#include <type_traits>

#include <cub/block/block_scan.cuh>

#include "batch/places.h"
#include "batch/wave_ball.h"
#include "batches/batch_warp.cuh"
#include "batches/device_plan.h"
#include "runtime/device.h"

namespace farfield
{
namespace
{

//! Threads of a block that looks at all systems.
constexpr int c_listThreads = 512;

//! The part of count items that a thread of a single block has.
struct Share
{
    __device__ explicit Share(int count)
    {
        const int each = (count + c_listThreads - 1) / c_listThreads;
        first          = min(count, static_cast<int>(threadIdx.x) * each);
        last           = min(count, first + each);
    }
    int first, last;
};

//! One block. First those that are measured, as ~system: their sums are longer. Then all.
__global__ void __launch_bounds__(c_listThreads)
        listSystemsOf(SystemArrays systems, MeasuredSystems measured, int* list)
{
    using Scan = cub::BlockScan<int2, c_listThreads>;
    __shared__ typename Scan::TempStorage space;
    const Share share(isRefused(*systems.status) ? 0 : systems.count);
    const auto isLeft     = [&](int s) { return systems.isLeft[s] != 0; };
    const auto isMeasured = [&](int s) { return isLeft(s) && measured.has(s); };
    int2 own              = { 0, 0 };
    for (int s = share.first; s < share.last; s++)
    {
        own.x += isMeasured(s) ? 1 : 0;
        own.y += isLeft(s) ? 1 : 0;
    }
    int2 to = { 0, 0 }, all = { 0, 0 };
    const auto add = [](int2 a, int2 b) { return int2{ a.x + b.x, a.y + b.y }; };
    Scan(space).ExclusiveScan(own, to, int2{ 0, 0 }, add, all);
    for (int s = share.first; s < share.last; s++)
    {
        if (isMeasured(s))
        {
            list[to.x++] = ~s;
        }
        if (isLeft(s))
        {
            list[all.x + to.y++] = s;
        }
    }
    if (threadIdx.x == 0)
    {
        systems.status->listed = all.x + all.y;
        systems.status->left   = all.y;
    }
}

//! A number of waves, filled up to a multiple of c_wavesOfTile.
__device__ __forceinline__ int filledUp(int waves)
{
    return (waves + c_wavesOfTile - 1) / c_wavesOfTile * c_wavesOfTile;
}

//! What the columns of a system have in all.
struct ColumnTotals
{
    int columns, waves, range[3];
};

//! The sum over the lanes up to this one.
__device__ __forceinline__ int sumUpTo(int lane, int value)
{
    for (int offset = 1; offset < c_tile; offset *= 2)
    {
        const int other = __shfl_up_sync(c_allLanes, value, offset);
        value += lane >= offset ? other : 0;
    }
    return value;
}

// Two kernels find the columns of a system. What is not inlined rounds alike in both.
__device__ __noinline__ WaveBall ballOf(const double* waves, double waveCutoff)
{
    return WaveBall(waves, waveCutoff);
}
__device__ __noinline__ int lastOf(const WaveBall& ball, int h, int k)
{
    return ball.lastOf(h, k);
}

//! Calls use(number, column) for all columns of a ball, each in one lane of the warp; see WaveColumns.
template<class Use>
__device__ ColumnTotals forColumns(const WaveBall& ball, int lane, const Use& use)
{
    ColumnTotals totals = {};
    const int row       = ball.most[1] + 1;
    const int all       = (ball.most[0] + 1) * row;
    for (int first = 0; first < all; first += c_tile)
    {
        const int h = (first + lane) / row, k = (first + lane) % row;
        const int last           = first + lane < all ? lastOf(ball, h, k) : -1;
        const unsigned int there = __ballot_sync(c_allLanes, last >= 0);
        const int own            = filledUp(last + 1);
        const int upTo           = sumUpTo(lane, own);
        if (last >= 0)
        {
            use(totals.columns + __popc(there & ((1U << lane) - 1)),
                WaveColumn{ h, k, last, totals.waves + upTo - own });
            totals.range[0] = max(totals.range[0], h);
            totals.range[1] = max(totals.range[1], k);
            totals.range[2] = max(totals.range[2], last);
        }
        totals.columns += __popc(there);
        totals.waves += __shfl_sync(c_allLanes, upTo, c_tile - 1);
    }
    for (int& range : totals.range)
    {
        range = -warpLeast(-range);
    }
    return totals;
}

__device__ __forceinline__ int partsOf(int count, int ofBlock)
{
    return (count + ofBlock - 1) / ofBlock;
}

//! Cut-offs of a periodic system, and how many waves it has. \returns whether they are too long
template<class Real>
__device__ bool planPeriodic(const CompactBox& box,
                             const BatchOptions& options,
                             const EwaldPlan& plan,
                             int lane,
                             SystemSums* s)
{
    s->splitting  = plan.splitting;
    s->cutoff     = plan.cutoff;
    s->waveCutoff = plan.waveCutoff;
    for (int k = 0; k < 9; k++)
    {
        s->inverse[k] = box.inverse[k];
        s->waves[k]   = 2 * M_PI * box.inverse[3 * (k % 3) + k / 3];
    }
    const EwaldConstants constants = constantsOf(options, plan, box.volume);
    s->self                        = constants.self;
    s->background                  = constants.background;
    s->scale                       = 4 * M_PI * options.coulombConstant / box.volume;
    if (std::is_integral<typename PlaceOfImage<Real>::Type>::value)
    {
        // no difference of partners is too large an integer
        s->unit = extentOf(box, plan.cutoff, 1, 2) / c_largestDifference;
    }
    for (int k = 0; k < 9; k++)
    {
        s->vectors[k] = box.vectors[k] / s->unit;
    }
    for (int k = 0; k < 3; k++)
    {
        s->margin[k] = plan.cutoff / box.heights[k];
    }
    constexpr double c_epsilon = sizeof(Real) == 4 ? FLT_EPSILON : DBL_EPSILON;
    const double rounding      = placesRounding(box, plan.cutoff, c_epsilon);
    s->contact                 = rounding * rounding;
    const WaveBall ball        = ballOf(s->waves, plan.waveCutoff);
    // written so that NaN fails
    if (!(imagesWithin(box, plan.cutoff, s->n) < c_mostImages) || !(ball.waves < c_mostWaves))
    {
        return true;
    }
    const ColumnTotals totals = forColumns(ball, lane, [](int, const WaveColumn&) {});
    s->columns                = totals.columns;
    s->waveCount              = totals.waves;
    for (int k = 0; k < 3; k++)
    {
        s->range[k] = totals.range[k];
    }
    return false;
}

//! Parts of a system, of blocks of each kind.
__device__ void findBlocks(SystemSums* s)
{
    s->blocks[OfParticles] = partsOf(s->n, c_batchThreads);
    if (!s->hasImages || s->cutoff > 0)
    {
        s->blocks[OfTargets] = partsOf(s->n, c_targetsOfBlock);
    }
    if (s->hasImages)
    {
        s->blocks[OfFactors] = s->chunks * partsOf(s->waveCount, c_factorThreads * c_wavesOfTile);
        s->blocks[OfWeights] = partsOf(s->columns * (s->range[2] + 1), c_batchThreads);
        s->blocks[OfFields]  = partsOf(s->n, c_fieldParticles);
    }
}

//! A warp a system of the list.
template<class Real>
__global__ void
planListedOf(SystemArrays systems, BatchOptions options, const int* list, SystemSums* sums)
{
    const int k    = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / c_tile);
    const int lane = static_cast<int>(threadIdx.x) % c_tile;
    if (k >= systems.status->listed)
    {
        return;
    }
    SystemSums s          = {};
    s.isDetour            = list[k] < 0 ? 1 : 0;
    s.system              = s.isDetour != 0 ? ~list[k] : list[k];
    const SystemInBox& in = systems.inBox[s.system];
    s.first               = in.first;
    s.n                   = in.n;
    s.hasImages           = systems.hasImages;
    s.unit                = 1;
    s.tiles               = partsOf(s.n, c_tile);
    s.chunks              = partsOf(s.n, c_chunk);
    for (int m = 0; m < 9; m++)
    {
        s.strain[m] = in.strain[m];
    }
    bool isTooLong = false;
    if (s.hasImages)
    {
        const EwaldPlan plan = planFor(options,
                                       systems.traits[s.system],
                                       systems.errors[s.system],
                                       s.isDetour != 0 ? c_detour : 1,
                                       c_pairCostOfGpus<Real>);
        isTooLong            = planPeriodic<Real>(systems.boxes[s.system], options, plan, lane, &s);
    }
    if (!isTooLong)
    {
        findBlocks(&s);
    }
    if (lane == 0)
    {
        sums[k] = s;
        atomicMax(&systems.status->phases, phasesOfParticle(s));
        if (isTooLong)
        {
            atomicMin(&systems.status->tooLong, s.system);
        }
    }
}

struct AddSizes
{
    __device__ __forceinline__ BatchSizes operator()(BatchSizes a, const BatchSizes& b) const
    {
        a.tiles += b.tiles;
        a.columns += b.columns;
        a.phases += b.phases;
        a.factors += b.factors;
        for (int kind = 0; kind < BlockKinds; kind++)
        {
            a.blocks[kind] += b.blocks[kind];
        }
        return a;
    }
};

__device__ __forceinline__ BatchSizes sizesOf(const SystemSums& s, int tables)
{
    BatchSizes sizes;
    sizes.tiles   = s.tiles;
    sizes.columns = s.columns;
    sizes.phases  = s.hasImages ? 2LL * s.n * phasesOfParticle(s) : 0;
    sizes.factors = static_cast<long long>(tables) * s.chunks * s.waveCount * WaveProducts;
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        sizes.blocks[kind] = s.blocks[kind];
    }
    return sizes;
}

//! One block: where each system begins.
__global__ void __launch_bounds__(c_listThreads)
        layOutOf(SystemSums* sums, int tables, BatchStatus* status)
{
    using Scan = cub::BlockScan<BatchSizes, c_listThreads, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ typename Scan::TempStorage space;
    const Share share(status->listed);
    const AddSizes add;
    BatchSizes own = {};
    for (int k = share.first; k < share.last; k++)
    {
        own = add(own, sizesOf(sums[k], tables));
    }
    BatchSizes before = {}, all = {};
    Scan(space).ExclusiveScan(own, before, BatchSizes{}, add, all);
    for (int k = share.first; k < share.last; k++)
    {
        SystemSums& s = sums[k];
        s.firstTile   = static_cast<int>(before.tiles);
        s.firstColumn = static_cast<int>(before.columns);
        s.firstPhase  = before.phases;
        s.firstSum    = before.factors;
        for (int kind = 0; kind < BlockKinds; kind++)
        {
            s.firstBlock[kind] = before.blocks[kind];
        }
        before = add(before, sizesOf(s, tables));
    }
    if (threadIdx.x == 0)
    {
        status->sizes    = all;
        status->computed = 0;
    }
}

//! Where blocks of all kinds are.
struct BlockLists
{
    BlockPart* of[BlockKinds];
};

//! Whether there is room for the sums of a system, and so for those before it.
__device__ bool fitsInto(const BatchSizes& room, const SystemSums& s, int tables)
{
    const BatchSizes sizes = sizesOf(s, tables);
    bool fits              = s.firstTile + sizes.tiles <= room.tiles
                && s.firstColumn + sizes.columns <= room.columns
                && s.firstPhase + sizes.phases <= room.phases
                && s.firstSum + sizes.factors <= room.factors;
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        fits = fits && s.firstBlock[kind] + sizes.blocks[kind] <= room.blocks[kind];
    }
    return fits;
}

//! A warp a system.
__global__ void fillPlansOf(const SystemSums* sums,
                            int tables,
                            BatchStatus* status,
                            BatchSizes room,
                            WaveColumn* columns,
                            BlockLists blocks)
{
    const int thread  = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int index   = thread / c_tile;
    const int lane    = static_cast<int>(threadIdx.x) % c_tile;
    const bool isDone = isRefused(*status);
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        for (int part = (isDone ? 0 : status->sizes.blocks[kind]) + thread;
             part < room.blocks[kind];
             part += static_cast<int>(gridDim.x * blockDim.x))
        {
            blocks.of[kind][part] = c_noPart;
        }
    }
    if (isDone || index >= status->listed)
    {
        return;
    }
    const SystemSums& s = sums[index];
    const bool fits     = fitsInto(room, s, tables);
    for (int kind = 0; kind < BlockKinds; kind++)
    {
        const int first = s.firstBlock[kind];
        const int last  = min(first + s.blocks[kind], room.blocks[kind]);
        for (int at = first + lane; at < last; at += c_tile)
        {
            blocks.of[kind][at] = fits ? BlockPart{ index, at - first } : c_noPart;
        }
    }
    if (!fits)
    {
        return;
    }
    if (lane == 0)
    {
        atomicMax(&status->computed, index + 1);
    }
    if (s.hasImages)
    {
        WaveColumn* const to = columns + s.firstColumn;
        forColumns(ballOf(s.waves, s.waveCutoff),
                   lane,
                   [&](int number, const WaveColumn& column) { to[number] = column; });
    }
}

} // namespace

template<class Real>
void planSystems(const SystemArrays& systems,
                 const BatchOptions& options,
                 const MeasuredSystems& measured,
                 int most,
                 int tables,
                 int* list,
                 SystemSums* sums,
                 cudaStream_t stream)
{
    listSystemsOf<<<1, c_listThreads, 0, stream>>>(systems, measured, list);
    checkLaunch("listing systems");
    if (most > 0)
    {
        planListedOf<Real><<<blocksFor(static_cast<long long>(most) * c_tile, c_batchThreads),
                             c_batchThreads,
                             0,
                             stream>>>(systems, options, list, sums);
        checkLaunch("planning sums");
    }
    layOutOf<<<1, c_listThreads, 0, stream>>>(sums, tables, systems.status);
    checkLaunch("laying out sums");
}

void fillPlans(const SystemSums* sums,
               int tables,
               BatchStatus* status,
               int most,
               const BatchSizes& room,
               WaveColumn* columns,
               BlockPart* const (&blocks)[BlockKinds],
               cudaStream_t stream)
{
    BlockLists lists;
    std::copy_n(blocks, static_cast<int>(BlockKinds), lists.of);
    fillPlansOf<<<blocksFor(static_cast<long long>(most) * c_tile, c_batchThreads),
                  c_batchThreads,
                  0,
                  stream>>>(sums, tables, status, room, columns, lists);
    checkLaunch("writing plans");
}

template decltype(planSystems<float>) planSystems<float>;
template decltype(planSystems<double>) planSystems<double>;

} // namespace farfield
