/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/cell_products.h"

#include <algorithm>

#include <cuda_pipeline.h>

#include "cells/grid.h"
#include "cells/interaction_list.h"
#include "pair_kernels/product_tiles.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads = c_productThreads, c_cells = c_productCells;
//! Parts of operators and sources in shared memory: one in use, the others on their way.
constexpr int c_stages = 3;
//! Steps whose sources are known, more than parts on their way.
constexpr int c_ahead = 8;
//! Of an octant, with a direct range of 2.
constexpr int c_mostSteps = 875;
//! Of a launch.
constexpr int c_mostLevels = 21;

enum class TreeStep
{
    ToParents,
    OverLists,
    ToChildren
};

template<class Real>
struct LaunchedLevel
{
    ProductOfLevel<Real> of;
    int firstBlock, firstCell;
};

template<class Real>
struct Products
{
    ProductShape shape;
    int levels;
    int nearCells;    //!< of a cell
    const int* steps; //!< see StepsOfLists
    int stepsStart[9];
    int parts;     //!< blocks that share the steps of some cells
    int cells;     //!< of all levels
    Real* partial; //!< [parts][cells][stride], of several parts
    LaunchedLevel<Real> level[c_mostLevels];
};

//! A step as an integer.
constexpr int packedStep(int op, int near, int octant)
{
    return op | near << 12 | octant << 20;
}

//! Shared memory of a block beside that of parts, at most.
constexpr size_t c_staticBytes = 5200;
//! Shared memory of a part.
template<class Tile>
FARFIELD_HD constexpr size_t stageBytes(int depth)
{
    return sizeof(typename Tile::Real)
           * (depth * Tile::c_columnStride + c_cells * Tile::cellStride(depth));
}

//! The source of a target in a step, -1 for none.
template<TreeStep kind, class Real>
__device__ __forceinline__ int
sourceOf(const Products<Real>& products, const ProductOfLevel<Real>& level, int target, int step)
{
    if constexpr (kind == TreeStep::ToParents)
    {
        return level.cells.child(target, step);
    }
    else if constexpr (kind == TreeStep::ToChildren)
    {
        return level.cells.parent[target];
    }
    else
    {
        const int packed = products.steps[step];
        const int parent = level.cells.parent[target];
        const int near   = level.coarser.near[static_cast<size_t>(parent) * products.nearCells
                                            + (packed >> 12 & 255)];
        return near < 0 ? -1 : level.coarser.child(near, packed >> 20);
    }
}

template<TreeStep kind, class Real>
__device__ __forceinline__ int operatorOf(const Products<Real>& products, int step)
{
    return kind == TreeStep::OverLists ? products.steps[step] & 4095 : step;
}

template<TreeStep kind, class Tile>
__global__ void __launch_bounds__(c_threads)
        productKernel(const __grid_constant__ Products<typename Tile::Real> products)
{
    using Real             = typename Tile::Real;
    constexpr int c_vector = Vector16<Real>::c_size;
    constexpr int c_rows   = Tile::c_rows;
    static_assert(c_stages < c_ahead, "sources are known before they are loaded");
    extern __shared__ __align__(16) unsigned char memory[];
    const int depth       = products.shape.depth;
    const int cellStride  = Tile::cellStride(depth);
    const auto operatorAt = [&](int stage)
    { return reinterpret_cast<Real*>(memory + stage * stageBytes<Tile>(depth)); };
    const auto sourcesAt = [&](int stage)
    { return operatorAt(stage) + depth * Tile::c_columnStride; };
    __shared__ int targets[c_cells], sources[c_ahead][c_cells];
    __shared__ unsigned short steps[c_mostSteps + 1];
    __shared__ unsigned char isStep[c_mostSteps + 1];
    __shared__ int stepCount;

    const int thread = threadIdx.x;
    int l            = products.levels - 1;
    while (products.level[l].firstBlock > static_cast<int>(blockIdx.x))
    {
        l--;
    }
    const ProductOfLevel<Real>& level = products.level[l].of;
    int block                         = blockIdx.x - products.level[l].firstBlock;
    // the cells of this block
    int octant = 0, first = block * c_cells, end = level.cells.count;
    if constexpr (kind != TreeStep::ToParents)
    {
        for (; octant < 8; octant++)
        {
            first            = level.cells.octantStart[octant];
            end              = level.cells.octantStart[octant + 1];
            const int blocks = (end - first + c_cells - 1) / c_cells;
            if (block < blocks)
            {
                first += block * c_cells;
                break;
            }
            block -= blocks;
        }
        if (octant == 8)
        {
            return;
        }
    }
    if (thread < c_cells)
    {
        const int i = first + thread;
        targets[thread] =
                i >= end ? -1 : (kind == TreeStep::ToParents ? i : level.cells.ofOctant[i]);
    }
    __syncthreads();

    // the steps for which any cell has a source
    const int firstStep = kind == TreeStep::OverLists    ? products.stepsStart[octant]
                          : kind == TreeStep::ToChildren ? octant
                                                         : 0;
    const int allSteps  = kind == TreeStep::OverLists ? products.stepsStart[octant + 1] - firstStep
                          : kind == TreeStep::ToChildren ? 1
                                                         : 8;
    const auto source   = [&](int cell, int step)
    {
        return targets[cell] < 0 ? -1
                                 : sourceOf<kind>(products, level, targets[cell], firstStep + step);
    };
    const int lane = thread % 32;
    for (int s = thread / 32; s < allSteps; s += c_threads / 32)
    {
        const bool has = source(lane, s) >= 0 || source(lane + 32, s) >= 0;
        const bool any = __any_sync(0xffffffffU, has);
        if (lane == 0)
        {
            isStep[s] = any ? 1 : 0;
        }
    }
    __syncthreads();
    if (thread < 32)
    {
        int count = 0;
        for (int base = 0; base < allSteps; base += 32)
        {
            const bool is            = base + lane < allSteps && isStep[base + lane] != 0;
            const unsigned int which = __ballot_sync(0xffffffffU, is);
            if (is)
            {
                steps[count + __popc(which & ((1U << lane) - 1))] =
                        static_cast<unsigned short>(base + lane);
            }
            count += __popc(which);
        }
        if (lane == 0)
        {
            stepCount = count;
        }
    }
    __syncthreads();
    // those of this block
    const int share   = blockIdx.z;
    const int count   = (stepCount - share + products.parts - 1) / products.parts;
    const auto stepAt = [&](int s) { return static_cast<int>(steps[s * products.parts + share]); };

    const auto findSources = [&](int s)
    {
        if (thread < c_cells && s < count)
        {
            sources[s % c_ahead][thread] = source(thread, stepAt(s));
        }
    };
    for (int s = 0; s < c_ahead - 1; s++)
    {
        findSources(s);
    }
    __syncthreads();

    const int parts = (products.shape.stride + depth - 1) / depth;
    const int total = count * parts;
    const int row0  = blockIdx.y * c_rows;
    int loadedStep = 0, loadedPart = 0;
    const auto loadNext = [&](int stage)
    {
        if (loadedStep < count)
        {
            const int op    = operatorOf<kind>(products, firstStep + stepAt(loadedStep));
            const int begin = loadedPart * depth;
            const int size  = min(depth, products.shape.stride - begin);
            const Real* T   = level.T + op * products.shape.size()
                            + static_cast<size_t>(begin) * products.shape.rows + row0;
            constexpr int c_perRow = c_rows / c_vector;
            for (int k = thread; k < size * c_perRow; k += c_threads)
            {
                const int column = k / c_perRow, at = k % c_perRow * c_vector;
                __pipeline_memcpy_async(operatorAt(stage) + column * Tile::c_columnStride + at,
                                        T + static_cast<size_t>(column) * products.shape.rows + at,
                                        16);
            }
            const int perCell = size / c_vector;
            for (int k = thread; k < c_cells * perCell; k += c_threads)
            {
                const int cell = k / perCell, at = k % perCell * c_vector;
                const int from = sources[loadedStep % c_ahead][cell];
                __pipeline_memcpy_async(
                        sourcesAt(stage) + cell * cellStride + at,
                        level.from + static_cast<size_t>(max(from, 0)) * products.shape.stride
                                + begin + at,
                        16,
                        from < 0 ? 16 : 0);
            }
            if (++loadedPart == parts)
            {
                loadedPart = 0;
                loadedStep++;
            }
        }
        __pipeline_commit();
    };
    for (int stage = 0; stage < c_stages - 1; stage++)
    {
        loadNext(stage);
    }
    Tile tile;
    int step = 0, part = 0, stage = 0;
    for (int it = 0; it < total; it++)
    {
        __pipeline_wait_prior(c_stages - 2);
        __syncthreads();
        loadNext((stage + c_stages - 1) % c_stages);
        if (part == 0)
        {
            findSources(step + c_ahead - 1);
        }
        tile.multiply(operatorAt(stage),
                      sourcesAt(stage),
                      cellStride,
                      min(depth, products.shape.stride - part * depth));
        stage = (stage + 1) % c_stages;
        if (++part == parts)
        {
            tile.finishOperator();
            part = 0;
            step++;
        }
    }
    tile.forEach(
            [&](int row, int cell, Real sum)
            {
                const int target = targets[cell];
                const int at     = row0 + row;
                if (target < 0 || at >= products.shape.coefficients)
                {
                    return;
                }
                Real* to = level.to + static_cast<size_t>(target) * products.shape.stride + at;
                if (products.parts > 1)
                {
                    const size_t place = static_cast<size_t>(share) * products.cells
                                         + products.level[l].firstCell + target;
                    to = products.partial + place * products.shape.stride + at;
                }
                *to = (kind == TreeStep::ToChildren ? *to : Real(0)) + sum;
            });
}

//! Sums of all parts.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        partKernel(const __grid_constant__ Products<Real> products)
{
    const ProductShape& shape = products.shape;
    const size_t i            = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x;
    const int cell            = static_cast<int>(i / shape.stride);
    const int a               = static_cast<int>(i % shape.stride);
    if (cell >= products.cells || a >= shape.coefficients)
    {
        return;
    }
    int l = products.levels - 1;
    while (products.level[l].firstCell > cell)
    {
        l--;
    }
    Real sum = 0;
    for (int part = 0; part < products.parts; part++)
    {
        sum += products.partial[(static_cast<size_t>(part) * products.cells + cell) * shape.stride
                                + a];
    }
    products.level[l]
            .of.to[static_cast<size_t>(cell - products.level[l].firstCell) * shape.stride + a] =
            sum;
}

template<TreeStep kind, class Tile>
void launch(const Products<typename Tile::Real>& products, int blocks, cudaStream_t stream)
{
    const dim3 grid(blocks, products.shape.rows / Tile::c_rows, products.parts);
    // the same for every shape: another evaluation may have launches of this kernel, too
    constexpr size_t c_most = c_stages * stageBytes<Tile>(Tile::c_mostDepth);
    static_assert(c_most + c_staticBytes <= 65536, "what the oldest architecture has");
    check(cudaFuncSetAttribute(productKernel<kind, Tile>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(c_most)),
          "asking for shared memory");
    const size_t bytes = c_stages * stageBytes<Tile>(products.shape.depth);
    productKernel<kind, Tile><<<grid, c_threads, bytes, stream>>>(products);
}
template<TreeStep kind>
void launch(const Products<float>& products, int blocks, cudaStream_t stream)
{
    const bool isLarge = products.shape.tile == 64;
    if (products.shape.isRounded)
    {
        isLarge ? launch<kind, TensorTile<2, true>>(products, blocks, stream)
                : launch<kind, TensorTile<1, true>>(products, blocks, stream);
    }
    else
    {
        isLarge ? launch<kind, TensorTile<2, false>>(products, blocks, stream)
                : launch<kind, TensorTile<1, false>>(products, blocks, stream);
    }
}
template<TreeStep kind>
void launch(const Products<double>& products, int blocks, cudaStream_t stream)
{
    products.shape.tile == 64   ? launch<kind, PlainTile<8, double>>(products, blocks, stream)
    : products.shape.tile == 48 ? launch<kind, PlainTile<6, double>>(products, blocks, stream)
                                : launch<kind, PlainTile<4, double>>(products, blocks, stream);
}

template<TreeStep kind, class Real>
void launch(const ProductShape& shape,
            const StepsOfLists* steps,
            int ws,
            const std::vector<ProductOfLevel<Real>>& levels,
            PartialSums<Real>* partial,
            cudaStream_t stream)
{
    const int width = 2 * ws + 1;
    Products<Real> products{ shape, 0, width * width * width, nullptr, {}, 1, 0, nullptr, {} };
    if (steps != nullptr)
    {
        products.steps = steps->steps();
        std::copy(steps->start().begin(), steps->start().end(), products.stepsStart);
    }
    int blocks = 0;
    for (const ProductOfLevel<Real>& level : levels)
    {
        if (level.cells.count > 0)
        {
            products.level[products.levels++] = { level, blocks, products.cells };
            products.cells += level.cells.count;
            // of each octant the last block may not be full
            blocks += blocksFor(level.cells.count, c_cells) + (kind == TreeStep::ToParents ? 0 : 8);
        }
    }
    if (blocks == 0)
    {
        return;
    }
    if (partial != nullptr)
    {
        // where there are few cells, several blocks share their steps, so that no processor waits for the last ones
        constexpr int c_most = 8, c_perProcessor = 16;
        const int usual = c_perProcessor * deviceAttribute(cudaDevAttrMultiProcessorCount);
        const int all   = blocks * (shape.rows / shape.tile);
        products.parts  = std::clamp(usual / all, 1, c_most);
        if (products.parts > 1)
        {
            partial->resize(static_cast<size_t>(products.parts) * products.cells * shape.stride);
            products.partial = partial->data();
        }
    }
    launch<kind>(products, blocks, stream);
    checkLaunch("multiplying expansions");
    if (products.parts > 1)
    {
        const long long all = static_cast<long long>(products.cells) * shape.stride;
        partKernel<Real><<<blocksFor(all, c_threads), c_threads, 0, stream>>>(products);
        checkLaunch("adding parts");
    }
}

} // namespace

ProductShape::ProductShape(int count, bool isSingle, bool mayRound) :
    coefficients(count), tile(0), rows(0), isRounded(isSingle && mayRound)
{
    const int step = isSingle ? TensorTile<1, true>::c_step : PlainTile<4, double>::c_step;
    const int most =
            isSingle ? TensorTile<1, true>::c_mostDepth : PlainTile<4, double>::c_mostDepth;
    stride          = (count + step - 1) / step * step;
    const int parts = (stride + most - 1) / most;
    depth           = ((stride + parts - 1) / parts + step - 1) / step * step;
    // the fewest rows that are padding
    for (const int ofBlock : { 64, 48, 32 })
    {
        const int padded = (count + ofBlock - 1) / ofBlock * ofBlock;
        if ((rows == 0 || padded < rows) && (ofBlock != 48 || !isSingle))
        {
            tile = ofBlock;
            rows = padded;
        }
    }
}

void StepsOfLists::set(int ws, cudaStream_t stream)
{
    std::vector<int> all;
    const std::vector<ListDisplacement> list = interactionList(ws);
    for (int octant = 0; octant < 8; octant++)
    {
        start_[octant] = static_cast<int>(all.size());
        for (size_t op = 0; op < list.size(); op++)
        {
            if (list[op].from[octant])
            {
                const Int3& D     = list[op].D;
                const Int3 source = { (octant & 1) - D[0],
                                      (octant >> 1 & 1) - D[1],
                                      (octant >> 2) - D[2] };
                const Int3 parent = parentOf(source);
                all.push_back(packedStep(static_cast<int>(op),
                                         nearPlace(ws, parent[0], parent[1], parent[2]),
                                         octantOf(source)));
            }
        }
    }
    start_[8] = static_cast<int>(all.size());
    steps_.upload(all.data(), all.size(), stream);
}

template<class Real>
void toParents(const ProductShape& shape, const ProductOfLevel<Real>& level, cudaStream_t stream)
{
    launch<TreeStep::ToParents, Real>(shape, nullptr, 1, { level }, nullptr, stream);
}

template<class Real>
void overLists(const ProductShape& shape,
               const StepsOfLists& steps,
               int ws,
               const std::vector<ProductOfLevel<Real>>& levels,
               PartialSums<Real>* partial,
               cudaStream_t stream)
{
    launch<TreeStep::OverLists, Real>(shape, &steps, ws, levels, partial, stream);
}

template<class Real>
void toChildren(const ProductShape& shape, const ProductOfLevel<Real>& level, cudaStream_t stream)
{
    launch<TreeStep::ToChildren, Real>(shape, nullptr, 1, { level }, nullptr, stream);
}

template void toParents(const ProductShape&, const ProductOfLevel<float>&, cudaStream_t);
template void toParents(const ProductShape&, const ProductOfLevel<double>&, cudaStream_t);
template void overLists(const ProductShape&,
                        const StepsOfLists&,
                        int,
                        const std::vector<ProductOfLevel<float>>&,
                        PartialSums<float>*,
                        cudaStream_t);
template void overLists(const ProductShape&,
                        const StepsOfLists&,
                        int,
                        const std::vector<ProductOfLevel<double>>&,
                        PartialSums<double>*,
                        cudaStream_t);
template void toChildren(const ProductShape&, const ProductOfLevel<float>&, cudaStream_t);
template void toChildren(const ProductShape&, const ProductOfLevel<double>&, cudaStream_t);

} // namespace farfield
