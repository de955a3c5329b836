/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/wave_products.h"

#include <algorithm>
#include <cmath>

#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

//! What a coefficient is multiplied with, as bits: degree modulo 4, and parities along y and z.
__device__ __forceinline__ bool changesSign(unsigned int phase, int copy)
{
    const bool y = (copy & c_copyReflectsY) != 0 && (phase & 4U) != 0;
    const bool z = (copy & c_copyReflectsZ) != 0 && (phase & 8U) != 0;
    return y != z;
}
template<class Real>
__device__ __forceinline__ Complex<Real>
turned(Complex<Real> v, unsigned int phase, int copy, bool backwards)
{
    const unsigned int degree = phase & 3U;
    const bool isOdd          = (degree & 1U) != 0;
    // (-i)^l, or i^l
    const bool negateRe = backwards ? degree == 1 || degree == 2 : degree >= 2;
    const bool negateIm = backwards ? degree >= 2 : degree == 1 || degree == 2;
    const bool sign     = changesSign(phase, copy);
    const Real re = isOdd ? v.im : v.re, im = isOdd ? v.re : v.im;
    return { negateRe != sign ? -re : re, negateIm != sign ? -im : im };
}

//! Columns of coefficients with their phases: real and imaginary part of each copy.
template<int Copies, class Real>
struct Columns
{
    Row<Real, 2 * Copies> of;
};

/*! \brief Y = kappa X of the copies of a representative.
 *
 *  Where products are wanted, X Y is summed; else Y goes back to the spectrum.
 *  \param[in] negative  copies whose products are subtracted, as bits */
template<int Copies, bool Products, class Real>
__global__ void __launch_bounds__(c_threads) waveKernel(const __grid_constant__ WaveGrid waves,
                                                        int coefficients,
                                                        const unsigned char* __restrict__ phases,
                                                        const Real* __restrict__ kappas,
                                                        unsigned int negative,
                                                        Complex<Real>* spectra,
                                                        double* sums)
{
    extern __shared__ char memory[];
    auto* x                  = reinterpret_cast<Columns<Copies, Real>*>(memory);
    const int representative = blockIdx.x;
    const int ix             = representative % waves.ranges[2];
    const int iy             = representative / waves.ranges[2] % waves.ranges[1];
    const int iz             = representative / waves.ranges[2] / waves.ranges[1];
    int wave[Copies];
#pragma unroll
    for (int copy = 0; copy < Copies; copy++)
    {
        wave[copy] = waves.wave(iz, iy, ix, copy);
    }
    for (int a = threadIdx.x; a < coefficients; a += c_threads)
    {
#pragma unroll
        for (int copy = 0; copy < Copies; copy++)
        {
            Complex<Real> v = { 0, 0 };
            if (wave[copy] >= 0)
            {
                v = turned(spectra[static_cast<size_t>(a) * waves.stride + wave[copy]],
                           phases[a],
                           copy,
                           false);
            }
            x[a].of.value[2 * copy]     = v.re;
            x[a].of.value[2 * copy + 1] = v.im;
        }
    }
    __syncthreads();
    const Real* kappa = kappas + static_cast<size_t>(representative) * coefficients * coefficients;
    double sum        = 0;
    for (int a = threadIdx.x; a < coefficients; a += c_threads)
    {
        Real y[2 * Copies] = {};
        for (int b = 0; b < coefficients; b++)
        {
            // the matrix is symmetric: neighbouring threads read neighbours
            const Real k   = kappa[static_cast<size_t>(b) * coefficients + a];
            const auto row = x[b].of;
#pragma unroll
            for (int c = 0; c < 2 * Copies; c++)
            {
                y[c] += k * row.value[c];
            }
        }
#pragma unroll
        for (int copy = 0; copy < Copies; copy++)
        {
            if (wave[copy] < 0)
            {
                continue;
            }
            if constexpr (Products)
            {
                const double own = static_cast<double>(x[a].of.value[2 * copy])
                                           * static_cast<double>(y[2 * copy])
                                   + static_cast<double>(x[a].of.value[2 * copy + 1])
                                             * static_cast<double>(y[2 * copy + 1]);
                sum += (negative >> copy & 1U) != 0 ? -own : own;
            }
            else
            {
                spectra[static_cast<size_t>(a) * waves.stride + wave[copy]] = turned(
                        Complex<Real>{ y[2 * copy], y[2 * copy + 1] }, phases[a], copy, true);
            }
        }
    }
    if constexpr (Products)
    {
        sum = blockSum(sum);
        if (threadIdx.x == 0)
        {
            sums[representative] = sum * waves.multiplicity(iz, iy, ix);
        }
    }
}

template<bool Products, class Real>
void launch(const WaveGrid& waves,
            int representatives,
            int coefficients,
            const unsigned char* phases,
            const Real* kappas,
            int derivative,
            Complex<Real>* spectra,
            double* sums,
            cudaStream_t stream)
{
    unsigned int negative = 0;
    for (int copy = 0; copy < 4; copy++)
    {
        negative |= signOfDerivative(derivative, axesOfCopy(copy)) < 0 ? 1U << copy : 0U;
    }
    const auto run = [&](auto kernel, int copies)
    {
        const size_t bytes = sizeof(Real) * 2 * copies * coefficients;
        kernel<<<representatives, c_threads, bytes, stream>>>(
                waves, coefficients, phases, kappas, negative, spectra, sums);
    };
    if (waves.copies == 4)
    {
        run(waveKernel<4, Products, Real>, 4);
    }
    else
    {
        run(waveKernel<1, Products, Real>, 1);
    }
    checkLaunch("multiplying waves");
}

} // namespace

template<class Real>
WaveProducts<Real>::WaveProducts(const Grid& grid,
                                 const WaveVectors& waves,
                                 const LegendreBasis& basis,
                                 cudaStream_t stream) :
    coefficients_(basis.count()),
    stride_((static_cast<int>(grid.count()) + 31) / 32 * 32),
    representatives_(waves.representatives()),
    waves_(waveGrid(grid.lengths(), waves.ranges(), waves.copies()))
{
    std::vector<unsigned char> phases;
    for (const Int3& a : basis.powers())
    {
        phases.push_back(static_cast<unsigned char>((a[0] + a[1] + a[2]) % 4 | (a[1] % 2) << 2
                                                    | (a[2] % 2) << 3));
    }
    phases_.upload(phases.data(), phases.size(), stream);
    fields_.resize(static_cast<size_t>(coefficients_) * stride_);
    fields_.clear(stream);
    spectra_.resize(static_cast<size_t>(coefficients_) * waves_.stride);
    transform_.prepare(grid.lengths(),
                       waves_,
                       coefficients_,
                       stride_,
                       deviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

template<class Real>
void WaveProducts<Real>::pack(int representative, const Matrix& K, std::vector<Real>* all) const
{
    Real* to = all->data() + representative * operatorSize();
    for (int i = 0; i < coefficients_ * coefficients_; i++)
    {
        to[i] = static_cast<Real>(K.data()[i]);
    }
}

template<class Real>
void WaveProducts<Real>::multiply(const Operators& kappas, cudaStream_t stream)
{
    launch<false, Real>(waves_,
                        representatives_,
                        coefficients_,
                        phases_.data(),
                        kappas.data(),
                        0,
                        spectra_.data(),
                        nullptr,
                        stream);
}

template<class Real>
void WaveProducts<Real>::products(const Operators& kappas,
                                  int derivative,
                                  double* sums,
                                  cudaStream_t stream)
{
    launch<true, Real>(waves_,
                       representatives_,
                       coefficients_,
                       phases_.data(),
                       kappas.data(),
                       derivative,
                       spectra_.data(),
                       sums,
                       stream);
}

template class WaveProducts<float>;
template class WaveProducts<double>;

} // namespace farfield
