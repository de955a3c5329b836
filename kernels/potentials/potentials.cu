/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A warp per sorted particle: lanes share the sources of near cells and the excluded partners, and
// take a value of m each of the local expansion.
#include "potentials/potentials.h"

#include <algorithm>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"
#include "near/left_out.cuh"
#include "near/near_cells.cuh"
#include "near/near_functions.cuh"
#include "near/p2p_warp.h"
#include "operators/background.h"
#include "operators/solid_harmonics.h"
#include "runtime/load.cuh"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

template<class Real>
struct PotentialTask
{
    NearCells<Real> near;
    typename DeviceExclusions<Real>::View exclusions;
    NearFunctionView<Real> functions, given; //!< as PotentialInput
    FartherCells farther;
    MinimumImage image;
    Real close2; //!< as P2pArguments
    const Real* x;
    const Real* q;
    int order;
    const Real* L;
    int stride;
    const int* slotOf;
    const Real* scale;
    const Real* beta;
    Real inverseUnit;
    Real curvature;        //!< backgroundCurvature() of the leaves
    double constant;       //!< (2 pi / 3V), times the squares
    const double* squares; //!< sum q |b|^2 about the cells of level 0
    double rootCoulomb;
    const Real* poison;
    Real* potentials;
};

//! Adds q |b|^2, b from the centre of the leaf cell.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        addSquares(const SortedParticles<Real> particles, double* sum, OrderedSums::View sums)
{
    double own = 0;
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < particles.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const Real4<Real> a = load(particles.xq + i);
        const double x = a.x, y = a.y, z = a.z;
        own += static_cast<double>(a.w) * (x * x + y * y + z * z);
    }
    addInOrder<1>(&own, sums, &sum);
}

//! What a lane finds of the near cells of a particle.
template<bool Functions, class Real>
__device__ Real ofNearCells(const PotentialTask<Real>& task, int i, int lane)
{
    const bool careful = task.exclusions.anyClose != nullptr && *task.exclusions.anyClose != 0;
    Real sum           = 0;
    const auto add     = [&](int j, Real charge, const Real(&R)[3], bool isSelf)
    {
        // the tiny term is that of the near field
        const Real r2    = R[0] * R[0] + R[1] * R[1] + R[2] * R[2] + Real(1e-20);
        Real value       = p2pDetail::refined(p2pDetail::inverseRoot(r2), r2);
        const bool isOut = isSelf
                           || (careful && r2 < task.close2
                               && isLeftOut<Real>(task.exclusions,
                                                  task.near.particles.atom[i],
                                                  task.near.particles.atom[j]));
        if constexpr (Functions)
        {
            value = potentialOf(task.functions,
                                r2,
                                value,
                                task.functions.terms[i],
                                task.functions.terms[j])
                            .value;
        }
        sum += isOut ? Real(0) : charge * value;
    };
    task.near.forSources(i, lane, add);
    return sum;
}

//! What a lane finds of the farther cells of a particle, see FartherCells.
template<class Real>
__device__ Real ofFartherCells(const PotentialTask<Real>& task, int i, int lane)
{
    const Real4<Real> a = load(task.near.pairs + i);
    const Real own      = task.functions.terms[i];
    Real sum            = 0;
    forFarther(task.farther,
               task.near.particles,
               task.near.edges,
               task.near.particles.cell[i],
               lane,
               c_warp,
               [&](int j, Real shiftX, Real shiftY, Real shiftZ)
               {
                   const Real4<Real> s = load(task.near.pairs + j);
                   const Real x = a.x - (s.x + shiftX), y = a.y - (s.y + shiftY),
                              z  = a.z - (s.z + shiftZ);
                   const Real r2 = x * x + y * y + z * z;
                   sum += s.w
                          * correctionOf(task.functions, r2, own, task.functions.terms[j]).value;
               });
    return sum;
}

//! What a lane subtracts for excluded partners that the near field does not leave out.
template<bool Functions, class Real>
__device__ Real ofExcluded(const PotentialTask<Real>& task, int atom, int lane)
{
    if (task.exclusions.offsets == nullptr)
    {
        return 0;
    }
    Real sum = 0;
    for (int k = task.exclusions.offsets[atom] + lane; k < task.exclusions.offsets[atom + 1];
         k += c_warp)
    {
        if (task.exclusions.close[k])
        {
            continue;
        }
        const int other = task.exclusions.partners[k];
        double d[3];
        displacementOf(task.x, atom, other, task.image, d);
        const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if constexpr (Functions)
        {
            const auto pair = potentialOf(task.given,
                                          static_cast<Real>(r2),
                                          static_cast<Real>(1 / sqrt(r2)),
                                          task.given.terms[atom],
                                          task.given.terms[other]);
            sum -= task.q[other] * pair.value;
        }
        else
        {
            sum -= task.q[other] / static_cast<Real>(sqrt(r2));
        }
    }
    return sum;
}

//! The terms of one m of a local expansion, see MonicRecurrence.
template<class Real>
__device__ Real ofExpansion(const PotentialTask<Real>& task, int slot, const Real4<Real>& a, int m)
{
    const Real x = a.x * task.inverseUnit, y = a.y * task.inverseUnit, z = a.z * task.inverseUnit;
    const Real r2 = x * x + y * y + z * z;
    Real re = 1, im = 0;
    for (int k = 0; k < m; k++)
    {
        const Real turned = x * re - y * im;
        im                = x * im + y * re;
        re                = turned;
    }
    Real previous = 0, current = 1, sum = 0;
    for (int l = m; l <= task.order; l++)
    {
        const int at = coefficientIndex(l, m);
        sum += current * re * task.scale[at] * task.L[static_cast<size_t>(at) * task.stride + slot];
        if (m > 0)
        {
            const int mirrored = coefficientIndex(l, -m);
            sum += current * im * task.scale[mirrored]
                   * task.L[static_cast<size_t>(mirrored) * task.stride + slot];
        }
        const Real next = z * current - task.beta[l * (task.order + 1) + m] * r2 * previous;
        previous        = current;
        current         = next;
    }
    return sum * task.inverseUnit;
}

template<class Real, bool Functions>
__global__ void __launch_bounds__(c_threads) sumPotentials(const PotentialTask<Real> task)
{
    // lanes of all would be more than an int counts
    const int i    = static_cast<int>(blockIdx.x * (c_threads / c_warp) + threadIdx.x / c_warp);
    const int lane = static_cast<int>(threadIdx.x) % c_warp;
    if (i >= task.near.particles.n)
    {
        return; // the whole warp
    }
    const Real4<Real> a = load(task.near.particles.xq + i);
    const int atom      = task.near.particles.atom[i];
    const int slot      = task.slotOf[task.near.particles.cell[i]];
    Real sum = ofNearCells<Functions>(task, i, lane) + ofExcluded<Functions>(task, atom, lane);
    if (Functions && task.farther.any())
    {
        sum += ofFartherCells(task, i, lane);
    }
    if (lane <= task.order && slot >= 0)
    {
        sum += ofExpansion(task, slot, a, lane);
    }
    for (int offset = c_warp / 2; offset > 0; offset /= 2)
    {
        sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    }
    if (lane == 0)
    {
        sum += task.curvature * (a.x * a.x + a.y * a.y + a.z * a.z);
        const double all      = static_cast<double>(sum) + task.constant * *task.squares;
        const Real poison     = task.poison != nullptr ? *task.poison : Real(0);
        task.potentials[atom] = static_cast<Real>(task.rootCoulomb * all) + poison;
    }
}

} // namespace

template<class Real>
void DevicePotentials<Real>::prepare(cudaStream_t stream)
{
    squares_.resize(1);
    squares_.clear(stream);
}

template<class Real>
void DevicePotentials<Real>::setOrder(int order, cudaStream_t stream)
{
    const MonicRecurrence monic(order);
    const std::vector<Real> scale(monic.scale.begin(), monic.scale.end());
    const std::vector<Real> beta(monic.beta.begin(), monic.beta.end());
    scale_.upload(scale.data(), scale.size(), stream);
    beta_.upload(beta.data(), beta.size(), stream);
}

template<class Real>
double* DevicePotentials<Real>::sumSquares(const SortedParticles<Real>& particles,
                                           OrderedSums* scratch,
                                           cudaStream_t stream)
{
    squares_.clear(stream);
    const int blocks = std::min(blocksFor(particles.n, c_threads), OrderedSums::c_maxBlocks);
    if (blocks > 0)
    {
        addSquares<Real>
                <<<blocks, c_threads, 0, stream>>>(particles, squares_.data(), scratch->view());
        checkLaunch("squared distances of particles");
    }
    return squares_.data();
}

template<class Real>
void DevicePotentials<Real>::compute(const PotentialInput<Real>& input,
                                     Real* potentials,
                                     cudaStream_t stream) const
{
    const int n = input.particles.n;
    if (n == 0)
    {
        return;
    }
    PotentialTask<Real> task;
    task.near        = NearCells<Real>(input.particles, input.ofPairs, input.where);
    task.exclusions  = input.exclusions;
    task.functions   = input.functions;
    task.given       = input.given;
    task.farther     = input.farther;
    task.image       = MinimumImage::of(input.where.box);
    task.close2      = static_cast<Real>(closeInCells(input.where.closeDistance));
    task.x           = input.x;
    task.q           = input.q;
    task.order       = input.order;
    task.L           = input.leaves.L;
    task.stride      = input.leaves.stride;
    task.slotOf      = input.leaves.slotOf;
    task.scale       = scale_.data();
    task.beta        = beta_.data();
    task.inverseUnit = static_cast<Real>(1 / input.unit);
    task.curvature =
            static_cast<Real>(backgroundCurvature(input.background * input.netCharge, input.unit));
    task.constant    = backgroundCurvature(input.background, input.unit);
    task.squares     = squares_.data();
    task.rootCoulomb = input.rootCoulomb;
    task.poison      = input.poison;
    task.potentials  = potentials;

    const int blocks = blocksFor(static_cast<long long>(n) * c_warp, c_threads);
    if (task.functions.any())
    {
        sumPotentials<Real, true><<<blocks, c_threads, 0, stream>>>(task);
    }
    else
    {
        sumPotentials<Real, false><<<blocks, c_threads, 0, stream>>>(task);
    }
    checkLaunch("potentials");
}

template class DevicePotentials<float>;
template class DevicePotentials<double>;

} // namespace farfield
