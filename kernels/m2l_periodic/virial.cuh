/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The virial of the periodic M2L: strain derivatives of its operators between the spectra
 * of the multipoles.
 *
 *  Shared memory decides the time: everything in it is read as vectors, and a block takes several
 *  representatives, for which it reads the table of pairs once.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_CUH

#include "m2l_periodic/strain.cuh"

namespace farfield
{

//! The sparse matrix that estimates multipoles of the high order (Reduction::phasedC()), by
//! columns.
template<class Real>
struct LiftView
{
    int n;            //!< coefficients of the order in use
    int high;         //!< and of the high order
    const int* start; //!< [high - n + 1]
    const int* row;
    const Real* value;
};

//! Representatives of a block where there are many of them.
constexpr int c_virialGroup = 4;
//! Threads of a block: many for a single representative, so that few blocks fill the device.
template<int Group>
constexpr int c_virialThreads = (Group == 1) ? 512 : 256;

//! Where the data of a representative lie in shared memory.
template<class Real, int Columns>
struct VirialMemory
{
    Row<Real, Columns>* x; //!< [high] spectra of the copies, real and imaginary parts
    Row<Real, 4>* sums;    //!< [count] components 0 to 3 of the lattice sums, if they are staged
    Real* lastSums;        //!< [count] component 4

    //! Rows of spectra, with one that aligns what follows them.
    FARFIELD_HD static int rows(int high) { return (high + 1) / 2 * 2; }
    //! Bytes of a representative.
    FARFIELD_HD static size_t bytes(int high, int count, bool staged)
    {
        const size_t all = rows(high) * sizeof(Row<Real, Columns>)
                           + (staged ? count * (sizeof(Row<Real, 4>) + sizeof(Real)) : 0);
        return (all + 15) / 16 * 16;
    }
    __device__ VirialMemory(unsigned char* memory, int high, int count) :
        x(reinterpret_cast<Row<Real, Columns>*>(memory)),
        sums(reinterpret_cast<Row<Real, 4>*>(x + rows(high))),
        lastSums(reinterpret_cast<Real*>(sums + count))
    {
    }
};

//! Row and column of an element of the lower triangle.
__device__ __forceinline__ void triangleIndices(int e, int* i, int* j)
{
    // the root is nearly right
    int row = static_cast<int>((sqrtf(8.0F * static_cast<float>(e) + 1.0F) - 1.0F) * 0.5F);
    row += (triangle(row + 1) <= e) ? 1 : 0;
    row -= (triangle(row) > e) ? 1 : 0;
    *i = row;
    *j = e - triangle(row);
}

/*! \brief 1/2 X* (d kappa / d strain) X of representatives with their copies.
 *
 *  X of a copy has the signs of its reflections, which are those of the strain components too.
 *  \param[in]  pairs     [high (high + 1) / 2] in the order of operators
 *  \param[in]  scale     1/4 over the cells, and the units
 *  \param[in]  staged    the lattice sums fit into shared memory
 *  \param[out] partial   [representatives][StrainCount] */
template<class Real, int Columns, int Group>
__global__ void __launch_bounds__(c_virialThreads<Group>)
        virialKernel(WaveGrid waves,
                     LiftView<Real> lift,
                     StrainView<Real> strain,
                     const SumPair<Real>* __restrict__ pairs,
                     const Complex<Real>* __restrict__ spectrum,
                     double scale,
                     bool staged,
                     double* __restrict__ partial)
{
    extern __shared__ __align__(16) unsigned char s_virial[];
    constexpr int c_threads = c_virialThreads<Group>;
    constexpr int c_warps   = c_threads / 32;
    __shared__ double s_sums[c_warps][Group * StrainCount];
    constexpr int c_copies = Columns / 2;
    using Memory           = VirialMemory<Real, Columns>;
    const size_t bytes     = Memory::bytes(lift.high, strain.count, staged);
    const int first        = blockIdx.x * Group;
    const int members      = min(Group, strain.representatives - first);
    const int thread       = static_cast<int>(threadIdx.x);

    for (int g = 0; g < members; g++)
    {
        const Memory own(s_virial + g * bytes, lift.high, strain.count);
        const int index = first + g;
        const int row   = index / waves.ranges[2];
        const int kx    = index - row * waves.ranges[2];
        const int kz    = row / waves.ranges[1];
        const int ky    = row - kz * waves.ranges[1];
        for (int i = thread; staged && i < strain.count; i += c_threads)
        {
            Row<Real, 4> four;
            for (int c = 0; c < 4; c++)
            {
                four.value[c] = strain.component(c, index)[i];
            }
            own.sums[i]     = four;
            own.lastSums[i] = strain.component(4, index)[i];
        }
        for (int e = thread; e < lift.n * c_copies; e += c_threads)
        {
            const int copy  = e % c_copies;
            const int j     = e / c_copies;
            const int wave  = waves.wave(kz, ky, kx, copy);
            Complex<Real> v = { 0, 0 };
            if (wave >= 0)
            {
                v = spectrum[static_cast<size_t>(j) * waves.stride + wave];
            }
            v                            = Phase(j, copy).forward(v);
            own.x[j].value[2 * copy]     = v.re;
            own.x[j].value[2 * copy + 1] = v.im;
        }
    }
    __syncthreads();
    for (int e = thread; e < (lift.high - lift.n) * Columns; e += c_threads)
    {
        const int c = e / Columns;
        const int k = e % Columns;
        for (int g = 0; g < members; g++)
        {
            const Memory own(s_virial + g * bytes, lift.high, strain.count);
            Real sum = 0;
            for (int i = lift.start[c]; i < lift.start[c + 1]; i++)
            {
                sum += lift.value[i] * own.x[lift.row[i]].value[k];
            }
            own.x[lift.n + c].value[k] = sum;
        }
    }
    __syncthreads();

    double total[Group][StrainCount] = {};
    const int elements               = triangle(lift.high);
    constexpr int c_run              = 64; // single precision carries as many terms
    for (int begin = thread; begin < elements; begin += c_run * c_threads)
    {
        Real sum[Group][StrainCount] = {};
        for (int e = begin; e < min(begin + c_run * c_threads, elements); e += c_threads)
        {
            int i, j;
            triangleIndices(e, &i, &j);
            const SumPair<Real> pair = pairs[e];
            const Real twice         = (i == j) ? Real(1) : Real(2);
#pragma unroll
            for (int g = 0; g < Group; g++)
            {
                if (g >= members)
                {
                    break;
                }
                const Memory own(s_virial + g * bytes, lift.high, strain.count);
                const Row<Real, Columns> xi = own.x[i];
                const Row<Real, Columns> xj = own.x[j];
                Real t[4]                   = {};
#pragma unroll
                for (int copy = 0; copy < c_copies; copy++)
                {
                    t[copy] = twice
                              * (xi.value[2 * copy] * xj.value[2 * copy]
                                 + xi.value[2 * copy + 1] * xj.value[2 * copy + 1]);
                }
                const Real both = t[0] + t[3];
                const Real one  = t[1] + t[2];
                const Real even = both + one;
                // copies 1 and 3 reflect z, 2 and 3 reflect y
                const Real factor[StrainCount] = {
                    even, even, t[0] + t[1] - t[2] - t[3], t[0] - t[1] + t[2] - t[3], both - one
                };
                Real a[StrainCount], b[StrainCount];
                if (staged)
                {
                    const Row<Real, 4> a4 = own.sums[pair.index[0]];
                    const Row<Real, 4> b4 = own.sums[pair.index[1]];
#pragma unroll
                    for (int c = 0; c < 4; c++)
                    {
                        a[c] = a4.value[c];
                        b[c] = b4.value[c];
                    }
                    a[4] = own.lastSums[pair.index[0]];
                    b[4] = own.lastSums[pair.index[1]];
                }
                else
                {
#pragma unroll
                    for (int c = 0; c < StrainCount; c++)
                    {
                        a[c] = strain.component(c, first + g)[pair.index[0]];
                        b[c] = strain.component(c, first + g)[pair.index[1]];
                    }
                }
#pragma unroll
                for (int c = 0; c < StrainCount; c++)
                {
                    sum[g][c] += factor[c] * (pair.value[0] * a[c] + pair.value[1] * b[c]);
                }
            }
        }
#pragma unroll
        for (int g = 0; g < Group; g++)
        {
            for (int c = 0; c < StrainCount; c++)
            {
                total[g][c] += static_cast<double>(sum[g][c]);
            }
        }
    }
#pragma unroll
    for (int g = 0; g < Group; g++)
    {
#pragma unroll
        for (int c = 0; c < StrainCount; c++)
        {
            double sum = total[g][c];
            for (int offset = 16; offset > 0; offset /= 2)
            {
                sum += __shfl_down_sync(0xffffffffU, sum, offset);
            }
            if (thread % 32 == 0)
            {
                s_sums[thread / 32][g * StrainCount + c] = sum;
            }
        }
    }
    __syncthreads();
    if (thread < members * StrainCount)
    {
        double sum = 0;
        for (int warp = 0; warp < c_warps; warp++)
        {
            sum += s_sums[warp][thread];
        }
        const int index = first + thread / StrainCount;
        const int row   = index / waves.ranges[2];
        const int count = waves.multiplicity(
                row / waves.ranges[1], row % waves.ranges[1], index % waves.ranges[2]);
        partial[static_cast<size_t>(first) * StrainCount + thread] = scale * count * sum;
    }
}

//! Threads of a block of virialSumKernel().
constexpr int c_virialSumThreads = 512;

//! Adds the sums of all representatives, in a fixed order; a block per component.
__global__ void __launch_bounds__(c_virialSumThreads)
        virialSumKernel(const double* __restrict__ partial,
                        int representatives,
                        double* __restrict__ virial)
{
    __shared__ double s_sums[c_virialSumThreads];
    const int c      = static_cast<int>(blockIdx.x);
    const int thread = static_cast<int>(threadIdx.x);
    double sum       = 0;
#pragma unroll 4
    for (int i = thread; i < representatives; i += c_virialSumThreads)
    {
        sum += partial[static_cast<size_t>(i) * StrainCount + c];
    }
    s_sums[thread] = sum;
    __syncthreads();
    for (int half = c_virialSumThreads / 2; half > 0; half /= 2)
    {
        if (thread < half)
        {
            s_sums[thread] += s_sums[thread + half];
        }
        __syncthreads();
    }
    if (thread == 0)
    {
        virial[c] += s_sums[0];
    }
}

} // namespace farfield

#endif
