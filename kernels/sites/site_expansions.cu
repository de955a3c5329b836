/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What local expansions have at sites: a warp per cell.
#include "sites/monic.cuh"
#include "sites/site_pairs.cuh"

namespace farfield
{
namespace
{

using siteDetail::c_terms;
using siteDetail::forMonicOf;
using siteDetail::siteOf;
using siteDetail::SiteTables;
using siteDetail::SortedMoments;
using siteDetail::turn;

//! What local expansions at sites need.
template<class Real>
struct ExpansionTask
{
    SortedParticles<Real> particles;
    SortedMoments<Real> moments;
    SiteTables<Real> tables;
    const Real* L;
    const int* cellOf;
    int stride;
    Real inverseUnit;
    Real* values; //!< [value][n] of sorted particles
};

//! Independent components of derivatives of a degree.
constexpr int componentCount(int degree)
{
    return degree == 0 ? 1 : degree == 1 ? 3 : degree == 2 ? 6 : c_thirds;
}
//! Those of all degrees below.
constexpr int componentsBelow(int degree)
{
    return degree == 0 ? 0 : componentsBelow(degree - 1) + componentCount(degree - 1);
}
//! The component of one degree less that a component is a derivative of, and the axis.
constexpr int lowerOf(int degree, int component)
{
    return degree == 1 ? 0 : degree == 2 ? firstAxis(component) : secondOfThird(component);
}
constexpr int axisOf(int degree, int component)
{
    return degree == 1 ? component : degree == 2 ? secondAxis(component) : axisOfThird(component);
}
//! Coefficients of all derivatives below a degree.
constexpr int roomBelow(int degree, int order)
{
    return degree == 0 ? 0
                       : roomBelow(degree - 1, order)
                                 + componentCount(degree - 1) * derivativeCount(order, degree - 1);
}

//! Sets the expansions of derivatives of a degree from those of one less, [coefficient][component].
template<int Degree, class Real>
__device__ void derive(const ExpansionTask<Real>& task, Real* room)
{
    constexpr int c_count = componentCount(Degree), c_lower = componentCount(Degree - 1);
    const SiteTables<Real>& tables = task.tables;
    const Real* const from         = room + roomBelow(Degree - 1, tables.order);
    Real* const to                 = room + roomBelow(Degree, tables.order);
    for (int k = static_cast<int>(threadIdx.x); k < c_count * derivativeCount(tables.order, Degree);
         k += c_warp)
    {
        const int component = k % c_count;
        const int first     = tables.placeOf(k / c_count, axisOf(Degree, component));
        Real sum            = 0;
        for (int t = first; t < first + c_terms; t++)
        {
            sum += tables.factors[t]
                   * from[c_lower * tables.sources[t] + lowerOf(Degree, component)];
        }
        to[k] = task.inverseUnit * sum;
    }
    __syncwarp();
}

//! Makes coefficients of solid harmonics those of monic ones.
template<int Degree, class Real>
__device__ void scale(const SiteTables<Real>& tables, Real* room)
{
    constexpr int c_count = componentCount(Degree);
    Real* const values    = room + roomBelow(Degree, tables.order);
    for (int k = static_cast<int>(threadIdx.x); k < c_count * derivativeCount(tables.order, Degree);
         k += c_warp)
    {
        values[k] *= tables.scale[k / c_count];
    }
}

//! Adds what a monic function has of the derivatives of a degree.
template<int Degree, class Real>
__device__ __forceinline__ void
addValues(const SiteTables<Real>& tables, const Real* room, int i, Real A, Real* sum)
{
    constexpr int c_count = componentCount(Degree);
    if (i < derivativeCount(tables.order, Degree))
    {
        const Real* const own = room + roomBelow(Degree, tables.order) + c_count * i;
        for (int c = 0; c < c_count; c++)
        {
            sum[componentsBelow(Degree) + c] += A * own[c];
        }
    }
}

//! Third derivatives times theta: pullOf() of the expansions of the CPU.
template<class Real>
__device__ __forceinline__ Real pullAlong(const Real* t, const Real* theta, int axis)
{
    const Real xzz = -t[0] - t[3], yzz = -t[1] - t[4], zzz = -t[2] - t[5];
    const Real of[3][6] = { { t[0], t[3], xzz, t[1], t[2], t[6] },
                            { t[1], t[4], yzz, t[3], t[6], t[5] },
                            { t[2], t[5], zzz, t[6], xzz, yzz } };
    return siteDetail::doubleDot(of[axis], theta);
}

/*! \brief A warp per slot: the expansions of the potential and of its derivatives in shared memory, a
 *         particle a lane. Particles of cells without a slot get nothing.
 *  \tparam Derivatives  the degree of the highest that are needed: 1 to 3 */
template<int Derivatives, class Real>
__global__ void __launch_bounds__(c_warp) evaluateExpansions(const ExpansionTask<Real> task)
{
    extern __shared__ unsigned char shared[];
    const SiteTables<Real>& tables = task.tables;
    Real* const room               = reinterpret_cast<Real*>(shared);
    const int slot = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
    const int cell = task.cellOf[slot];
    if (cell < 0 || task.particles.start[cell] == task.particles.start[cell + 1])
    {
        return;
    }
    // phi = sum_i L_i u_i(b / unit) / unit
    const Real u = task.inverseUnit;
    for (int i = lane; i < coefficientCount(tables.order); i += c_warp)
    {
        room[i] = u * task.L[static_cast<size_t>(i) * task.stride + slot];
    }
    __syncwarp();
    derive<1>(task, room);
    scale<0>(tables, room);
    if constexpr (Derivatives > 1)
    {
        derive<2>(task, room);
        if constexpr (Derivatives > 2)
        {
            derive<3>(task, room);
            scale<3>(tables, room);
        }
        scale<2>(tables, room);
    }
    scale<1>(tables, room);
    __syncwarp();
    for (int i = task.particles.start[cell] + lane; i < task.particles.start[cell + 1]; i += c_warp)
    {
        const Real4<Real> a = load(task.particles.xq + i);
        const Real x = a.x * u, y = a.y * u, z = a.z * u;
        const Real r2                              = x * x + y * y + z * z;
        Real sum[componentsBelow(Derivatives + 1)] = {};
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
                           addValues<0>(tables, room, k, A, sum);
                           addValues<1>(tables, room, k, A, sum);
                           if constexpr (Derivatives > 1)
                           {
                               addValues<2>(tables, room, k, A, sum);
                           }
                           if constexpr (Derivatives > 2)
                           {
                               addValues<3>(tables, room, k, A, sum);
                           }
                       });
            turn(x, y, &re, &im);
        }
        const auto write = [&](int value, Real number)
        { task.values[static_cast<size_t>(value) * task.particles.n + i] = number; };
        for (int k = 0; k < siteValueCount(0, Derivatives > 1); k++)
        {
            write(k, sum[k]);
        }
        if constexpr (Derivatives > 2)
        {
            const auto site = siteOf<2>(task.moments, i, Real(0));
            for (int axis = 0; axis < 3; axis++)
            {
                write(c_curvedValues + axis, pullAlong(sum + c_curvedValues, site.theta, axis));
            }
        }
    }
}

} // namespace

template<class Real>
void DeviceSites<Real>::evaluate(const SiteInput<Real>& input, bool isCurved, cudaStream_t stream)
{
    far_.resize(static_cast<size_t>(siteValueCount(degree_, true)) * input.particles.n);
    if (input.leaves.stride == 0)
    {
        return;
    }
    const ExpansionTask<Real> task = { input.particles,
                                       sorted(),
                                       tables(),
                                       input.leaves.L,
                                       input.leaves.cellOf,
                                       input.leaves.stride,
                                       static_cast<Real>(1 / input.unit),
                                       far_.data() };
    const auto launch              = [&](auto kernel, int derivatives)
    {
        const size_t room = static_cast<size_t>(roomBelow(derivatives + 1, order_)) * sizeof(Real);
        kernel<<<input.leaves.stride, c_warp, room, stream>>>(task);
    };
    !isCurved     ? launch(evaluateExpansions<1, Real>, 1)
    : degree_ < 2 ? launch(evaluateExpansions<2, Real>, 2)
                  : launch(evaluateExpansions<3, Real>, 3);
    checkLaunch("local expansions at sites");
}

// The other members are compiled with other files.
template void DeviceSites<float>::evaluate(const SiteInput<float>&, bool, cudaStream_t);
template void DeviceSites<double>::evaluate(const SiteInput<double>&, bool, cudaStream_t);

} // namespace farfield
