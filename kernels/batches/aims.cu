/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Checks of systems, the errors that their sums are cut for, and what is kept of sums.
 */
#include "batch/legal_box.h"
#include "batches/cells.cuh"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

//! The system of a thread.
__device__ __forceinline__ int ownSystem()
{
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void takeSystemsOf(SystemArrays systems, int particles)
{
    const int s = ownSystem();
    if (s >= systems.count)
    {
        return;
    }
    const int first = systems.offsets[s], n = systems.offsets[s + 1] - first;
    bool isLegal = n >= 0 && (s > 0 ? first >= 0 : first == 0);
    if (particles >= 0)
    {
        const int after = s == systems.count - 1 ? 0 : particles;
        isLegal         = isLegal && first <= particles - n && first + n >= particles - after;
    }
    SystemInBox in = {};
    in.first       = isLegal ? first : 0;
    in.n           = isLegal ? n : 0;
    if (systems.hasImages)
    {
        const double* const given = systems.given + 9 * static_cast<size_t>(s);
        // those of slabs follow from their particles
        const bool isSlab = systems.slabs != nullptr;
        const bool isBox  = isSlab ? isLegalPlane(given) : isLegalBox(given);
        isLegal           = isLegal && isBox;
        if (isBox && !isSlab)
        {
            in.fullness = 1;
            layOutCells(compactBox(given), s, &systems.boxes[s], &in);
        }
    }
    systems.inBox[s] = in;
    atomicMax(&systems.status->largest, in.n);
    if (!isLegal)
    {
        atomicMin(&systems.status->badInput, s);
    }
    if (s == systems.count - 1)
    {
        systems.status->particles = in.first + in.n;
    }
}

__global__ void takeStrainsOf(SystemArrays systems, const double* changes)
{
    const int s = ownSystem();
    if (s >= systems.count)
    {
        return;
    }
    const size_t at      = 9 * static_cast<size_t>(s);
    const double* rows   = systems.given + at;
    const double* change = changes + at;
    double ofSlab[9], inverse[9];
    if (systems.slabs != nullptr)
    {
        changeOfRows(systems.slabs[s], change, ofSlab);
        rows   = systems.slabs[s].rows;
        change = ofSlab;
    }
    invert(rows, inverse);
    for (int a = 0; a < 3; a++)
    {
        for (int b = 0; b < 3; b++)
        {
            double sum = 0;
            for (int k = 0; k < 3; k++)
            {
                sum += inverse[3 * a + k] * change[3 * k + b];
            }
            systems.inBox[s].strain[3 * a + b] = sum;
        }
    }
}

__global__ void beginSumsOf(SystemArrays systems,
                            BatchOptions options,
                            const char* before,
                            bool aims,
                            double tightening,
                            int realSize)
{
    const int s = ownSystem();
    if (s >= systems.count || systems.status->badInput != c_noSystem)
    {
        return;
    }
    if (s == 0)
    {
        systems.status->error = 0;
    }
    const bool isLeft   = systems.isCharged[s] != 0 && (before == nullptr || before[s] == 0);
    systems.isLeft[s]   = isLeft ? 1 : 0;
    systems.contacts[s] = -1;
    if (!aims)
    {
        // written so that NaN fails
        if (!(systems.errors[s] >= 0 && isfinite(systems.errors[s])))
        {
            atomicMin(&systems.status->badError, s);
        }
        return;
    }
    if (isLeft)
    {
        const ForceAim aim(options, systems.traits[s], { tightening, 0, 1 }, realSize);
        systems.aims[s]   = aim;
        systems.errors[s] = aim.error();
    }
    else if (before == nullptr)
    {
        systems.errors[s] = 0;
    }
}

__global__ void keepTotalsOf(SystemArrays systems,
                             const SystemSums* sums,
                             const SystemTotals* totals,
                             bool aims,
                             double* energies,
                             double* virials)
{
    const int k = ownSystem();
    if (k >= systems.status->computed || sums[k].isDetour != 0)
    {
        return;
    }
    const SystemTotals& own = totals[k];
    const int s             = sums[k].system;
    energies[s]             = own.energy;
    const int component[]   = { 0, 3, 4, 3, 1, 5, 4, 5, 2 };
    for (int m = 0; m < 9; m++)
    {
        virials[9 * static_cast<size_t>(s) + m] = own.virial[component[m]];
    }
    systems.contacts[s] = own.contacts > 0 ? sums[k].contact : -1;
    if (own.contacts > 0)
    {
        atomicMin(&systems.status->contact, s);
    }
    bool isLeft = false;
    if (aims)
    {
        ForceAim aim      = systems.aims[s];
        isLeft            = !aim.suffices(own.squares);
        systems.aims[s]   = aim;
        systems.errors[s] = aim.error();
    }
    systems.isLeft[s] = isLeft ? 1 : 0;
    if (!isLeft)
    {
        atomicSub(&systems.status->left, 1);
    }
}

//! A block a computed system.
__global__ void measureErrorsOf(SystemArrays systems,
                                const SystemSums* sums,
                                const double* forces,
                                const double* others,
                                double smearing)
{
    if (static_cast<int>(blockIdx.x) >= systems.status->computed)
    {
        return;
    }
    const SystemSums& s = sums[blockIdx.x];
    if (s.isDetour == 0 || systems.isLeft[s.system] != 0)
    {
        return;
    }
    const double scale = systems.aims[s.system].force();
    double own         = 0;
    for (int i = static_cast<int>(threadIdx.x); i < s.n; i += static_cast<int>(blockDim.x))
    {
        const size_t at = 3 * (static_cast<size_t>(s.first) + i);
        own += squaredErrorOf(forces + at, others + at, scale);
    }
    const double square = blockSum(own);
    if (threadIdx.x == 0)
    {
        // bits of numbers that are not negative ascend with them
        const double error = relativeErrorOf(square, s.n, scale, smearing);
        static_assert(sizeof(unsigned long long) == sizeof(double), "bits of an error");
        atomicMax(reinterpret_cast<unsigned long long*>(&systems.status->error),
                  static_cast<unsigned long long>(__double_as_longlong(error)));
    }
}

//! A block a system.
__global__ void
clearNeutralOf(SystemArrays systems, const char* before, double* forces, double* virials)
{
    const int s = static_cast<int>(blockIdx.x);
    if (systems.isCharged[s] == 0 || before[s] != 0)
    {
        return;
    }
    const SystemInBox& in = systems.inBox[s];
    for (int k = static_cast<int>(threadIdx.x); k < 3 * in.n; k += static_cast<int>(blockDim.x))
    {
        forces[3 * static_cast<size_t>(in.first) + k] = 0;
    }
    if (threadIdx.x < 9)
    {
        virials[9 * static_cast<size_t>(s) + threadIdx.x] = 0;
    }
}

template<class Real>
__global__ void
narrowAll(const double* from, Real* to, size_t count, const BatchStatus* status, bool tangents)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < count)
    {
        const bool isThere = status == nullptr || isComplete(*status, tangents);
        to[k]              = static_cast<Real>(isThere ? from[k] : nan(""));
    }
}

//! Blocks of a thread a system.
int blocksOf(int systems)
{
    return blocksFor(systems, c_batchThreads);
}

} // namespace

void takeSystems(const SystemArrays& systems, int particles, cudaStream_t stream)
{
    if (systems.count > 0)
    {
        takeSystemsOf<<<blocksOf(systems.count), c_batchThreads, 0, stream>>>(systems, particles);
        checkLaunch("checking systems");
    }
}

void takeStrains(const SystemArrays& systems, const double* changes, cudaStream_t stream)
{
    if (systems.count > 0)
    {
        takeStrainsOf<<<blocksOf(systems.count), c_batchThreads, 0, stream>>>(systems, changes);
        checkLaunch("strains of boxes");
    }
}

void beginSums(const SystemArrays& systems,
               const BatchOptions& options,
               const char* before,
               bool aims,
               double tightening,
               int realSize,
               cudaStream_t stream)
{
    if (systems.count > 0)
    {
        beginSumsOf<<<blocksOf(systems.count), c_batchThreads, 0, stream>>>(
                systems, options, before, aims, tightening, realSize);
        checkLaunch("errors of sums");
    }
}

void keepTotals(const SystemArrays& systems,
                const SystemSums* sums,
                const SystemTotals* totals,
                int most,
                bool aims,
                double* energies,
                double* virials,
                cudaStream_t stream)
{
    keepTotalsOf<<<blocksOf(most), c_batchThreads, 0, stream>>>(
            systems, sums, totals, aims, energies, virials);
    checkLaunch("keeping totals");
}

void measureErrors(const SystemArrays& systems,
                   const SystemSums* sums,
                   int most,
                   const double* forces,
                   const double* others,
                   double smearing,
                   cudaStream_t stream)
{
    measureErrorsOf<<<most, c_batchThreads, 0, stream>>>(systems, sums, forces, others, smearing);
    checkLaunch("measuring errors");
}

void clearNeutral(const SystemArrays& systems,
                  const char* before,
                  double* forces,
                  double* virials,
                  cudaStream_t stream)
{
    if (systems.count > 0)
    {
        clearNeutralOf<<<systems.count, c_batchThreads, 0, stream>>>(
                systems, before, forces, virials);
        checkLaunch("clearing forces");
    }
}

template<class Real>
void narrow(const double* from,
            Real* to,
            size_t count,
            const BatchStatus* status,
            bool tangents,
            cudaStream_t stream)
{
    if (count > 0)
    {
        narrowAll<Real><<<blocksFor(static_cast<long long>(count), c_batchThreads),
                          c_batchThreads,
                          0,
                          stream>>>(from, to, count, status, tangents);
        checkLaunch("copying results");
    }
}

template decltype(narrow<float>) narrow<float>;
template decltype(narrow<double>) narrow<double>;

} // namespace farfield
