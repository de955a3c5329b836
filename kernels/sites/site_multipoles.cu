/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Moments of sites in the order of sorted particles, and their multipoles: a warp per cell.
#include <algorithm>
#include <utility>

#include "runtime/matrix3.h"
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

constexpr int c_threads = 128;

//! What sorting needs.
template<class Real>
struct SortTask
{
    SortedParticles<Real> particles;
    const Real *dipoles, *quadrupoles; //!< [n][3], and theta, [n][6] or null
    Real rotation[3][3];
    Real4<Real>*sortedDipoles, *sortedQuadrupoles; //!< see SortedMoments
};

template<class Real>
__global__ void __launch_bounds__(c_threads) sortMoments(const SortTask<Real> task)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i >= task.particles.n)
    {
        return;
    }
    const auto atom        = static_cast<size_t>(task.particles.atom[i]);
    const Real* const mu   = task.dipoles + 3 * atom;
    const auto& rotation   = task.rotation;
    const auto dipoleAlong = [&](int a)
    { return rotation[a][0] * mu[0] + rotation[a][1] * mu[1] + rotation[a][2] * mu[2]; };
    Real xx = 0;
    if (task.quadrupoles != nullptr)
    {
        const Real* const t   = task.quadrupoles + 6 * atom;
        const auto thetaAlong = [&](int a, int b)
        {
            Real sum = 0;
            for (int k = 0; k < 9; k++)
            {
                sum += rotation[a][k / 3] * t[componentOf(k / 3, k % 3)] * rotation[b][k % 3];
            }
            return sum;
        };
        xx                        = thetaAlong(0, 0);
        task.sortedQuadrupoles[i] = {
            thetaAlong(1, 1), thetaAlong(0, 1), thetaAlong(0, 2), thetaAlong(1, 2)
        };
    }
    task.sortedDipoles[i] = { dipoleAlong(0), dipoleAlong(1), dipoleAlong(2), xx };
}

//! Adds q |b|^2 + 2 mu.b, b from the centre of the leaf cell. Quadrupoles have no trace.
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

//! What the multipoles of moments need.
template<class Real>
struct MomentTask
{
    SortedParticles<Real> particles;
    SortedMoments<Real> moments;
    const int* cellOf;
    int stride;
    Real inverseUnit;
    SiteTables<Real> tables;
    //! The derivatives that a harmonic has: entries rows[i] to rows[i + 1].
    const int* rows;
    const int* targets; //!< 3 j + axis: harmonic j is in that along the axis
    const Real* values;
    Real* M;
};

/*! \brief A warp per slot: moments times harmonics in shared memory, a value of m a lane. Of these quadrupoles become
 *         dipoles, and dipoles multipoles, by the transpose of derivatives. */
template<int Degree, class Real>
__global__ void __launch_bounds__(c_warp) addMoments(const MomentTask<Real> task)
{
    extern __shared__ unsigned char shared[];
    const int slot = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
    const int cell = task.cellOf[slot];
    if (cell < 0)
    {
        return;
    }
    const SiteTables<Real>& tables = task.tables;
    const Real u                   = task.inverseUnit;
    const int inner = derivativeCount(tables.order, 1), core = derivativeCount(tables.order, 2);
    const int all        = 3 * inner + (Degree > 1 ? 6 * core : 0);
    Real* const dipoles  = reinterpret_cast<Real*>(shared); // [harmonic][axis]
    Real* const ofSecond = dipoles + 3 * inner;             // [harmonic][component]
    for (int k = lane; k < all; k += c_warp)
    {
        dipoles[k] = 0;
    }
    __syncwarp();
    const int end = task.particles.start[cell + 1];
    for (int i = task.particles.start[cell]; i < end && lane < tables.order; i++)
    {
        const Real4<Real> a = load(task.particles.xq + i);
        const auto site     = siteOf<Degree>(task.moments, i, Real(0));
        const Real x = a.x * u, y = a.y * u, z = a.z * u;
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
                       for (int axis = 0; axis < 3 && j < inner; axis++)
                       {
                           dipoles[3 * j + axis] += site.mu[axis] * A;
                       }
                       for (int c = 0; c < 6 && Degree > 1 && j < core; c++)
                       {
                           ofSecond[6 * j + c] += u * site.theta[c] * A;
                       }
                   });
    }
    __syncwarp();
    for (int k = lane; k < all; k += c_warp)
    {
        dipoles[k] *= tables.scale[k < 3 * inner ? k / 3 : (k - 3 * inner) / 6];
    }
    __syncwarp();
    for (int k = lane; k < 3 * inner && Degree > 1; k += c_warp)
    {
        Real sum = 0;
        for (int t = task.rows[k / 3]; t < task.rows[k / 3 + 1]; t++)
        {
            const int j = task.targets[t] / 3, axis = task.targets[t] % 3;
            sum += task.values[t] * ofSecond[6 * j + componentOf(k % 3, axis)];
        }
        dipoles[k] += sum;
    }
    __syncwarp();
    for (int i = lane; i < coefficientCount(tables.order); i += c_warp)
    {
        Real sum = 0;
        for (int t = task.rows[i]; t < task.rows[i + 1]; t++)
        {
            sum += task.values[t] * dipoles[task.targets[t]];
        }
        task.M[static_cast<size_t>(i) * task.stride + slot] += sum * u;
    }
}

} // namespace

template<class Real>
bool DeviceSites<Real>::setMoments(const Moments<Real>& moments,
                                   const Real* strengths,
                                   int n,
                                   double rootCoulomb,
                                   cudaStream_t stream)
{
    const int degree = moments.quadrupoles != nullptr ? 2 : moments.dipoles != nullptr ? 1 : 0;
    const bool areAsMany =
            degree > 0 && degree == degree_ && strengths_.size() == static_cast<size_t>(n);
    degree_ = 0;
    if (degree == 0)
    {
        return false;
    }
    const auto upload = [&](const Real* values, size_t each, double factor, DeviceBuffer<Real>* to)
    {
        std::vector<Real> scaled(each * n, Real(0)); // all have both
        std::transform(values,
                       values + (values != nullptr ? scaled.size() : 0),
                       scaled.begin(),
                       [=](Real value)
                       { return static_cast<Real>(factor * static_cast<double>(value)); });
        to->upload(scaled.data(), scaled.size(), stream);
    };
    // what evaluations need, too: they may be recorded
    dipolesOfCells_.resize(n);
    far_.resize(static_cast<size_t>(siteValueCount(degree, true)) * n);
    upload(moments.dipoles, 3, rootCoulomb, &dipoles_);
    if (degree > 1)
    {
        quadrupolesOfCells_.resize(n);
        upload(moments.quadrupoles, 6, rootCoulomb / 3, &quadrupoles_);
    }
    strengths_.upload(strengths, n, stream);
    degree_ = degree;
    return areAsMany;
}

template<class Real>
void DeviceSites<Real>::lendDipoles(DeviceBuffer<Real>* dipoles, int n, cudaStream_t stream)
{
    dipolesOfCells_.resize(n);
    strengths_.resize(n);
    strengths_.clear(stream);
    std::swap(dipoles_, *dipoles);
    degree_ = 1;
}

template<class Real>
void DeviceSites<Real>::setOrder(int order, cudaStream_t stream)
{
    const MonicRecurrence monic(order);
    const auto inner = static_cast<size_t>(derivativeCount(order, 1));
    std::vector<int> sources(3 * c_terms * inner), filled(3 * inner, 0);
    std::vector<Real> factors(sources.size());
    std::vector<int> rows(1, 0), targets;
    std::vector<Real> values;
    const std::vector<DerivativeTerm> terms = derivativeTerms(order);
    for (const DerivativeTerm& t : terms)
    {
        const int derivative = 3 * t.to + t.axis;
        const int place      = c_terms * derivative + filled[derivative]++;
        sources[place]       = t.from;
        factors[place]       = static_cast<Real>(t.value);
    }
    for (int i = 0; i < coefficientCount(order); i++)
    {
        for (const DerivativeTerm& t : terms)
        {
            if (t.from == i)
            {
                targets.push_back(3 * t.to + t.axis);
                values.push_back(static_cast<Real>(t.value));
            }
        }
        rows.push_back(static_cast<int>(targets.size()));
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
    if (anyMoments() && particles.n > 0)
    {
        SortTask<Real> task    = {};
        task.particles         = particles;
        task.dipoles           = dipoles_.data();
        task.quadrupoles       = degree_ > 1 ? quadrupoles_.data() : nullptr;
        task.sortedDipoles     = dipolesOfCells_.data();
        task.sortedQuadrupoles = quadrupolesOfCells_.data();
        copyTo(rotation, task.rotation);
        sortMoments<Real><<<blocksFor(particles.n, c_threads), c_threads, 0, stream>>>(task);
        checkLaunch("sorting moments");
    }
}

template<class Real>
void DeviceSites<Real>::addMultipoles(const SortedParticles<Real>& particles,
                                      const LevelView<Real>& leaves,
                                      Real inverseUnit,
                                      cudaStream_t stream)
{
    if (!anyMoments() || leaves.stride == 0 || order_ == 0)
    {
        return;
    }
    const MomentTask<Real> task = { particles,      sorted(), leaves.cellOf, leaves.stride,
                                    inverseUnit,    tables(), rows_.data(),  targets_.data(),
                                    values_.data(), leaves.M };
    const int count =
            3 * derivativeCount(order_, 1) + (degree_ > 1 ? 6 * derivativeCount(order_, 2) : 0);
    const auto kernel = degree_ > 1 ? addMoments<2, Real> : addMoments<1, Real>;
    kernel<<<leaves.stride, c_warp, count * sizeof(Real), stream>>>(task);
    checkLaunch("multipoles of moments");
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
        addSiteSquares<Real><<<blocks, c_threads, 0, stream>>>(
                particles, sorted().dipoles, squares_.data(), scratch->view());
        checkLaunch("squared distances of sites");
    }
    return squares_.data();
}

// The other members are compiled with other files.
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template bool DeviceSites<Real>::setMoments(                                                   \
            const Moments<Real>&, const Real*, int, double, cudaStream_t);                         \
    template void DeviceSites<Real>::lendDipoles(DeviceBuffer<Real>*, int, cudaStream_t);          \
    template void DeviceSites<Real>::setOrder(int, cudaStream_t);                                  \
    template void DeviceSites<Real>::sort(                                                         \
            const SortedParticles<Real>&, const Mat3&, cudaStream_t);                              \
    template void DeviceSites<Real>::addMultipoles(                                                \
            const SortedParticles<Real>&, const LevelView<Real>&, Real, cudaStream_t);             \
    template double* DeviceSites<Real>::sumSquares(                                                \
            const SortedParticles<Real>&, OrderedSums*, cudaStream_t)
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
