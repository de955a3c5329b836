/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A warp per sorted site: lanes share the sources of near cells and the excluded partners, and take a
// value of m each of the local expansion. With sums, a warp takes one site after the other.
#include "sites/sites.h"

#include <algorithm>
#include <utility>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"
#include "expansions/force_output.cuh"
#include "near/left_out.cuh"
#include "near/near_pieces.h"
#include "operators/background.h"
#include "operators/scaled_charges.h"
#include "operators/solid_harmonics.h"
#include "runtime/load.cuh"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

constexpr int c_threads            = 128;
constexpr int c_ofBlock            = c_threads / c_warp; //!< sites, or cells
constexpr unsigned int c_wholeWarp = 0xffffffffU;
using siteDetail::c_first;
using siteDetail::c_second;
using siteDetail::SiteTables;
//! Values of a site: potential, gradient, second derivatives xx yy zz xy xz yz.
constexpr int c_values = 10, c_flat = 4;

//! Calls visit(i, A_i) for the monic functions of one m. \param[in] re, im  of (x + iy)^m
template<class Real, class Visit>
__device__ __forceinline__ void forMonicOf(const SiteTables<Real>& tables,
                                           int m,
                                           Real re,
                                           Real im,
                                           Real z,
                                           Real r2,
                                           const Visit& visit)
{
    Real previous = 0, current = 1;
    for (int l = m; l <= tables.order; l++)
    {
        visit(coefficientIndex(l, m), current * re);
        if (m > 0)
        {
            visit(coefficientIndex(l, -m), current * im);
        }
        const Real next = z * current - tables.beta[l * (tables.order + 1) + m] * r2 * previous;
        previous        = current;
        current         = next;
    }
}

//! Sets a complex number to itself times x + iy.
template<class Real>
__device__ __forceinline__ void turn(Real x, Real y, Real* re, Real* im)
{
    const Real turned = x * *re - y * *im;
    *im               = x * *im + y * *re;
    *re               = turned;
}

template<class Real>
struct SitesTask
{
    SortedParticles<Real> particles;
    const Real4<Real>* pairs;   //!< [n] as particles.xq, see DeviceCells::ofPairs()
    const Real4<Real>* dipoles; //!< [n] sorted, or null
    NeighbourFinder finder;
    int cells[3];  //!< of the grid
    bool isSkewed; //!< periods along y or z lead to other cells along x
    int ws;
    Real edges[3][3];
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
    SiteOutput<Real> output;
    double *energy, *ofDipoles, *virial;
    OrderedSums::View sums;
    FieldSums* fields;
};

//! What a lane has found of a site.
template<class Real>
struct LaneSums
{
    Real v[c_values] = {};
    Real virial[6]   = {}; //!< sum of R (x) F over its pairs, symmetric
};

/*! \brief Adds a source, or takes it away: see siteRow() of the CPU.
 *  \param[in] R     from the source to the target, nm
 *  \param[in] sign  1 or -1
 *  \param[in] own   charge and dipole of the target, for the virial */
template<bool Dipoles, bool Virial, class Real>
__device__ __forceinline__ void addSource(const Real (&R)[3],
                                          Real r2,
                                          Real sign,
                                          Real q,
                                          const Real (&mu)[3],
                                          Real ownCharge,
                                          const Real (&own)[3],
                                          LaneSums<Real>* sums)
{
    const Real B0 = sign / sqrt(r2);
    const Real w  = 1 / r2;
    const Real B1 = B0 * w;
    const Real B2 = 3 * B1 * w;
    Real value = q * B0, slope = q * B1, along = q * B2;
    if constexpr (Dipoles)
    {
        const Real b  = mu[0] * R[0] + mu[1] * R[1] + mu[2] * R[2];
        const Real B3 = 5 * B2 * w;
        value += b * B1;
        slope += b * B2;
        along += b * B3;
    }
    Real g[3], t[3];
    for (int k = 0; k < 3; k++)
    {
        g[k] = (Dipoles ? B1 * mu[k] : Real(0)) - slope * R[k];
        t[k] = along * R[k] - (Dipoles ? B2 * mu[k] : Real(0));
    }
    const auto second = [&](int a, int b)
    { return t[a] * R[b] - (Dipoles ? R[a] * (B2 * mu[b]) : Real(0)); };
    sums->v[0] += value;
    sums->v[1] += g[0];
    sums->v[2] += g[1];
    sums->v[3] += g[2];
    sums->v[4] += second(0, 0) - slope;
    sums->v[5] += second(1, 1) - slope;
    sums->v[6] += second(2, 2) - slope;
    sums->v[7] += second(0, 1);
    sums->v[8] += second(0, 2);
    sums->v[9] += second(1, 2);
    if constexpr (Virial)
    {
        Real alongR = 0, ofDipoles = 0;
        if constexpr (Dipoles)
        {
            alongR    = own[0] * R[0] + own[1] * R[1] + own[2] * R[2];
            ofDipoles = B2 * (own[0] * mu[0] + own[1] * mu[1] + own[2] * mu[2]);
        }
        Real F[3];
        for (int k = 0; k < 3; k++)
        {
            F[k] = -ownCharge * g[k] - t[k] * alongR + R[k] * ofDipoles
                   + (Dipoles ? slope * own[k] : Real(0));
        }
        sums->virial[0] += R[0] * F[0];
        sums->virial[1] += R[1] * F[1];
        sums->virial[2] += R[2] * F[2];
        sums->virial[3] += Real(0.5) * (R[0] * F[1] + R[1] * F[0]);
        sums->virial[4] += Real(0.5) * (R[0] * F[2] + R[2] * F[0]);
        sums->virial[5] += Real(0.5) * (R[1] * F[2] + R[2] * F[1]);
    }
}

template<class Real>
__device__ __forceinline__ void dipoleOf(const Real4<Real>* dipoles, int i, Real (&mu)[3])
{
    const Real4<Real> d = load(dipoles + i);
    mu[0]               = d.x;
    mu[1]               = d.y;
    mu[2]               = d.z;
}

//! What a lane finds of the near cells of a site.
template<bool Dipoles, bool Virial, class Real>
__device__ void addNearCells(const SitesTask<Real>& task,
                             int i,
                             int lane,
                             const Real (&own)[3],
                             LaneSums<Real>* sums)
{
    const Real4<Real> a = load(task.pairs + i);
    const bool careful  = task.exclusions.anyClose != nullptr && *task.exclusions.anyClose != 0;
    const int ws        = task.ws;
    const int cell      = task.particles.cell[i];
    int c[3];
    task.finder.cell(cell, c);
    // cells along x follow each other, and so do their particles
    const auto isInside = [&](int k) { return c[k] >= ws && c[k] + ws < task.cells[k]; };
    const bool isRow    = isInside(0) && (!task.isSkewed || (isInside(1) && isInside(2)));
    const int cells     = isRow ? 2 * ws + 1 : 1;
    for (int dz = -ws; dz <= ws; dz++)
    {
        for (int dy = -ws; dy <= ws; dy++)
        {
            for (int dx = -ws; dx <= ws; dx += cells)
            {
                const int D[3]  = { dx, dy, dz };
                const int first = task.finder.neighbour(c, D);
                const int end   = task.particles.start[first + cells];
                for (int j = task.particles.start[first] + lane; j < end; j += c_warp)
                {
                    const Real4<Real> s = load(task.pairs + j);
                    const int along     = dx + (isRow ? task.particles.cell[j] - first : 0);
                    const Real shift[3] = { static_cast<Real>(along),
                                            static_cast<Real>(dy),
                                            static_cast<Real>(dz) };
                    Real R[3]           = { a.x - s.x, a.y - s.y, a.z - s.z };
                    for (int k = 0; k < 3; k++)
                    {
                        R[k] -= shift[0] * task.edges[0][k] + shift[1] * task.edges[1][k]
                                + shift[2] * task.edges[2][k];
                    }
                    const Real r2    = R[0] * R[0] + R[1] * R[1] + R[2] * R[2];
                    const bool isOut = r2 == 0
                                       || (careful && r2 < task.close2
                                           && isLeftOut<Real>(task.exclusions,
                                                              task.particles.atom[i],
                                                              task.particles.atom[j]));
                    if (!isOut)
                    {
                        Real mu[3] = { 0, 0, 0 };
                        if constexpr (Dipoles)
                        {
                            dipoleOf(task.dipoles, j, mu);
                        }
                        addSource<Dipoles, Virial, Real>(R, r2, 1, s.w, mu, a.w, own, sums);
                    }
                }
            }
        }
    }
}

//! What a lane takes away for excluded partners that the near field does not leave out.
template<bool Dipoles, bool Virial, class Real>
__device__ void addExcluded(const SitesTask<Real>& task,
                            int atom,
                            int lane,
                            const Real (&own)[3],
                            LaneSums<Real>* sums)
{
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
        for (int axis = 0; axis < 3; axis++)
        {
            d[axis] = static_cast<double>(task.x[3 * static_cast<size_t>(atom) + axis])
                      - static_cast<double>(task.x[3 * static_cast<size_t>(other) + axis]);
        }
        if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > task.image.safe2)
        {
            task.image.search(d);
        }
        Real R[3], mu[3] = { 0, 0, 0 };
        for (int a = 0; a < 3; a++)
        {
            R[a] = static_cast<Real>(task.rotation[a][0] * d[0] + task.rotation[a][1] * d[1]
                                     + task.rotation[a][2] * d[2]);
        }
        if constexpr (Dipoles)
        {
            dipoleOf(task.dipoles, task.particles.position[other], mu);
        }
        const Real r2 = R[0] * R[0] + R[1] * R[1] + R[2] * R[2];
        addSource<Dipoles, Virial, Real>(R, r2, -1, task.q[other], mu, task.q[atom], own, sums);
    }
}

//! What local expansions at sites need.
template<class Real>
struct ExpansionTask
{
    SortedParticles<Real> particles;
    SiteTables<Real> tables;
    const Real* L;
    const int* cellOf;
    int stride;
    Real inverseUnit;
    bool isCurved; //!< whether second derivatives are wanted
    Real* values;  //!< [value][n] of sorted particles
};

/*! \brief A warp per slot: the expansions of the potential and of its derivatives in shared memory, a
 *         particle a lane. Particles of cells without a slot get nothing. */
template<class Real>
__global__ void __launch_bounds__(c_warp) evaluateExpansions(const ExpansionTask<Real> task)
{
    extern __shared__ unsigned char shared[];
    const SiteTables<Real>& tables = task.tables;
    const int n                    = coefficientCount(tables.order);
    const int inner = tables.inner(), core = task.isCurved ? tables.core() : 0;
    Real* const local        = reinterpret_cast<Real*>(shared);
    Real* const coefficients = local + n; // [i][c_values]
    const int slot = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
    const int cell = task.cellOf[slot];
    if (cell < 0 || task.particles.start[cell] == task.particles.start[cell + 1])
    {
        return;
    }
    for (int i = lane; i < n; i += c_warp)
    {
        local[i] = task.L[static_cast<size_t>(i) * task.stride + slot];
    }
    __syncwarp();
    // phi = sum_i L_i u_i(b / unit) / unit
    const Real u           = task.inverseUnit;
    const auto combination = [&](int at, int count)
    {
        Real sum = 0;
        for (int k = at; k < at + count; k++)
        {
            sum += tables.factors[k] * local[tables.sources[k]];
        }
        return sum;
    };
    for (int i = lane; i < n; i += c_warp)
    {
        Real* const own = coefficients + c_values * i;
        own[0]          = u * tables.scale[i] * local[i];
        for (int axis = 0; axis < 3 && i < inner; axis++)
        {
            own[1 + axis] = u * u * combination(tables.placeOf(i, axis), c_first);
        }
        for (int component = 0; component < 6 && i < core; component++)
        {
            own[c_flat + component] =
                    u * u * u * combination(tables.secondPlaceOf(i, component), c_second);
        }
    }
    __syncwarp();
    for (int i = task.particles.start[cell] + lane; i < task.particles.start[cell + 1]; i += c_warp)
    {
        const Real4<Real> a = load(task.particles.xq + i);
        const Real x = a.x * u, y = a.y * u, z = a.z * u;
        const Real r2      = x * x + y * y + z * z;
        Real sum[c_values] = {};
        Real re = 1, im = 0;
        for (int m = 0; m <= tables.order; m++)
        {
            forMonicOf(tables,
                       m,
                       re,
                       im,
                       z,
                       r2,
                       [&](int k, Real A)
                       {
                           const Real* own = coefficients + c_values * k;
                           const int count = k < core ? c_values : k < inner ? c_flat : 1;
                           sum[0] += A * own[0];
                           if (count > 1)
                           {
                               sum[1] += A * own[1];
                               sum[2] += A * own[2];
                               sum[3] += A * own[3];
                           }
                           if (count > c_flat)
                           {
                               for (int c = c_flat; c < c_values; c++)
                               {
                                   sum[c] += A * own[c];
                               }
                           }
                       });
            turn(x, y, &re, &im);
        }
        for (int k = 0; k < c_values; k++)
        {
            task.values[static_cast<size_t>(k) * task.particles.n + i] = sum[k];
        }
    }
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

//! The force -(q g + H mu).
template<class Real>
__device__ void forceOf(const Real* v, Real q, const Real (&mu)[3], Real* F)
{
    F[0] = -(q * v[1] + v[4] * mu[0] + v[7] * mu[1] + v[8] * mu[2]);
    F[1] = -(q * v[2] + v[7] * mu[0] + v[5] * mu[1] + v[9] * mu[2]);
    F[2] = -(q * v[3] + v[8] * mu[0] + v[9] * mu[1] + v[6] * mu[2]);
}

//! Writes what a site has. \param[in] v  in the frame of the cells \returns the field in units of the cap, squared
template<class Real>
__device__ Real
writeSite(const SitesTask<Real>& task, int atom, Real q, const Real* v, const Real* F)
{
    const SiteOutput<Real>& out = task.output;
    const Real root             = static_cast<Real>(task.rootCoulomb);
    const Real poison           = task.poison != nullptr ? *task.poison : Real(0);
    const auto& rotation        = task.rotation;
    const size_t at             = 3 * static_cast<size_t>(atom);
    Real square                 = 0;
    for (int k = 0; k < 3; k++)
    {
        const Real force =
                F[0] * rotation[0][k] + F[1] * rotation[1][k] + F[2] * rotation[2][k] + poison;
        out.forces[at + k] = out.replace ? force : out.forces[at + k] + force;
        square += force * force;
        if (out.gradients != nullptr)
        {
            out.gradients[at + k] =
                    root * (v[1] * rotation[0][k] + v[2] * rotation[1][k] + v[3] * rotation[2][k])
                    + poison;
        }
    }
    if (out.potentials != nullptr)
    {
        out.potentials[atom] = root * v[0] + poison;
    }
    if (out.hessians != nullptr)
    {
        constexpr int c_a[6] = { 0, 1, 2, 0, 0, 1 }, c_b[6] = { 0, 1, 2, 1, 2, 2 };
        const Real h[3][3] = { { v[4], v[7], v[8] }, { v[7], v[5], v[9] }, { v[8], v[9], v[6] } };
        for (int component = 0; component < 6; component++)
        {
            Real sum = 0;
            for (int i = 0; i < 9; i++)
            {
                sum += rotation[i / 3][c_a[component]] * h[i / 3][i % 3]
                       * rotation[i % 3][c_b[component]];
            }
            out.hessians[6 * static_cast<size_t>(atom) + component] = root * sum + poison;
        }
    }
    const Real strength = task.strengths != nullptr ? root * task.strengths[atom] : fabs(q);
    const Real inCaps   = strength > task.largestIdle ? root * task.perCap / strength : Real(0);
    return square * inCaps * inCaps;
}

template<class Real, bool Dipoles, bool Energy, bool Virial>
__global__ void __launch_bounds__(c_threads) computeSites(const SitesTask<Real> task)
{
    double own[8]  = { 0, 0, 0, 0, 0, 0, 0, 0 };
    const int lane = static_cast<int>(threadIdx.x) % c_warp;
    const int step = static_cast<int>(gridDim.x) * c_ofBlock;
    // lanes of all would be more than an int counts
    for (int i = static_cast<int>(blockIdx.x) * c_ofBlock + static_cast<int>(threadIdx.x) / c_warp;
         i < task.particles.n;
         i += step)
    {
        const Real4<Real> a = load(task.particles.xq + i);
        const int atom      = task.particles.atom[i];
        const int slot      = task.slotOf[task.particles.cell[i]];
        Real mu[3]          = { 0, 0, 0 };
        if constexpr (Dipoles)
        {
            dipoleOf(task.dipoles, i, mu);
        }
        LaneSums<Real> sums;
        addNearCells<Dipoles, Virial, Real>(task, i, lane, mu, &sums);
        addExcluded<Dipoles, Virial, Real>(task, atom, lane, mu, &sums);
        Real far[c_values], v[c_values];
        for (int k = 0; k < c_values; k++)
        {
            far[k] = slot >= 0 ? task.far[static_cast<size_t>(k) * task.particles.n + i] : Real(0);
            v[k]   = sumOfWarp(sums.v[k]);
        }
        const Real b[3] = { a.x, a.y, a.z };
        for (int k = 0; k < 3; k++)
        {
            far[0] += task.curvature * b[k] * b[k];
            far[1 + k] += 2 * task.curvature * b[k];
            far[c_flat + k] += 2 * task.curvature;
        }
        if (Virial)
        {
            // each pair is met at both of its sites
            for (int k = 0; k < 6; k++)
            {
                own[2 + k] -= 0.25 * static_cast<double>(sums.virial[k]);
            }
            Real F[3];
            forceOf(far, a.w, mu, F);
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
        for (int k = 0; k < c_values; k++)
        {
            v[k] += far[k];
        }
        const double potential = static_cast<double>(v[0]) + task.constant * *task.squares;
        v[0]                   = static_cast<Real>(potential);
        Real square            = 0;
        if (lane == 0)
        {
            Real F[3];
            forceOf(v, a.w, mu, F);
            square = writeSite(task, atom, a.w, v, F);
            if (Energy)
            {
                const double ofDipole =
                        0.5 * static_cast<double>(mu[0] * v[1] + mu[1] * v[2] + mu[2] * v[3]);
                own[0] += 0.5 * static_cast<double>(a.w) * potential + ofDipole;
                own[1] += ofDipole;
            }
        }
        if (task.fields != nullptr)
        {
            addField(square, i == 0 && lane == 0, task.fields);
        }
    }
    if (Energy)
    {
        double* to[8] = { task.energy, task.ofDipoles };
        for (int k = 0; k < 6; k++)
        {
            to[2 + k] = task.virial + k;
        }
        addInOrder<Virial ? 8 : 2>(own, task.sums, to);
    }
}

template<class Real>
struct Turn
{
    Real rotation[3][3];
};

template<class Real>
__global__ void __launch_bounds__(c_threads) sortDipoles(const SortedParticles<Real> particles,
                                                         const Real* __restrict__ dipoles,
                                                         const Turn<Real> task,
                                                         Real4<Real>* __restrict__ sorted)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < particles.n)
    {
        const Real* mu   = dipoles + 3 * static_cast<size_t>(particles.atom[i]);
        const auto along = [&](int a) {
            return task.rotation[a][0] * mu[0] + task.rotation[a][1] * mu[1]
                   + task.rotation[a][2] * mu[2];
        };
        sorted[i] = { along(0), along(1), along(2), 0 };
    }
}

//! Adds q |b|^2 + 2 mu.b, b from the centre of the leaf cell.
template<class Real>
__global__ void __launch_bounds__(c_threads) addSiteSquares(const SortedParticles<Real> particles,
                                                            const Real4<Real>* __restrict__ dipoles,
                                                            double* sum,
                                                            OrderedSums::View sums)
{
    double own = 0;
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < particles.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const Real4<Real> a = load(particles.xq + i);
        const double x = a.x, y = a.y, z = a.z;
        own += static_cast<double>(a.w) * (x * x + y * y + z * z);
        if (dipoles != nullptr)
        {
            const Real4<Real> mu = load(dipoles + i);
            own += 2
                   * (x * static_cast<double>(mu.x) + y * static_cast<double>(mu.y)
                      + z * static_cast<double>(mu.z));
        }
    }
    addInOrder<1>(&own, sums, &sum);
}

//! What the multipoles of dipoles need.
template<class Real>
struct DipoleMultipoles
{
    SortedParticles<Real> particles;
    const Real4<Real>* dipoles;
    const int* cellOf;
    int stride;
    Real inverseUnit;
    SiteTables<Real> tables;
    //! Of each multipole the moments that it takes: entries rows[i] to rows[i + 1].
    const int* rows;
    const int* targets; //!< place of a moment, 3 j + axis
    const Real* values;
    Real* M;
};

//! A warp per slot: moments mu A_j of its particles in shared memory, a value of m a lane, then multipoles.
template<class Real>
__global__ void __launch_bounds__(c_warp) addDipoles(const DipoleMultipoles<Real> task)
{
    extern __shared__ unsigned char shared[];
    Real* moments  = reinterpret_cast<Real*>(shared);
    const int slot = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
    const int cell = task.cellOf[slot];
    if (cell < 0)
    {
        return;
    }
    const SiteTables<Real>& tables = task.tables;
    const int inner                = tables.inner();
    for (int k = lane; k < 3 * inner; k += c_warp)
    {
        moments[k] = 0;
    }
    __syncwarp();
    const int end = task.particles.start[cell + 1];
    for (int i = task.particles.start[cell]; i < end && lane < tables.order; i++)
    {
        const Real4<Real> a = load(task.particles.xq + i);
        const Real4<Real> d = load(task.dipoles + i);
        const Real x = a.x * task.inverseUnit, y = a.y * task.inverseUnit,
                   z = a.z * task.inverseUnit;
        Real re = 1, im = 0;
        for (int k = 0; k < lane; k++)
        {
            turn(x, y, &re, &im);
        }
        forMonicOf(tables,
                   lane,
                   re,
                   im,
                   z,
                   x * x + y * y + z * z,
                   [&](int j, Real A)
                   {
                       if (j < inner)
                       {
                           moments[3 * j] += d.x * A;
                           moments[3 * j + 1] += d.y * A;
                           moments[3 * j + 2] += d.z * A;
                       }
                   });
    }
    __syncwarp();
    for (int i = lane; i < coefficientCount(tables.order); i += c_warp)
    {
        Real sum = 0;
        for (int k = task.rows[i]; k < task.rows[i + 1]; k++)
        {
            sum += task.values[k] * moments[task.targets[k]];
        }
        task.M[static_cast<size_t>(i) * task.stride + slot] += sum * task.inverseUnit;
    }
}

} // namespace

template<class Real>
void DeviceSites<Real>::setDipoles(const Real* dipoles,
                                   const Real* strengths,
                                   int n,
                                   double rootCoulomb,
                                   cudaStream_t stream)
{
    if (dipoles == nullptr)
    {
        anyDipoles_ = false;
        return;
    }
    std::vector<Real> scaled(3 * static_cast<size_t>(n));
    std::transform(dipoles,
                   dipoles + scaled.size(),
                   scaled.begin(),
                   [=](Real mu)
                   { return static_cast<Real>(rootCoulomb * static_cast<double>(mu)); });
    DeviceBuffer<Real> own, ofStrength;
    own.upload(scaled.data(), scaled.size(), stream);
    ofStrength.upload(strengths, n, stream);
    sorted_.resize(n);
    dipoles_    = std::move(own);
    strengths_  = std::move(ofStrength);
    anyDipoles_ = true;
}

template<class Real>
void DeviceSites<Real>::setOrder(int order, cudaStream_t stream)
{
    const MonicRecurrence monic(order);
    const int inner = order * order, core = order > 0 ? (order - 1) * (order - 1) : 0;
    std::vector<int> sources(3 * c_first * static_cast<size_t>(inner)
                             + 6 * c_second * static_cast<size_t>(core));
    std::vector<Real> factors(sources.size());
    const std::vector<DerivativeTerm> terms = derivativeTerms(order);
    // of u: [axis][to] sources and values
    std::vector<std::vector<std::pair<int, double>>> first(3 * static_cast<size_t>(inner));
    for (const DerivativeTerm& t : terms)
    {
        first[static_cast<size_t>(t.axis) * inner + t.to].emplace_back(t.from, t.value);
    }
    const auto write =
            [&](size_t at, const std::vector<std::pair<int, double>>& entries, double scale)
    {
        for (const auto& [source, value] : entries)
        {
            sources[at]   = source;
            factors[at++] = static_cast<Real>(value * scale);
        }
    };
    constexpr int c_a[6] = { 0, 1, 2, 0, 0, 1 }, c_b[6] = { 0, 1, 2, 1, 2, 2 };
    for (int i = 0; i < inner; i++)
    {
        for (int axis = 0; axis < 3; axis++)
        {
            write(static_cast<size_t>(3 * i + axis) * c_first,
                  first[static_cast<size_t>(axis) * inner + i],
                  monic.scale[i]);
        }
    }
    for (int i = 0; i < core; i++)
    {
        for (int component = 0; component < 6; component++)
        {
            std::vector<std::pair<int, double>> entries;
            for (const auto& [between, outer] :
                 first[static_cast<size_t>(c_b[component]) * inner + i])
            {
                for (const auto& [source, value] :
                     first[static_cast<size_t>(c_a[component]) * inner + between])
                {
                    entries.emplace_back(source, outer * value);
                }
            }
            write(3 * c_first * static_cast<size_t>(inner)
                          + static_cast<size_t>(6 * i + component) * c_second,
                  entries,
                  monic.scale[i]);
        }
    }
    std::vector<int> rows(static_cast<size_t>(coefficientCount(order)) + 1, 0), targets;
    std::vector<Real> values;
    for (int i = 0; i < coefficientCount(order); i++)
    {
        for (const DerivativeTerm& t : terms)
        {
            if (t.from == i)
            {
                targets.push_back(3 * t.to + t.axis);
                values.push_back(static_cast<Real>(t.value * monic.scale[t.to]));
            }
        }
        rows[static_cast<size_t>(i) + 1] = static_cast<int>(targets.size());
    }
    const std::vector<Real> scale(monic.scale.begin(), monic.scale.end());
    const std::vector<Real> beta(monic.beta.begin(), monic.beta.end());
    scale_.upload(scale.data(), scale.size(), stream);
    beta_.upload(beta.data(), beta.size(), stream);
    sources_.upload(sources.data(), sources.size(), stream);
    factors_.upload(factors.data(), factors.size(), stream);
    rows_.upload(rows.data(), rows.size(), stream);
    targets_.upload(targets.data(), targets.size(), stream);
    values_.upload(values.data(), values.size(), stream);
    squares_.resize(1);
    order_ = order;
}

template<class Real>
void DeviceSites<Real>::sort(const SortedParticles<Real>& particles,
                             const Mat3& rotation,
                             cudaStream_t stream)
{
    if (anyDipoles() && particles.n > 0)
    {
        Turn<Real> task = {};
        copyTo(rotation, task.rotation);
        sortDipoles<Real><<<blocksFor(particles.n, c_threads), c_threads, 0, stream>>>(
                particles, dipoles_.data(), task, sorted_.data());
        checkLaunch("sorting dipoles");
    }
}

template<class Real>
void DeviceSites<Real>::addMultipoles(const SortedParticles<Real>& particles,
                                      const LevelView<Real>& leaves,
                                      Real inverseUnit,
                                      cudaStream_t stream)
{
    if (!anyDipoles() || leaves.stride == 0 || order_ == 0)
    {
        return;
    }
    const DipoleMultipoles<Real> task = { particles,     sorted_.data(),  leaves.cellOf,
                                          leaves.stride, inverseUnit,     tables(),
                                          rows_.data(),  targets_.data(), values_.data(),
                                          leaves.M };
    const size_t moments              = 3 * static_cast<size_t>(order_) * order_ * sizeof(Real);
    addDipoles<Real><<<leaves.stride, c_warp, moments, stream>>>(task);
    checkLaunch("multipoles of dipoles");
}

template<class Real>
double* DeviceSites<Real>::sumSquares(const SortedParticles<Real>& particles,
                                      OrderedSums* scratch,
                                      cudaStream_t stream)
{
    squares_.clear(stream);
    const int blocks = std::min(blocksFor(particles.n, c_threads), OrderedSums::c_maxBlocks);
    if (blocks > 0)
    {
        addSiteSquares<Real>
                <<<blocks, c_threads, 0, stream>>>(particles,
                                                   anyDipoles() ? sorted_.data() : nullptr,
                                                   squares_.data(),
                                                   scratch->view());
        checkLaunch("squared distances of sites");
    }
    return squares_.data();
}

template<class Real>
SiteTables<Real> DeviceSites<Real>::tables() const
{
    return { order_, scale_.data(), beta_.data(), sources_.data(), factors_.data() };
}

template<class Real>
void DeviceSites<Real>::evaluate(const SiteInput<Real>& input, bool isCurved, cudaStream_t stream)
{
    far_.resize(static_cast<size_t>(c_values) * input.particles.n);
    if (input.leaves.stride == 0)
    {
        return;
    }
    const ExpansionTask<Real> task = { input.particles,
                                       tables(),
                                       input.leaves.L,
                                       input.leaves.cellOf,
                                       input.leaves.stride,
                                       static_cast<Real>(1 / input.unit),
                                       isCurved,
                                       far_.data() };
    const size_t room =
            (1 + c_values) * static_cast<size_t>(coefficientCount(order_)) * sizeof(Real);
    evaluateExpansions<Real><<<input.leaves.stride, c_warp, room, stream>>>(task);
    checkLaunch("local expansions at sites");
}

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
    evaluate(input, anyDipoles() || output.hessians != nullptr, stream);
    SitesTask<Real> task = {};
    task.particles       = input.particles;
    task.pairs           = input.ofPairs.xq;
    task.dipoles         = anyDipoles() ? sorted_.data() : nullptr;
    task.finder          = NeighbourFinder(input.where.grid);
    const auto& H        = input.where.grid.H;
    for (int k = 0; k < 3; k++)
    {
        task.cells[k] = H[k][k];
    }
    task.isSkewed = H[1][0] != 0 || H[2][0] != 0 || H[2][1] != 0;
    task.ws       = input.where.ws;
    copyTo(input.where.edges, task.edges);
    task.exclusions = input.exclusions;
    task.image      = MinimumImage::of(input.where.box);
    task.close2     = static_cast<Real>(closeInCells(input.where.closeDistance));
    task.x          = input.x;
    task.q          = input.q;
    task.strengths  = anyDipoles() ? strengths_.data() : nullptr;
    task.far        = far_.data();
    task.slotOf     = input.leaves.slotOf;
    task.curvature =
            static_cast<Real>(backgroundCurvature(input.background * input.netCharge, input.unit));
    task.constant    = backgroundCurvature(input.background, input.unit);
    task.squares     = squares_.data();
    task.rootCoulomb = rootCoulomb;
    copyTo(input.rotation, task.rotation);
    task.largestIdle = static_cast<Real>(largestIdle<Real>(rootCoulomb));
    task.perCap      = static_cast<Real>(sums.perCap);
    task.poison      = input.poison;
    task.output      = output;
    task.energy      = sums.energy;
    task.ofDipoles   = sums.ofDipoles;
    task.virial      = sums.virial;
    task.fields      = sums.fields;
    int blocks       = blocksFor(static_cast<long long>(n) * c_warp, c_threads);
    if (sums.energy != nullptr)
    {
        task.sums = sums.scratch->view();
        blocks    = std::min(blocks, OrderedSums::c_maxBlocks);
    }
    const auto launch = [&](auto dipoles)
    {
        constexpr bool c_dipoles = decltype(dipoles)::value;
        const auto kernel = sums.virial != nullptr   ? computeSites<Real, c_dipoles, true, true>
                            : sums.energy != nullptr ? computeSites<Real, c_dipoles, true, false>
                                                     : computeSites<Real, c_dipoles, false, false>;
        kernel<<<blocks, c_threads, 0, stream>>>(task);
    };
    if (anyDipoles())
    {
        launch(std::true_type());
    }
    else
    {
        launch(std::false_type());
    }
    checkLaunch("sites");
}

template<class Real>
Real* DeviceSites<Real>::gradients(int n)
{
    gradients_.resize(3 * static_cast<size_t>(n));
    return gradients_.data();
}

template<class Real>
Real* DeviceSites<Real>::hessians(int n)
{
    hessians_.resize(6 * static_cast<size_t>(n));
    return hessians_.data();
}

template<class Real>
void DeviceSites<Real>::fetch(const Task<Real>& task, int n, cudaStream_t stream)
{
    const auto get =
            [&](bool wanted, const DeviceBuffer<Real>& from, PinnedBuffer<Real>* to, size_t each)
    {
        if (wanted)
        {
            to->resize(each * n);
            copyAsync(
                    to->data(), from.data(), each * n, stream, "copying derivatives from the GPU");
        }
    };
    get(task.gradients != nullptr, gradients_, &gradientsOnHost_, 3);
    get(task.hessians != nullptr, hessians_, &hessiansOnHost_, 6);
}

template<class Real>
void DeviceSites<Real>::deliver(const Task<Real>& task, int n) const
{
    if (task.gradients != nullptr)
    {
        std::copy_n(gradientsOnHost_.data(), 3 * static_cast<size_t>(n), task.gradients);
    }
    if (task.hessians != nullptr)
    {
        std::copy_n(hessiansOnHost_.data(), 6 * static_cast<size_t>(n), task.hessians);
    }
}

template class DeviceSites<float>;
template class DeviceSites<double>;

} // namespace farfield
