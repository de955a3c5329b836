/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sites/device_tangent.h"

#include "operators/scaled_charges.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! What sources are made of.
template<class Real>
struct SourceTask
{
    const Real* q; //!< scaled
    Direction<Real> direction;
    int n;
    double root;
    double scale; //!< of charges, one over the unit
    Real *charges, *dipoles;
    double* found;
};

//! The charge of a source, e.
template<class Real>
__device__ double chargeOf(const SourceTask<Real>& task, int i)
{
    return task.direction.q != nullptr ? static_cast<double>(task.direction.q[i]) : 0;
}

//! A component of the dipole of a source, scaled.
template<class Real>
__device__ double dipoleOf(const SourceTask<Real>& task, size_t i, int k)
{
    return task.direction.x != nullptr ? static_cast<double>(task.q[i])
                                                 * static_cast<double>(task.direction.x[3 * i + k])
                                       : 0;
}

//! One block: the largest strength, which is not a number if one is not, and the sum of charges.
template<class Real>
__global__ void __launch_bounds__(1024) measureSources(const SourceTask<Real> task)
{
    constexpr double c_distance = 0.1; // nm, as strengthOf()
    __shared__ double largest[1024], sum[1024];
    const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    double square = 0, net = 0;
    for (int i = t; i < task.n; i += threads)
    {
        const double q = chargeOf(task, i);
        double own     = q * q;
        for (int k = 0; k < 3; k++)
        {
            const double mu = dipoleOf(task, i, k) / (task.root * c_distance);
            own += mu * mu;
        }
        square = own > square || isnan(own) ? own : square;
        net += q;
    }
    largest[t] = square;
    sum[t]     = net;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2)
    {
        if (t < half)
        {
            const double other = largest[t + half];
            largest[t]         = other > largest[t] || isnan(other) ? other : largest[t];
            sum[t] += sum[t + half];
        }
        __syncthreads();
    }
    if (t == 0)
    {
        task.found[0] = sqrt(largest[0]);
        task.found[1] = sum[0];
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads) makeSources(const SourceTask<Real> task)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < task.n)
    {
        const double q  = chargeOf(task, i) * task.scale;
        task.charges[i] = static_cast<Real>((q != 0 ? q : c_idleCharge<Real>)*task.root);
        for (int k = 0; k < 3; k++)
        {
            task.dipoles[3 * static_cast<size_t>(i) + k] =
                    static_cast<Real>(dipoleOf(task, i, k) * task.scale);
        }
    }
}

//! What a tangent is made of.
template<class Real>
struct CombineTask
{
    SourceTask<Real> source;
    Real unit;
    const Real *gradients, *hessians, *potentialsOfSources, *gradientsOfSources;
    Tangent<Real> tangent;
};

template<class Real>
__global__ void __launch_bounds__(c_threads) combineTangent(const CombineTask<Real> task)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i >= task.source.n)
    {
        return;
    }
    const auto at              = static_cast<size_t>(i);
    const Direction<Real>& own = task.source.direction;
    const Real* const g        = task.gradients + 3 * at;
    const Real* const h        = task.hessians + 6 * at;
    Real v[3]                  = { 0, 0, 0 };
    for (int k = 0; k < 3 && own.x != nullptr; k++)
    {
        v[k] = own.x[3 * at + k];
    }
    if (task.tangent.forces != nullptr)
    {
        const Real q = static_cast<Real>(static_cast<double>(task.source.q[i]) / task.source.root);
        const Real change    = own.q != nullptr ? own.q[i] : Real(0);
        const Real curved[3] = { h[0] * v[0] + h[3] * v[1] + h[4] * v[2],
                                 h[3] * v[0] + h[1] * v[1] + h[5] * v[2],
                                 h[4] * v[0] + h[5] * v[1] + h[2] * v[2] };
        for (int k = 0; k < 3; k++)
        {
            const Real more =
                    task.unit != 0 ? task.unit * task.gradientsOfSources[3 * at + k] : Real(0);
            task.tangent.forces[3 * at + k] = -(change * g[k] + q * (more + curved[k]));
        }
    }
    if (task.tangent.potentials != nullptr)
    {
        const Real more = task.unit != 0 ? task.unit * task.potentialsOfSources[i] : Real(0);
        task.tangent.potentials[i] = more + g[0] * v[0] + g[1] * v[1] + g[2] * v[2];
    }
}

} // namespace

template<class Real>
auto DeviceTangent<Real>::room(int n) -> Room
{
    const auto all = static_cast<size_t>(n);
    forces_.resize(3 * all);
    gradients_.resize(3 * all);
    hessians_.resize(6 * all);
    potentialsOfSources_.resize(all);
    gradientsOfSources_.resize(3 * all);
    Room room;
    room.forces               = forces_.data();
    room.ofCharges.gradients  = gradients_.data();
    room.ofCharges.hessians   = hessians_.data();
    room.ofSources.potentials = potentialsOfSources_.data();
    room.ofSources.gradients  = gradientsOfSources_.data();
    return room;
}

template<class Real>
auto DeviceTangent<Real>::make(const Real* q,
                               const Direction<Real>& direction,
                               int n,
                               double rootCoulomb,
                               cudaStream_t stream) -> Sources
{
    charges_.resize(n);
    dipoles_.resize(3 * static_cast<size_t>(n));
    found_.resize(2);
    SourceTask<Real> task = {
        q, direction, n, rootCoulomb, 0, charges_.data(), dipoles_.data(), found_.data()
    };
    measureSources<Real><<<1, 1024, 0, stream>>>(task);
    checkLaunch("measuring the sources of a tangent");
    double found[2];
    found_.download(found, 2, stream);
    Sources sources;
    if (found[0] != 0)
    {
        task.scale   = 1 / found[0];
        sources.unit = found[0];
        sources.net  = found[1] * task.scale * rootCoulomb;
        makeSources<Real><<<blocksFor(n, c_threads), c_threads, 0, stream>>>(task);
        checkLaunch("making the sources of a tangent");
    }
    return sources;
}

template<class Real>
void DeviceTangent<Real>::combine(const Real* q,
                                  const Direction<Real>& direction,
                                  double unit,
                                  int n,
                                  double rootCoulomb,
                                  const Tangent<Real>& tangent,
                                  cudaStream_t stream) const
{
    const SourceTask<Real> source = { q, direction, n, rootCoulomb, 0, nullptr, nullptr, nullptr };
    const CombineTask<Real> task  = {
         source,           static_cast<Real>(unit),     gradients_.data(),
         hessians_.data(), potentialsOfSources_.data(), gradientsOfSources_.data(),
         tangent
    };
    combineTangent<Real><<<blocksFor(n, c_threads), c_threads, 0, stream>>>(task);
    checkLaunch("the tangent");
}

template class DeviceTangent<float>;
template class DeviceTangent<double>;

} // namespace farfield
