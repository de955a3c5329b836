/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A warp per sorted site, whose lanes share the sources of near cells and the excluded partners. With sums,
// a warp takes one site after the other.
#include "sites/sites.h"

#include <algorithm>
#include <utility>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"
#include "expansions/force_output.cuh"
#include "near/left_out.cuh"
#include "near/near_cells.cuh"
#include "operators/background.h"
#include "operators/scaled_charges.h"
#include "runtime/load.cuh"
#include "runtime/matrix3.h"
#include "sites/site_pairs.cuh"

namespace farfield
{
namespace
{

constexpr int c_threads            = 128;
constexpr int c_ofBlock            = c_threads / c_warp; //!< sites, or cells
constexpr unsigned int c_wholeWarp = 0xffffffffU;
using siteDetail::addSource;
using siteDetail::dotProduct;
using siteDetail::doubleDot;
using siteDetail::factorsOf;
using siteDetail::LaneSums;
using siteDetail::Site;
using siteDetail::siteOf;
using siteDetail::SortedMoments;
using siteDetail::timesVector;

template<class Real>
struct SitesTask
{
    NearCells<Real> near;
    SortedMoments<Real> moments;
    typename DeviceExclusions<Real>::View exclusions;
    MinimumImage image;
    Real close2; //!< as P2pArguments
    const Real* x;
    const Real* q;
    const Real* strengths; //!< or null
    const Real* far;       //!< [value][n] of sorted particles
    const int* slotOf;
    Real curvature;        //!< backgroundCurvature() of the leaves
    double constant;       //!< (2 pi / 3V), times the squares
    const double* squares; //!< see sumSquares()
    double rootCoulomb;
    Real rotation[3][3];
    Real largestIdle, perCap;
    const Real* poison;
    NearFunctionView<Real> functions; //!< of sorted particles
    FartherCells farther;
    SiteOutput<Real> output;
    double *energy, *timesDegree, *virial;
    OrderedSums::View sums;
    FieldSums* fields;
};

//! What a lane finds of the near cells of a site.
template<int Degree, bool Curved, bool Virial, bool Functions, class Real>
__device__ void addNearCells(const SitesTask<Real>& task,
                             int i,
                             int lane,
                             const Site<Degree, Real>& own,
                             LaneSums<Real>* sums)
{
    const bool careful = task.exclusions.anyClose != nullptr && *task.exclusions.anyClose != 0;
    const auto add     = [&](int j, Real charge, const Real(&R)[3], bool isSelf)
    {
        Real r2                         = R[0] * R[0] + R[1] * R[1] + R[2] * R[2];
        DerivativeFactors<Real> factors = {};
        if constexpr (Functions)
        {
            const Real one = task.functions.terms[i], other = task.functions.terms[j];
            // near functions are finite at no distance: powers of this one are, too
            const bool isSoft = task.functions.isOfPair(task.functions.isWide(one),
                                                        task.functions.isWide(other));
            r2                = isSoft ? max(r2, Real(1e-10)) : r2;
            factors           = factorsOf<Real>(task.functions, r2, one, other, 1);
        }
        const bool isOut = isSelf
                           || (careful && r2 < task.close2
                               && isLeftOut<Real>(task.exclusions,
                                                  task.near.particles.atom[i],
                                                  task.near.particles.atom[j]));
        if (!isOut && r2 == 0)
        {
            sums->v[0] += charge * Real(1e10); // as on the CPU
        }
        else if (!isOut)
        {
            const auto source = siteOf<Degree>(task.moments, j, charge);
            addSource<Degree, Curved, Virial, Functions, Real>(
                    R, r2, 1, factors, source, own, sums);
        }
    };
    task.near.forSources(i, lane, add);
}

//! What a lane takes away for excluded partners that the near field does not leave out.
template<int Degree, bool Curved, bool Virial, bool Functions, class Real>
__device__ void addExcluded(const SitesTask<Real>& task,
                            int i,
                            int lane,
                            const Site<Degree, Real>& own,
                            LaneSums<Real>* sums)
{
    const int atom = task.near.particles.atom[i];
    if (task.exclusions.offsets == nullptr)
    {
        return;
    }
    const int end = task.exclusions.offsets[atom + 1];
    for (int k = task.exclusions.offsets[atom] + lane; k < end; k += c_warp)
    {
        if (task.exclusions.close[k])
        {
            continue;
        }
        const int other = task.exclusions.partners[k];
        double d[3];
        displacementOf(task.x, atom, other, task.image, d);
        Real R[3];
        for (int a = 0; a < 3; a++)
        {
            R[a] = static_cast<Real>(task.rotation[a][0] * d[0] + task.rotation[a][1] * d[1]
                                     + task.rotation[a][2] * d[2]);
        }
        const int sorted                = task.near.particles.position[other];
        const Real r2                   = R[0] * R[0] + R[1] * R[1] + R[2] * R[2];
        DerivativeFactors<Real> factors = {};
        if constexpr (Functions)
        {
            const Real* const terms = task.functions.terms;
            factors = factorsOf<Real>(task.functions, r2, terms[i], terms[sorted], 1);
        }
        const auto source = siteOf<Degree>(task.moments, sorted, task.q[other]);
        addSource<Degree, Curved, Virial, Functions, Real>(R, r2, -1, factors, source, own, sums);
    }
}

//! What near functions add to 1/r of the pairs that a lane finds beyond the near cells.
template<int Degree, bool Curved, class Real>
__device__ void addFartherCells(const SitesTask<Real>& task,
                                int i,
                                int lane,
                                const Site<Degree, Real>& own,
                                LaneSums<Real>* sums)
{
    const Real4<Real> a = load(task.near.pairs + i);
    const Real term     = task.functions.terms[i];
    const auto add      = [&](int j, Real shiftX, Real shiftY, Real shiftZ)
    {
        const Real4<Real> s = load(task.near.pairs + j);
        const Real R[3]     = { a.x - (s.x + shiftX), a.y - (s.y + shiftY), a.z - (s.z + shiftZ) };
        const Real r2       = R[0] * R[0] + R[1] * R[1] + R[2] * R[2];
        const auto factors  = factorsOf<Real>(task.functions, r2, term, task.functions.terms[j], 0);
        const auto source   = siteOf<Degree>(task.moments, j, s.w);
        addSource<Degree, Curved, false, true, Real>(R, r2, 1, factors, source, own, sums);
    };
    forFarther(task.farther,
               task.near.particles,
               task.near.edges,
               task.near.particles.cell[i],
               lane,
               c_warp,
               add);
}

template<class Real>
__device__ Real sumOfWarp(Real value)
{
    for (int offset = c_warp / 2; offset > 0; offset /= 2)
    {
        value += __shfl_xor_sync(c_wholeWarp, value, offset);
    }
    return value;
}

//! The force -(q g + H mu + pull). \param[in] v  as in SiteArrays of the CPU
template<int Degree, class Real>
__device__ void forceOf(const Real* v, const Site<Degree, Real>& site, Real (&F)[3])
{
    Real ofDipole[3] = { 0, 0, 0 };
    if constexpr (Degree > 0)
    {
        timesVector(v + c_flatValues, site.mu, ofDipole);
    }
    for (int k = 0; k < 3; k++)
    {
        F[k] = -(site.q * v[1 + k] + ofDipole[k] + (Degree > 1 ? v[c_curvedValues + k] : Real(0)));
    }
}

//! The torque -mu x g - 2 eps (theta H), see SiteFields.
template<int Degree, class Real>
__device__ void torqueOf(const Real* v, const Site<Degree, Real>& site, Real (&torque)[3])
{
    for (int k = 0; k < 3; k++)
    {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        torque[k] = Degree > 0 ? v[1 + i] * site.mu[j] - v[1 + j] * site.mu[i] : Real(0);
        for (int a = 0; a < 3 && Degree > 1; a++)
        {
            const Real* const h = v + c_flatValues;
            torque[k] -= 2
                         * (site.theta[componentOf(i, a)] * h[componentOf(a, j)]
                            - site.theta[componentOf(j, a)] * h[componentOf(a, i)]);
        }
    }
}

//! Writes what a site has. \param[in] v  in the frame of the cells \returns the field in units of the cap, squared
template<int Degree, class Real>
__device__ Real writeSite(const SitesTask<Real>& task,
                          int atom,
                          const Site<Degree, Real>& site,
                          const Real* v,
                          const Real* F)
{
    const SiteOutput<Real>& out = task.output;
    const Real root             = static_cast<Real>(task.rootCoulomb);
    const Real poison           = task.poison != nullptr ? *task.poison : Real(0);
    const auto& rotation        = task.rotation;
    const size_t at             = 3 * static_cast<size_t>(atom);
    const auto turned           = [&](const Real* own, int k)
    { return own[0] * rotation[0][k] + own[1] * rotation[1][k] + own[2] * rotation[2][k]; };
    Real square = 0, torque[3];
    if (out.torques != nullptr)
    {
        torqueOf(v, site, torque);
    }
    for (int k = 0; k < 3; k++)
    {
        const Real force = turned(F, k) + poison;
        if (out.forces != nullptr)
        {
            out.forces[at + k] = out.replace ? force : out.forces[at + k] + force;
        }
        square += force * force;
        if (out.gradients != nullptr)
        {
            out.gradients[at + k] = root * turned(v + 1, k) + poison;
        }
        if (out.torques != nullptr)
        {
            out.torques[at + k] = turned(torque, k) + poison;
        }
    }
    if (out.potentials != nullptr)
    {
        out.potentials[atom] = root * v[0] + poison;
    }
    if (out.hessians != nullptr)
    {
        const Real* const h = v + c_flatValues;
        for (int component = 0; component < 6; component++)
        {
            Real sum = 0;
            for (int i = 0; i < 9; i++)
            {
                sum += rotation[i / 3][firstAxis(component)] * h[componentOf(i / 3, i % 3)]
                       * rotation[i % 3][secondAxis(component)];
            }
            out.hessians[6 * static_cast<size_t>(atom) + component] = root * sum + poison;
        }
    }
    const Real strength = task.strengths != nullptr ? root * task.strengths[atom] : fabs(site.q);
    const Real inCaps   = strength > task.largestIdle ? root * task.perCap / strength : Real(0);
    return square * inCaps * inCaps;
}

template<class Real, int Degree, bool Curved, bool Energy, bool Virial, bool Functions>
__global__ void __launch_bounds__(c_threads) computeSites(const SitesTask<Real> task)
{
    constexpr int c_found = siteValueCount(Degree, Curved);
    double own[8]         = { 0, 0, 0, 0, 0, 0, 0, 0 };
    const int lane        = static_cast<int>(threadIdx.x) % c_warp;
    const int step        = static_cast<int>(gridDim.x) * c_ofBlock;
    // lanes of all would be more than an int counts
    for (int i = static_cast<int>(blockIdx.x) * c_ofBlock + static_cast<int>(threadIdx.x) / c_warp;
         i < task.near.particles.n;
         i += step)
    {
        const Real4<Real> a = load(task.near.particles.xq + i);
        const int atom      = task.near.particles.atom[i];
        const int slot      = task.slotOf[task.near.particles.cell[i]];
        const auto site     = siteOf<Degree>(task.moments, i, a.w);
        LaneSums<Real> sums;
        addNearCells<Degree, Curved, Virial, Functions, Real>(task, i, lane, site, &sums);
        addExcluded<Degree, Curved, Virial, Functions, Real>(task, i, lane, site, &sums);
        if constexpr (Functions)
        {
            addFartherCells<Degree, Curved, Real>(task, i, lane, site, &sums);
        }
        Real far[c_siteValues] = {}, v[c_siteValues] = {};
        for (int k = 0; k < c_found; k++)
        {
            far[k] = slot >= 0 ? task.far[static_cast<size_t>(k) * task.near.particles.n + i]
                               : Real(0);
            v[k]   = sumOfWarp(sums.v[k]);
        }
        const Real b[3] = { a.x, a.y, a.z };
        for (int k = 0; k < 3; k++)
        {
            far[0] += task.curvature * b[k] * b[k];
            far[1 + k] += 2 * task.curvature * b[k];
            far[c_flatValues + k] += Curved ? 2 * task.curvature : Real(0);
        }
        if (Virial)
        {
            // each pair is met at both of its sites
            for (int k = 0; k < 6; k++)
            {
                own[2 + k] -= 0.25 * static_cast<double>(sums.virial[k]);
            }
            Real F[3];
            forceOf(far, site, F);
            if (lane == 0)
            {
                own[2] -= 0.5 * static_cast<double>(b[0] * F[0]);
                own[3] -= 0.5 * static_cast<double>(b[1] * F[1]);
                own[4] -= 0.5 * static_cast<double>(b[2] * F[2]);
                own[5] -= 0.25 * static_cast<double>(b[0] * F[1] + b[1] * F[0]);
                own[6] -= 0.25 * static_cast<double>(b[0] * F[2] + b[2] * F[0]);
                own[7] -= 0.25 * static_cast<double>(b[1] * F[2] + b[2] * F[1]);
            }
        }
        for (int k = 0; k < c_found; k++)
        {
            v[k] += far[k];
        }
        const double potential = static_cast<double>(v[0]) + task.constant * *task.squares;
        v[0]                   = static_cast<Real>(potential);
        Real square            = 0;
        if (lane == 0)
        {
            Real F[3];
            forceOf(v, site, F);
            square = writeSite(task, atom, site, v, F);
            if (Energy)
            {
                const Real gradient[3] = { v[1], v[2], v[3] };
                const double ofDipole =
                        Degree > 0 ? 0.5 * static_cast<double>(dotProduct(site.mu, gradient)) : 0;
                const double ofQuadrupole =
                        Degree > 1
                                ? 0.5 * static_cast<double>(doubleDot(site.theta, v + c_flatValues))
                                : 0;
                own[0] += 0.5 * static_cast<double>(a.w) * potential + ofDipole + ofQuadrupole;
                own[1] += ofDipole + 2 * ofQuadrupole;
            }
        }
        if (task.fields != nullptr)
        {
            addField(square, i == 0 && lane == 0, task.fields);
        }
    }
    if (Energy)
    {
        double* to[8] = { task.energy, task.timesDegree };
        for (int k = 0; k < 6; k++)
        {
            to[2 + k] = task.virial + k;
        }
        addInOrder<Virial ? 8 : 2>(own, task.sums, to);
    }
}

} // namespace

template<class Real>
void DeviceSites<Real>::compute(const SiteInput<Real>& input,
                                double rootCoulomb,
                                const SiteSums& sums,
                                const SiteOutput<Real>& output,
                                cudaStream_t stream)
{
    const int n = input.particles.n;
    if (n == 0)
    {
        return;
    }
    // the virial of moments is of forces, which need second derivatives
    const bool isCurved = output.hessians != nullptr
                          || (anyMoments()
                              && (output.forces != nullptr || output.torques != nullptr
                                  || sums.energy != nullptr));
    evaluate(input, isCurved, stream);
    SitesTask<Real> task = {};
    task.near            = NearCells<Real>(input.particles, input.ofPairs, input.where);
    task.moments         = sorted();
    task.exclusions      = input.exclusions;
    task.image           = MinimumImage::of(input.where.box);
    task.close2          = static_cast<Real>(closeInCells(input.where.closeDistance));
    task.x               = input.x;
    task.q               = input.q;
    task.strengths       = anyMoments() ? strengths_.data() : nullptr;
    task.far             = far_.data();
    task.slotOf          = input.leaves.slotOf;
    task.curvature =
            static_cast<Real>(backgroundCurvature(input.background * input.netCharge, input.unit));
    task.constant    = backgroundCurvature(input.background, input.unit);
    task.squares     = squares_.data();
    task.rootCoulomb = rootCoulomb;
    copyTo(input.rotation, task.rotation);
    task.largestIdle = static_cast<Real>(largestIdle<Real>(rootCoulomb));
    task.perCap      = static_cast<Real>(sums.perCap);
    task.poison      = input.poison;
    task.functions   = input.functions;
    task.farther     = input.farther;
    task.output      = output;
    task.energy      = sums.energy;
    task.timesDegree = sums.timesDegree;
    task.virial      = sums.virial;
    task.fields      = sums.fields;
    int blocks       = blocksFor(static_cast<long long>(n) * c_warp, c_threads);
    if (sums.energy != nullptr)
    {
        task.sums = sums.scratch->view();
        blocks    = std::min(blocks, OrderedSums::c_maxBlocks);
    }
    const auto launch = [&](auto degree, auto curved)
    {
        constexpr int c_degree  = decltype(degree)::value;
        constexpr bool c_curved = decltype(curved)::value;
        // with moments the virial is curved, see above; with functions there is none, nor quadrupoles
        constexpr bool c_virial = c_curved || c_degree == 0, c_functions = c_degree < 2;
        const bool hasEnergy = sums.energy != nullptr;
        auto kernel          = computeSites<Real, c_degree, c_curved, false, false, false>;
        if (input.functions.any())
        {
            kernel = hasEnergy ? computeSites<Real, c_degree, c_curved, true, false, c_functions>
                               : computeSites<Real, c_degree, c_curved, false, false, c_functions>;
        }
        else if (hasEnergy)
        {
            kernel = sums.virial != nullptr
                             ? computeSites<Real, c_degree, c_curved, true, c_virial, false>
                             : computeSites<Real, c_degree, c_curved, true, false, false>;
        }
        kernel<<<blocks, c_threads, 0, stream>>>(task);
    };
    const auto launchOf = [&](auto degree)
    { isCurved ? launch(degree, std::true_type()) : launch(degree, std::false_type()); };
    degree_ == 0   ? launchOf(std::integral_constant<int, 0>())
    : degree_ == 1 ? launchOf(std::integral_constant<int, 1>())
                   : launchOf(std::integral_constant<int, 2>());
    checkLaunch("sites");
}

template class DeviceSites<float>;
template class DeviceSites<double>;

} // namespace farfield
