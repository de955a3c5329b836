/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near/near_functions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cells/grid.h"
#include "near/near.h"
#include "near/near_functions.cuh"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;
//! So many lanes share the farther cells of a particle.
constexpr int c_lanes = 8;

template<class Real>
__global__ void __launch_bounds__(c_threads)
        sortTerms(const SortedParticles<Real> particles, const Real* terms, Real* sorted)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < particles.n)
    {
        sorted[i] = terms[particles.atom[i]];
    }
}

template<class Real>
struct FartherTask
{
    SortedParticles<Real> particles;
    FartherCells cells;
    Real edges[3][3];
    NearFunctionView<Real> functions;
    Real4<Real>* forces;
    NearTotals* totals;
    OrderedSums::View sums;
};

/*! \brief Forces of the pairs of a particle; both particles of a pair do the same. */
template<class Real, NearSums Sums>
__global__ void __launch_bounds__(c_threads)
        fartherKernel(const __grid_constant__ FartherTask<Real> task)
{
    constexpr bool c_energy = Sums != NearSums::None;
    constexpr bool c_virial = Sums == NearSums::EnergyAndVirial;
    constexpr int c_ofWarp = c_warp / c_lanes, c_ofBlock = c_threads / c_lanes;
    double sums[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    // particles of whole warps, as lanes exchange their sums
    const int all  = (task.particles.n + c_ofWarp - 1) / c_ofWarp * c_ofWarp;
    const int lane = static_cast<int>(threadIdx.x) % c_lanes;
    for (int i = static_cast<int>(blockIdx.x) * c_ofBlock + static_cast<int>(threadIdx.x) / c_lanes;
         i < all;
         i += static_cast<int>(gridDim.x) * c_ofBlock)
    {
        Real F[3] = { 0, 0, 0 };
        if (i < task.particles.n)
        {
            const Real4<Real> a  = load(task.particles.xq + i);
            const Real own       = task.functions.terms[i];
            const auto ofPartner = [&](int j, Real shiftX, Real shiftY, Real shiftZ)
            {
                const Real4<Real> s = load(task.particles.xq + j);
                const Real d[3]     = { a.x - (s.x + shiftX),
                                        a.y - (s.y + shiftY),
                                        a.z - (s.z + shiftZ) };
                const Real r2       = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                const auto pair = correctionOf(task.functions, r2, own, task.functions.terms[j]);
                const Real qq   = a.w * s.w;
                const Real f    = qq * pair.slope;
                for (int k = 0; k < 3; k++)
                {
                    F[k] += f * d[k];
                }
                // half of the pair; the other half is its partner's
                if (c_energy)
                {
                    sums[0] += 0.5 * static_cast<double>(qq * pair.value);
                }
                if (c_virial)
                {
                    sums[1] -= 0.25 * static_cast<double>(d[0] * (f * d[0]));
                    sums[2] -= 0.25 * static_cast<double>(d[1] * (f * d[1]));
                    sums[3] -= 0.25 * static_cast<double>(d[2] * (f * d[2]));
                    sums[4] -= 0.25 * static_cast<double>(d[0] * (f * d[1]));
                    sums[5] -= 0.25 * static_cast<double>(d[0] * (f * d[2]));
                    sums[6] -= 0.25 * static_cast<double>(d[1] * (f * d[2]));
                    sums[7] += 0.25 * static_cast<double>(qq * pair.excess);
                }
            };
            forFarther(task.cells,
                       task.particles,
                       task.edges,
                       task.particles.cell[i],
                       lane,
                       c_lanes,
                       ofPartner);
        }
#pragma unroll
        for (int offset = 1; offset < c_lanes; offset *= 2)
        {
            for (int k = 0; k < 3; k++)
            {
                F[k] += __shfl_xor_sync(0xffffffffU, F[k], offset);
            }
        }
        if (i < task.particles.n && lane == 0)
        {
            task.forces[i].x += F[0];
            task.forces[i].y += F[1];
            task.forces[i].z += F[2];
        }
    }
    if (c_energy)
    {
        double* to[8] = { &task.totals->energy };
        for (int k = 0; k < 6; k++)
        {
            to[1 + k] = &task.totals->virial[k];
        }
        to[7] = &task.totals->excess;
        addInOrder<c_virial ? 8 : 1>(sums, task.sums, to);
    }
}

} // namespace

FartherCells
FartherCells::of(const CellGrid& grid, const Mat3& edges, Boundary boundary, int ws, double range)
{
    // as in surelyNear(), a hundredth is left for rounding
    constexpr double c_margin = 1.01;
    FartherCells cells        = {};
    cells.grid                = grid;
    cells.ws                  = ws;
    copyTo(edges, cells.edges);
    const Mat3 inverse = edges.inverse();
    double diagonal    = 0;
    for (int corner = 0; corner < 4; corner++)
    {
        const Vec3 across(1, (corner & 1) != 0 ? 1 : -1, (corner & 2) != 0 ? 1 : -1);
        diagonal = std::max(diagonal, (edges.transpose() * across).norm());
    }
    for (int k = 0; k < 3; k++)
    {
        // without images no box bounds the range
        const double reach = std::floor(c_margin * range * inverse.col(k).norm()) + 1;
        cells.reach[k] =
                isOpenAlong(boundary, k)
                        ? static_cast<int>(std::min<double>(reach, mostApart(grid.H[k][k])))
                        : static_cast<int>(reach);
    }
    const double farthest = c_margin * (range + diagonal);
    cells.farthest2       = static_cast<float>(farthest * farthest);
    return cells;
}

template<class Real>
void DeviceNearFunctions<Real>::set(const NearPairs<Real>& pairs, cudaStream_t stream)
{
    NearFunctionView<Real> view = {};
    if (pairs.any())
    {
        view.function = pairs.function.function;
        view.rule     = pairs.function.rule;
        view.range2   = static_cast<Real>(pairs.range * pairs.range);
        std::vector<Real> terms(pairs.widths.size());
        std::transform(pairs.widths.begin(),
                       pairs.widths.end(),
                       terms.begin(),
                       [&](Real width) { return view.term(width); });
        sorted_.resize(terms.size());
        terms_.upload(terms.data(), terms.size(), stream);
        view.terms = terms_.data();
    }
    given_ = view;
    range_ = pairs.range;
}

template<class Real>
void DeviceNearFunctions<Real>::sort(const SortedParticles<Real>& particles, cudaStream_t stream)
{
    if (any() && particles.n > 0)
    {
        sortTerms<Real><<<blocksFor(particles.n, c_threads), c_threads, 0, stream>>>(
                particles, terms_.data(), sorted_.data());
        checkLaunch("sorting widths");
    }
}

template<class Real>
void addFarther(const DeviceNearTask<Real>& near,
                const FartherCells& cells,
                Real4<Real>* forces,
                cudaStream_t stream)
{
    if (!near.functions.any() || !cells.any() || near.particles.n == 0)
    {
        return;
    }
    FartherTask<Real> task = {};
    task.particles         = near.particles;
    task.cells             = cells;
    copyTo(near.edges, task.edges);
    task.functions = near.functions;
    task.forces    = forces;
    task.totals    = near.results.totals;
    if (near.results.wanted != NearSums::None)
    {
        task.sums = near.results.scratch->view();
    }
    const int blocks = blocksFor(static_cast<long long>(near.particles.n) * c_lanes, c_threads);
    const int capped = std::min(blocks, OrderedSums::c_maxBlocks);
    switch (near.results.wanted)
    {
        case NearSums::None:
            fartherKernel<Real, NearSums::None><<<blocks, c_threads, 0, stream>>>(task);
            break;
        case NearSums::Energy:
            fartherKernel<Real, NearSums::Energy><<<capped, c_threads, 0, stream>>>(task);
            break;
        case NearSums::EnergyAndVirial:
            fartherKernel<Real, NearSums::EnergyAndVirial><<<capped, c_threads, 0, stream>>>(task);
            break;
    }
    checkLaunch("near functions of farther cells");
}

template class DeviceNearFunctions<float>;
template class DeviceNearFunctions<double>;
template decltype(addFarther<float>) addFarther<float>;
template decltype(addFarther<double>) addFarther<double>;

} // namespace farfield
