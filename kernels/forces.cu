/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

template<class Real>
struct CollectTask
{
    int n;
    const int* place;
    const Real4<Real>* near;
    const Real4<Real>* far;
    Real rotation[3][3];
    bool replace;
    Real* forces;
};

//! A thread per particle in the caller's order; rows of three are written as one array.
template<class Real>
__global__ void __launch_bounds__(c_threads) collectKernel(const CollectTask<Real> task)
{
    __shared__ Real staged[3 * c_threads];
    const int first = static_cast<int>(blockIdx.x) * c_threads;
    const int count = min(c_threads, task.n - first);
    const int own   = static_cast<int>(threadIdx.x);
    if (own < count)
    {
        const int s         = task.place[first + own];
        const Real4<Real> a = task.near[s];
        const Real4<Real> b = task.far[s];
        const Real x = a.x + b.x, y = a.y + b.y, z = a.z + b.z;
        for (int k = 0; k < 3; k++)
        {
            staged[3 * own + k] =
                    x * task.rotation[0][k] + y * task.rotation[1][k] + z * task.rotation[2][k];
        }
    }
    __syncthreads();
    Real* to = task.forces + 3 * static_cast<size_t>(first);
    for (int k = own; k < 3 * count; k += c_threads)
    {
        to[k] = task.replace ? staged[k] : to[k] + staged[k];
    }
}

} // namespace

template<class Real>
void collectForces(const SortedParticles<Real>& particles,
                   const Real4<Real>* near,
                   const Real4<Real>* far,
                   const double rotation[3][3],
                   bool replace,
                   Real* forces,
                   cudaStream_t stream)
{
    if (particles.n == 0)
    {
        return;
    }
    CollectTask<Real> task = { particles.n, particles.place, near, far, {}, replace, forces };
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            task.rotation[i][j] = static_cast<Real>(rotation[i][j]);
        }
    }
    collectKernel<Real><<<blocksFor(particles.n, c_threads), c_threads, 0, stream>>>(task);
    checkLaunch("collecting forces");
}

template void collectForces<float>(const SortedParticles<float>&,
                                   const Real4<float>*,
                                   const Real4<float>*,
                                   const double[3][3],
                                   bool,
                                   float*,
                                   cudaStream_t);
template void collectForces<double>(const SortedParticles<double>&,
                                    const Real4<double>*,
                                    const Real4<double>*,
                                    const double[3][3],
                                    bool,
                                    double*,
                                    cudaStream_t);

} // namespace farfield
