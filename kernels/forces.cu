/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 64;
//! Particles per thread, so that more reads are under way.
constexpr int c_each  = 2;
constexpr int c_block = c_each * c_threads;

template<class Real>
struct CollectTask
{
    int n;
    const int* place;
    const Real4<Real>* near;
    const Real4<Real>* far;
    const Real* excluded;
    Real rotation[3][3];
    bool replace;
    Real* forces;
};

//! Threads take particles in the caller's order; rows of three are written as one array.
template<class Real>
__global__ void __launch_bounds__(c_threads) collectKernel(const CollectTask<Real> task)
{
    __shared__ Real staged[3 * c_block];
    const int first = static_cast<int>(blockIdx.x) * c_block;
    const int count = min(c_block, task.n - first);
    const int own   = static_cast<int>(threadIdx.x);
    Real* to        = task.forces + 3 * static_cast<size_t>(first);
    // all reads before anything is written
    int place[c_each];
    Real before[3 * c_each];
#pragma unroll
    for (int j = 0; j < c_each; j++)
    {
        const int k = j * c_threads + own;
        place[j]    = (k < count) ? task.place[first + k] : 0;
    }
#pragma unroll
    for (int j = 0; j < 3 * c_each; j++)
    {
        const int k = j * c_threads + own;
        before[j]   = (!task.replace && k < 3 * count) ? to[k] : Real(0);
        if (task.excluded != nullptr && k < 3 * count)
        {
            before[j] += task.excluded[3 * static_cast<size_t>(first) + k];
        }
    }
    Real4<Real> near[c_each], far[c_each];
#pragma unroll
    for (int j = 0; j < c_each; j++)
    {
        near[j] = task.near[place[j]];
        far[j]  = task.far[place[j]];
    }
#pragma unroll
    for (int j = 0; j < c_each; j++)
    {
        const Real x = near[j].x + far[j].x, y = near[j].y + far[j].y, z = near[j].z + far[j].z;
        for (int k = 0; k < 3; k++)
        {
            staged[3 * (j * c_threads + own) + k] =
                    x * task.rotation[0][k] + y * task.rotation[1][k] + z * task.rotation[2][k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 3 * c_each; j++)
    {
        const int k = j * c_threads + own;
        if (k < 3 * count)
        {
            to[k] = before[j] + staged[k];
        }
    }
}

} // namespace

template<class Real>
void collectForces(const SortedParticles<Real>& particles,
                   const Real4<Real>* near,
                   const Real4<Real>* far,
                   const Real* excluded,
                   const double rotation[3][3],
                   bool replace,
                   Real* forces,
                   cudaStream_t stream)
{
    if (particles.n == 0)
    {
        return;
    }
    CollectTask<Real> task = { particles.n, particles.place, near,  far, excluded,
                               {},          replace,         forces };
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            task.rotation[i][j] = static_cast<Real>(rotation[i][j]);
        }
    }
    collectKernel<Real><<<blocksFor(particles.n, c_block), c_threads, 0, stream>>>(task);
    checkLaunch("collecting forces");
}

template void collectForces<float>(const SortedParticles<float>&,
                                   const Real4<float>*,
                                   const Real4<float>*,
                                   const float*,
                                   const double[3][3],
                                   bool,
                                   float*,
                                   cudaStream_t);
template void collectForces<double>(const SortedParticles<double>&,
                                    const Real4<double>*,
                                    const Real4<double>*,
                                    const double*,
                                    const double[3][3],
                                    bool,
                                    double*,
                                    cudaStream_t);

} // namespace farfield
