/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Strain derivatives of the operators of the closure: operators that follow a strain, and
 *         the virial.
 *
 *  An element of an operator is a combination of two lattice sums, so that its derivative follows
 *  from those of the sums (see lattice.h).
 */
#ifndef FARFIELD_KERNELS_CLOSURE_STRAIN_CUH
#define FARFIELD_KERNELS_CLOSURE_STRAIN_CUH

#include "closure_index.h"
#include "device.h"

#include "lattice.h"

namespace farfield
{

//! An element (i, j) of an operator with phases as a combination of two lattice sums.
template<class Real>
struct SumPair
{
    int index[2];
    Real value[2];
};

//! Lattice sums of one representative, [StrainCount][sums] with the components far apart.
template<class Real>
struct StrainView
{
    const Real* sums; //!< [StrainCount][representatives][count]
    int count;
    int representatives;

    FARFIELD_HD const Real* component(int c, int representative) const
    {
        return sums + (static_cast<size_t>(c) * representatives + representative) * count;
    }
};

//! Factors of the strain components, by value.
template<class Real>
struct StrainWeights
{
    Real value[StrainCount];
};

/*! \brief kappa = unstrained + sum of weight * d kappa / d strain; a block per representative.
 *  \param[in] pairs  [elements] in the order of the stored operators
 *  \param[in] used   lattice sums that occur */
template<class Real>
__global__ void __launch_bounds__(256) strainKernel(int elements,
                                                    size_t stride,
                                                    int used,
                                                    StrainView<Real> strain,
                                                    StrainWeights<Real> weights,
                                                    const SumPair<Real>* __restrict__ pairs,
                                                    const Real* __restrict__ unstrained,
                                                    Real* __restrict__ kappa)
{
    extern __shared__ __align__(16) unsigned char s_strain[];
    Real* const w = reinterpret_cast<Real*>(s_strain);
    for (int i = threadIdx.x; i < used; i += blockDim.x)
    {
        Real sum = 0;
        for (int c = 0; c < StrainCount; c++)
        {
            sum += weights.value[c] * strain.component(c, blockIdx.x)[i];
        }
        w[i] = sum;
    }
    __syncthreads();
    const size_t first = blockIdx.x * stride;
    for (int e = threadIdx.x; e < elements; e += blockDim.x)
    {
        const SumPair<Real> pair = pairs[e];
        kappa[first + e]         = unstrained[first + e] + pair.value[0] * w[pair.index[0]]
                           + pair.value[1] * w[pair.index[1]];
    }
}

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

/*! \brief 1/2 X* (d kappa / d strain) X of one representative and its copies; a block each.
 *
 *  X of a copy has the signs of its reflections, which are those of the strain components too.
 *  \param[in]  pairs     [high (high + 1) / 2] in the order of operators
 *  \param[in]  scale     1/4 over the cells, and the units
 *  \param[in]  staged    the lattice sums fit into shared memory
 *  \param[out] partial   [representatives][StrainCount] */
template<class Real, int Columns>
__global__ void __launch_bounds__(256) virialKernel(WaveGrid waves,
                                                    LiftView<Real> lift,
                                                    StrainView<Real> strain,
                                                    const SumPair<Real>* __restrict__ pairs,
                                                    const Complex<Real>* __restrict__ spectrum,
                                                    double scale,
                                                    bool staged,
                                                    double* __restrict__ partial)
{
    extern __shared__ __align__(16) unsigned char s_virial[];
    __shared__ double s_sums[256 / 32][StrainCount];
    constexpr int c_copies = Columns / 2;
    Real* const x          = reinterpret_cast<Real*>(s_virial);     // [high][Columns]
    Real* const near       = x + (lift.high * Columns + 3) / 4 * 4; // [count][StrainCount]
    const int index        = blockIdx.x;
    const int row          = index / waves.ranges[2];
    const int kx           = index - row * waves.ranges[2];
    const int kz           = row / waves.ranges[1];
    const int ky           = row - kz * waves.ranges[1];

    if (staged)
    {
        for (int c = 0; c < StrainCount; c++)
        {
            for (int i = threadIdx.x; i < strain.count; i += blockDim.x)
            {
                near[i * StrainCount + c] = strain.component(c, index)[i];
            }
        }
    }
    for (int e = threadIdx.x; e < lift.n * c_copies; e += blockDim.x)
    {
        const int copy  = e % c_copies;
        const int j     = e / c_copies;
        const int wave  = waves.wave(kz, ky, kx, copy);
        Complex<Real> v = { 0, 0 };
        if (wave >= 0)
        {
            v = spectrum[static_cast<size_t>(j) * waves.stride + wave];
        }
        v                             = Phase(j, copy).forward(v);
        x[j * Columns + 2 * copy]     = v.re;
        x[j * Columns + 2 * copy + 1] = v.im;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < (lift.high - lift.n) * Columns; e += blockDim.x)
    {
        const int c = e / Columns;
        const int k = e % Columns;
        Real sum    = 0;
        for (int i = lift.start[c]; i < lift.start[c + 1]; i++)
        {
            sum += lift.value[i] * x[lift.row[i] * Columns + k];
        }
        x[(lift.n + c) * Columns + k] = sum;
    }
    __syncthreads();

    double total[StrainCount] = {};
    const int elements        = triangle(lift.high);
    constexpr int c_run       = 64; // single precision carries as many terms
    for (int first = threadIdx.x; first < elements; first += c_run * blockDim.x)
    {
        Real sum[StrainCount] = {};
        for (int k = 0; k < c_run; k++)
        {
            const int e = first + k * blockDim.x;
            if (e >= elements)
            {
                break;
            }
            // the root is nearly right
            int i = static_cast<int>((sqrtf(8.0F * static_cast<float>(e) + 1.0F) - 1.0F) * 0.5F);
            i += (triangle(i + 1) <= e) ? 1 : 0;
            i -= (triangle(i) > e) ? 1 : 0;
            const int j              = e - triangle(i);
            const SumPair<Real> pair = pairs[e];
            const Real twice         = (i == j) ? Real(1) : Real(2);
            Real t[4]                = {};
#pragma unroll
            for (int copy = 0; copy < c_copies; copy++)
            {
                t[copy] = twice
                          * (x[i * Columns + 2 * copy] * x[j * Columns + 2 * copy]
                             + x[i * Columns + 2 * copy + 1] * x[j * Columns + 2 * copy + 1]);
            }
            const Real both = t[0] + t[3];
            const Real one  = t[1] + t[2];
            const Real even = both + one;
            // copies 1 and 3 reflect z, 2 and 3 reflect y
            const Real factor[StrainCount] = {
                even, even, t[0] + t[1] - t[2] - t[3], t[0] - t[1] + t[2] - t[3], both - one
            };
#pragma unroll
            for (int c = 0; c < StrainCount; c++)
            {
                Real a, b;
                if (staged)
                {
                    a = near[pair.index[0] * StrainCount + c];
                    b = near[pair.index[1] * StrainCount + c];
                }
                else
                {
                    a = strain.component(c, index)[pair.index[0]];
                    b = strain.component(c, index)[pair.index[1]];
                }
                sum[c] += factor[c] * (pair.value[0] * a + pair.value[1] * b);
            }
        }
        for (int c = 0; c < StrainCount; c++)
        {
            total[c] += static_cast<double>(sum[c]);
        }
    }
    for (int c = 0; c < StrainCount; c++)
    {
        for (int offset = 16; offset > 0; offset /= 2)
        {
            total[c] += __shfl_down_sync(0xffffffffU, total[c], offset);
        }
        if (threadIdx.x % 32 == 0)
        {
            s_sums[threadIdx.x / 32][c] = total[c];
        }
    }
    __syncthreads();
    if (threadIdx.x < StrainCount)
    {
        double sum = 0;
        for (unsigned int warp = 0; warp < blockDim.x / 32; warp++)
        {
            sum += s_sums[warp][threadIdx.x];
        }
        partial[static_cast<size_t>(index) * StrainCount + threadIdx.x] =
                scale * waves.multiplicity(kz, ky, kx) * sum;
    }
}

//! Adds the sums of all representatives, in a fixed order; one block of 256 threads.
__global__ void __launch_bounds__(256) virialSumKernel(const double* __restrict__ partial,
                                                       int representatives,
                                                       double* __restrict__ virial)
{
    __shared__ double s_sums[256];
    for (int c = 0; c < StrainCount; c++)
    {
        double sum = 0;
        for (int i = threadIdx.x; i < representatives; i += 256)
        {
            sum += partial[static_cast<size_t>(i) * StrainCount + c];
        }
        s_sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2)
        {
            if (static_cast<int>(threadIdx.x) < half)
            {
                s_sums[threadIdx.x] += s_sums[threadIdx.x + half];
            }
            __syncthreads();
        }
        if (threadIdx.x == 0)
        {
            virial[c] += s_sums[0];
        }
        __syncthreads();
    }
}

} // namespace farfield

#endif
