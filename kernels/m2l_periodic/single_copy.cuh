/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Product of the operators of the periodic M2L with the spectrum of the multipoles in skewed
 *         boxes, where every wave vector has an operator of its own.
 *
 *  An operator is read once for one complex column: the time is that of reading one triangle of it.
 *  A thread takes a row. With rows of the triangle one after another neighbouring threads read
 *  different banks of shared memory: left of the diagonal element j of row i is at i (i + 1) / 2 + j,
 *  and 32 neighbouring triangular numbers are different modulo 32; right of it at
 *  j (j + 1) / 2 + i.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_SINGLE_COPY_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_SINGLE_COPY_CUH

#include <cuda_pipeline.h>

#include "m2l_periodic/index.h"
#include "runtime/device.h"

namespace farfield
{

//! Most threads of a block.
constexpr int c_singleCopyThreads = 512;

//! How the product is spread over threads; the same for all blocks.
struct SingleCopyShape
{
    int n;          //!< coefficients
    int warps;      //!< per wave vector
    int width;      //!< neighbouring wave vectors of a block
    int columnSize; //!< elements of the staged spectrum, per wave vector
    int groupSize;  //!< elements of shared memory per wave vector
    bool staged;    //!< operators are brought to shared memory

    int threads() const { return 32 * warps * width; }
    size_t bytes(size_t real) const { return width * groupSize * real; }
};

/*! \brief Chooses a shape.
 *  \param[in] real        size of a number
 *  \param[in] waves       wave vectors
 *  \param[in] neighbours  how many of them share sectors of memory
 *  \param[in] shared      shared memory that a block may have, bytes
 *  \param[in] processors  multiprocessors of the device */
inline SingleCopyShape
singleCopyShape(int n, size_t real, int waves, int neighbours, size_t shared, int processors)
{
    // three blocks of a multiprocessor hide what another one waits for
    constexpr size_t c_several = 64 * 1024;
    SingleCopyShape s          = {};
    s.n                        = n;
    s.warps                    = (n + 31) / 32;
    s.columnSize               = 2 * (n + n % 2);
    const int whole            = s.columnSize + (triangle(n) + 3) / 4 * 4;
    s.staged                   = whole * real <= shared;
    s.groupSize                = s.staged ? whole : s.columnSize;
    s.width                    = 1;
    while (s.width < 4 && s.width < neighbours && 2 * s.bytes(real) <= c_several
           && 2 * s.threads() <= c_singleCopyThreads && waves / (2 * s.width) >= 4 * processors)
    {
        s.width *= 2;
    }
    return s;
}

//! Two neighbouring elements of a column, loaded at once.
template<class Real>
struct alignas(4 * sizeof(Real) < 16 ? 4 * sizeof(Real) : 16) ComplexPair
{
    Complex<Real> first, second;

    //! sum += a first + b second
    __device__ __forceinline__ void addTo(Complex<Real>* sum, Real a, Real b) const
    {
        sum->re += a * first.re;
        sum->im += a * first.im;
        sum->re += b * second.re;
        sum->im += b * second.im;
    }
};

/*! \brief A row of an operator times a column.
 *  \param[in] k     rows of the lower triangle
 *  \param[in] x     [n], one more if n is odd, which is zero
 *  \param[in] row   of this thread
 *  \param[in] tile  first row of the warp */
template<class Real>
__device__ __forceinline__ Complex<Real>
multiplyRow(int n, const Real* __restrict__ k, const ComplexPair<Real>* x, int row, int tile)
{
    Complex<Real> sum = { 0, 0 };
    const Real* lower = k + triangle(row);
    int j             = 0;
#pragma unroll 8
    for (; j < tile; j += 2)
    {
        x[j / 2].addTo(&sum, lower[j], lower[j + 1]);
    }
    // element (j, row); the next one of the column is j + 1 further on
    const Real* upper  = k + triangle(j) + row;
    const int mixedEnd = min(tile + 32, n - n % 2);
#pragma unroll 4
    for (; j < mixedEnd; j += 2)
    {
        const Real* next = upper + j + 1;
        x[j / 2].addTo(&sum, *(j <= row ? lower + j : upper), *(j < row ? lower + j + 1 : next));
        upper = next + j + 2;
    }
#pragma unroll 8
    for (; j + 1 < n; j += 2)
    {
        const Real* next = upper + j + 1;
        x[j / 2].addTo(&sum, *upper, *next);
        upper = next + j + 2;
    }
    if (j < n)
    {
        x[j / 2].addTo(&sum, *upper, Real(0));
    }
    return sum;
}

/*! \brief Replaces M by L in the spectrum.
 *  \param[in]     kappa     [waves][stride], rows of the lower triangle
 *  \param[in]     phases    Phase::code() of a coefficient
 *  \param[in,out] spectrum  [n][waves.stride] */
template<class Real, bool Staged>
__global__ void __launch_bounds__(c_singleCopyThreads)
        singleCopyKernel(SingleCopyShape shape,
                         WaveGrid waves,
                         size_t stride,
                         const Real* __restrict__ kappa,
                         const unsigned int* __restrict__ phases,
                         Complex<Real>* __restrict__ spectrum)
{
    extern __shared__ __align__(16) unsigned char s_multiply[];
    Real* const shared = reinterpret_cast<Real*>(s_multiply);
    const int n        = shape.n;

    const BlockOfWaves block(waves, shape.width, static_cast<int>(blockIdx.x));
    const int groupThreads = 32 * shape.warps;
    const int group        = threadIdx.x / groupThreads;
    const int thread       = threadIdx.x - group * groupThreads;
    const bool active      = block.has(group);
    Real* const own        = shared + group * shape.groupSize;
    Real* const staged     = own + shape.columnSize;
    const Real* operators  = kappa + static_cast<size_t>(block.representative(group)) * stride;
    if (Staged && active)
    {
        // rows are padded to whole lines in memory, to 16 bytes in shared memory
        constexpr int c_step = 16 / sizeof(Real);
        for (int i = c_step * thread; i < triangle(n); i += c_step * groupThreads)
        {
            __pipeline_memcpy_async(staged + i, operators + i, 16);
        }
    }
    __pipeline_commit();

    // Neighbouring threads take neighbouring wave vectors; each keeps its wave vector.
    const int member           = threadIdx.x % shape.width;
    const int first            = threadIdx.x / shape.width;
    const int step             = blockDim.x / shape.width;
    const int wave             = block.wave(member, 0);
    const bool present         = wave >= 0;
    Complex<Real>* const field = spectrum + wave;
    Complex<Real>* const column =
            reinterpret_cast<Complex<Real>*>(shared + member * shape.groupSize);
#pragma unroll 2
    for (int j = first; j < n + n % 2; j += step)
    {
        const bool used = present && j < n;
        column[j] = used ? Phase(phases[j]).forward(field[static_cast<size_t>(j) * waves.stride])
                         : Complex<Real>{ 0, 0 };
    }
    __pipeline_wait_prior(0);
    __syncthreads();

    Complex<Real> sum = { 0, 0 };
    if (active)
    {
        // rows beyond the last repeat it; their sums are not used
        sum = multiplyRow(n,
                          Staged ? staged : operators,
                          reinterpret_cast<const ComplexPair<Real>*>(own),
                          min(thread, n - 1),
                          thread / 32 * 32);
    }
    __syncthreads();
    if (active && thread < n)
    {
        reinterpret_cast<Complex<Real>*>(own)[thread] = sum;
    }
    __syncthreads();
    if (!present)
    {
        return;
    }
#pragma unroll 2
    for (int j = first; j < n; j += step)
    {
        field[static_cast<size_t>(j) * waves.stride] = Phase(phases[j]).backward(column[j]);
    }
}

} // namespace farfield

#endif
