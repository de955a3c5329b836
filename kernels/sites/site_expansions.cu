/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Multipoles of dipoles, and what local expansions have at sites: a warp per cell.
#include "sites/sites.h"

#include <algorithm>
#include <utility>

#include "operators/solid_harmonics.h"
#include "runtime/load.cuh"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

using siteDetail::c_first;
using siteDetail::c_flat;
using siteDetail::c_second;
using siteDetail::c_values;
using siteDetail::SiteTables;

constexpr int c_threads = 128;

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
bool DeviceSites<Real>::setDipoles(const Real* dipoles,
                                   const Real* strengths,
                                   int n,
                                   double rootCoulomb,
                                   cudaStream_t stream)
{
    const bool areAsMany =
            anyDipoles_ && dipoles != nullptr && strengths_.size() == static_cast<size_t>(n);
    anyDipoles_ = false;
    if (dipoles == nullptr)
    {
        return false;
    }
    std::vector<Real> scaled(3 * static_cast<size_t>(n));
    std::transform(dipoles,
                   dipoles + scaled.size(),
                   scaled.begin(),
                   [=](Real mu)
                   { return static_cast<Real>(rootCoulomb * static_cast<double>(mu)); });
    // what evaluations need, too: they may be recorded
    sorted_.resize(n);
    far_.resize(c_values * static_cast<size_t>(n));
    dipoles_.upload(scaled.data(), scaled.size(), stream);
    strengths_.upload(strengths, n, stream);
    anyDipoles_ = true;
    return areAsMany;
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

// The other members are compiled with sites.cu.
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template bool DeviceSites<Real>::setDipoles(                                                   \
            const Real*, const Real*, int, double, cudaStream_t);                                  \
    template void DeviceSites<Real>::setOrder(int, cudaStream_t);                                  \
    template void DeviceSites<Real>::sort(                                                         \
            const SortedParticles<Real>&, const Mat3&, cudaStream_t);                              \
    template void DeviceSites<Real>::addMultipoles(                                                \
            const SortedParticles<Real>&, const LevelView<Real>&, Real, cudaStream_t);             \
    template double* DeviceSites<Real>::sumSquares(                                                \
            const SortedParticles<Real>&, OrderedSums*, cudaStream_t);                             \
    template void DeviceSites<Real>::evaluate(const SiteInput<Real>&, bool, cudaStream_t)
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
