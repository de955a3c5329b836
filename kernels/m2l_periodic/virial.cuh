/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The virial of the periodic M2L: strain derivatives of its operators between the spectra
 *         of the multipoles.
 *
 *  The elements of an operator are combinations of few lattice sums, so that products of
 *  coefficients are added up first by the sums that they multiply: product_table.h has the
 *  formulas. A thread takes the products of two orders that add up to a few neighbouring degrees:
 *  of the coefficients of one order it keeps as many in registers, in turn, as there are degrees,
 *  so that one step along the other order loads two coefficients for five products.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_CUH

#include "m2l_periodic/strain.cuh"
#include "m2l_periodic/virial_tasks.h"
#include "operators/product_table.h"

namespace farfield
{

//! What the kernel knows of products, see ProductTable.
template<class Real>
struct VirialView
{
    int n;            //!< coefficients
    int coefficients; //!< with those continued to higher orders
    int order;        //!< of the latter
    int tasks;
    VirialPlaces places;
    const int* start;
    const typename ProductTable<Real>::Source* sources;
    const int* place;  //!< of a coefficient, see VirialPlaces; sines after all cosines
    const Real* scale; //!< of the harmonics
    const VirialTask* task;
};

/*! \brief Shared memory of a representative.
 *
 *  Threads take parts of the copies, of which a coefficient is loaded at once.
 *  \tparam Staged  there is room for spectra and lattice sums, and for all parts */
template<class Real, int Columns, bool Staged>
struct VirialMemory
{
    static constexpr int c_copies = (Columns == 2 || sizeof(Real) > 4) ? 1 : 2; //!< of a part
    static constexpr int c_parts  = Columns / (2 * c_copies);
    static constexpr int c_atOnce = Staged ? c_parts : 1;
    using Values                  = Row<Real, 2 * c_copies>; //!< real and imaginary parts

    Values* x;                      //!< [c_atOnce][2 places] coefficients, scaled
    Row<Real, 4>* derivatives;      //!< [harmonics] components 0 to 3 of the lattice sums, scaled
    Real* lastDerivatives;          //!< [harmonics] component 4
    Row<Real, Columns>* multipoles; //!< [n] spectra of the copies

    static size_t bytes(int n, int places, int harmonics)
    {
        const size_t staged =
                harmonics * (sizeof(Row<Real, 4>) + sizeof(Real)) + n * sizeof(Row<Real, Columns>);
        // a number of harmonics that is odd shifts what follows them
        return 2 * places * c_atOnce * sizeof(Values) + (Staged ? staged + sizeof(Real) * 4 : 0);
    }
    __device__ VirialMemory(unsigned char* memory, int places, int harmonics) :
        x(reinterpret_cast<Values*>(memory)),
        derivatives(reinterpret_cast<Row<Real, 4>*>(x + 2 * places * c_atOnce)),
        lastDerivatives(reinterpret_cast<Real*>(derivatives + harmonics)),
        multipoles(reinterpret_cast<Row<Real, Columns>*>(lastDerivatives + (harmonics + 3) / 4 * 4))
    {
    }
};

//! Sums of products for the degrees of a band, for every copy.
template<class Real, int Copies>
struct ProductBand
{
    using Values                  = Row<Real, 2 * Copies>;
    Real cc[c_virialBand][Copies] = {}, ss[c_virialBand][Copies] = {};
    Real cs[c_virialBand][Copies] = {}, sc[c_virialBand][Copies] = {};

    //! \param[in] a, b  cosine and sine
    __device__ __forceinline__ void add(int s, const Values (&a)[2], const Values (&b)[2])
    {
#pragma unroll
        for (int k = 0; k < 2 * Copies; k++)
        {
            const int copy = k / 2;
            cc[s][copy] += a[0].value[k] * b[0].value[k];
            ss[s][copy] += a[1].value[k] * b[1].value[k];
            cs[s][copy] += a[0].value[k] * b[1].value[k];
            sc[s][copy] += a[1].value[k] * b[0].value[k];
        }
    }
};

//! All products of a task. \param[in] x  [2 places]
template<class Real, int Copies>
__device__ __forceinline__ void addProducts(const VirialTask& task,
                                            const Row<Real, 2 * Copies>* x,
                                            const VirialPlaces& places,
                                            ProductBand<Real, Copies>* band)
{
    using Values    = Row<Real, 2 * Copies>;
    const int fromA = places.start(task.ma);
    const int fromB = places.start(task.mb);
    const auto get  = [&](int place, Values(&to)[2])
    {
        to[0] = x[place];
        to[1] = x[place + places.count];
    };
    // b of degree + s - l is in slot s - l + first, modulo the size of the band
    Values b[c_virialBand][2];
#pragma unroll
    for (int s = 1; s < c_virialBand; s++)
    {
        get(fromB + task.degree + s - task.first, b[s]);
    }
#pragma unroll 1
    for (int l = task.first; l <= task.last; l += c_virialBand)
    {
#pragma unroll
        for (int step = 0; step < c_virialBand; step++)
        {
            if (l + step > task.last)
            {
                break;
            }
            Values a[2];
            get(fromA + l + step, a);
            get(fromB + task.degree - l - step, b[(c_virialBand - step) % c_virialBand]);
#pragma unroll
            for (int s = 0; s < c_virialBand; s++)
            {
                band->add(s, a, b[(s - step + c_virialBand) % c_virialBand]);
            }
        }
    }
}

/*! \brief Adds the products of a band times the strain derivatives of the harmonics.
 *  \param[in] derivatives  gives those of a harmonic
 *  \param[in] firstCopy    of those in the band */
template<class Real, int Copies, class Derivatives>
__device__ __forceinline__ void addStrain(const VirialTask& task,
                                          int order,
                                          const ProductBand<Real, Copies>& band,
                                          const Derivatives& derivatives,
                                          int firstCopy,
                                          double (&total)[StrainCount])
{
    const Real twice = (task.ma == task.mb) ? Real(1) : Real(2);
    const Real minus = (task.ma & 1) ? -twice : twice;
    // copies 1 and 3 reflect z, 2 and 3 reflect y
    const Real reflectedY = (firstCopy & 2) ? Real(-1) : Real(1);
    Real sum[StrainCount] = {};
#pragma unroll
    for (int s = 0; s < c_virialBand; s++)
    {
        const int degree = task.degree + s;
        if (degree < task.ma + task.mb || degree > 2 * order)
        {
            continue;
        }
        const auto add = [&](int m, Real factor, const auto& product)
        {
            Real both = 0, bothZ = 0;
#pragma unroll
            for (int k = 0; k < Copies; k++)
            {
                const Real value = factor * product(k);
                both += value;
                bothZ += ((firstCopy + k) & 1) ? -value : value;
            }
            const int h = degree * degree + degree + m;
            Real d[StrainCount];
            derivatives(h, d);
            sum[StrainXXminusZZ] += both * d[StrainXXminusZZ];
            sum[StrainYYminusZZ] += both * d[StrainYYminusZZ];
            sum[StrainXY] += reflectedY * both * d[StrainXY];
            sum[StrainXZ] += bothZ * d[StrainXZ];
            sum[StrainYZ] += reflectedY * bothZ * d[StrainYZ];
        };
        add(task.mb + task.ma, twice, [&](int k) { return band.cc[s][k] - band.ss[s][k]; });
        add(task.mb - task.ma, minus, [&](int k) { return band.cc[s][k] + band.ss[s][k]; });
        add(-task.mb - task.ma, twice, [&](int k) { return band.cs[s][k] + band.sc[s][k]; });
        if (task.mb != task.ma)
        {
            add(task.ma - task.mb, minus, [&](int k) { return band.cs[s][k] - band.sc[s][k]; });
        }
    }
#pragma unroll
    for (int c = 0; c < StrainCount; c++)
    {
        total[c] += static_cast<double>(sum[c]);
    }
}

constexpr int c_virialThreads = 128;

//! What a block knows of its representative.
template<class Real, int Columns, bool Staged>
class VirialTerms
{
public:
    using Memory = VirialMemory<Real, Columns, Staged>;

    __device__ __forceinline__ VirialTerms(unsigned char* memory,
                                           const WaveGrid& waves,
                                           const VirialView<Real>& table,
                                           const StrainView<Real>& strain,
                                           const Complex<Real>* spectrum,
                                           int index) :
        waves_(waves),
        table_(table), strain_(strain), spectrum_(spectrum), index_(index),
        own_(memory, table.places.count, strain.count)
    {
        const int row = index / waves.ranges[2];
        kx_           = index - row * waves.ranges[2];
        kz_           = row / waves.ranges[1];
        ky_           = row - kz_ * waves.ranges[1];
    }

    //! Brings to shared memory what stays there; the coefficients of no degree become zero.
    __device__ __forceinline__ void stage(int thread) const
    {
        for (int i = thread; i < 2 * Memory::c_atOnce * table_.places.count; i += c_virialThreads)
        {
            own_.x[i] = typename Memory::Values{};
        }
        if constexpr (Staged)
        {
            for (int i = thread; i < strain_.count; i += c_virialThreads)
            {
                Row<Real, 4> four;
                for (int c = 0; c < 4; c++)
                {
                    four.value[c] = scaled(c, i);
                }
                own_.derivatives[i]     = four;
                own_.lastDerivatives[i] = scaled(4, i);
            }
            for (int e = thread; e < table_.n * Columns / 2; e += c_virialThreads)
            {
                const int j           = e / (Columns / 2);
                const int copy        = e % (Columns / 2);
                const Complex<Real> v = spectrum(j, copy);

                own_.multipoles[j].value[2 * copy]     = v.re;
                own_.multipoles[j].value[2 * copy + 1] = v.im;
            }
        }
    }
    //! Sets the coefficients of parts from the first one on.
    __device__ __forceinline__ void setCoefficients(int firstPart, int thread) const
    {
        constexpr int c_copies = Memory::c_copies;
        for (int e = thread; e < table_.coefficients * Memory::c_atOnce; e += c_virialThreads)
        {
            const int i                 = e / Memory::c_atOnce;
            const int part              = e % Memory::c_atOnce;
            typename Memory::Values sum = {};
            for (int k = table_.start[i]; k < table_.start[i + 1]; k++)
            {
                const auto source = table_.sources[k];
#pragma unroll
                for (int c = 0; c < c_copies; c++)
                {
                    const Complex<Real> v =
                            multipole(source.from, (firstPart + part) * c_copies + c);
                    sum.value[2 * c] += source.value * v.re;
                    sum.value[2 * c + 1] += source.value * v.im;
                }
            }
            own_.x[2 * part * table_.places.count + table_.place[i]] = sum;
        }
    }
    //! Adds what tasks contribute to the parts whose coefficients are set.
    __device__ __forceinline__ void add(int firstPart,
                                        int thread,
                                        double (&total)[StrainCount]) const
    {
        constexpr int c_copies = Memory::c_copies;
        const auto derivatives = [this](int h, Real(&to)[StrainCount])
        { this->derivatives(h, to); };
        for (int item = thread; item < table_.tasks * Memory::c_atOnce; item += c_virialThreads)
        {
            const VirialTask task = table_.task[item / Memory::c_atOnce];
            const int part        = item % Memory::c_atOnce;
            ProductBand<Real, c_copies> band;
            addProducts(task, own_.x + 2 * part * table_.places.count, table_.places, &band);
            addStrain(task, table_.order, band, derivatives, (firstPart + part) * c_copies, total);
        }
    }
    //! How often the representative counts.
    __device__ __forceinline__ int multiplicity() const
    {
        return waves_.multiplicity(kz_, ky_, kx_);
    }

private:
    __device__ __forceinline__ Real scaled(int c, int h) const
    {
        return table_.scale[h] * strain_.component(c, index_)[h];
    }
    __device__ __forceinline__ void derivatives(int h, Real (&to)[StrainCount]) const
    {
        if constexpr (Staged)
        {
            const Row<Real, 4> four = own_.derivatives[h];
            for (int c = 0; c < 4; c++)
            {
                to[c] = four.value[c];
            }
            to[4] = own_.lastDerivatives[h];
        }
        else
        {
            for (int c = 0; c < StrainCount; c++)
            {
                to[c] = scaled(c, h);
            }
        }
    }
    __device__ __forceinline__ Complex<Real> spectrum(int j, int copy) const
    {
        const int wave = waves_.wave(kz_, ky_, kx_, copy);
        return (wave < 0) ? Complex<Real>{ 0, 0 }
                          : Phase(j, copy).forward(
                                  spectrum_[static_cast<size_t>(j) * waves_.stride + wave]);
    }
    __device__ __forceinline__ Complex<Real> multipole(int j, int copy) const
    {
        if constexpr (Staged)
        {
            const Row<Real, Columns>& all = own_.multipoles[j];
            return { all.value[2 * copy], all.value[2 * copy + 1] };
        }
        else
        {
            return spectrum(j, copy);
        }
    }

    const WaveGrid& waves_;
    const VirialView<Real>& table_;
    const StrainView<Real>& strain_;
    const Complex<Real>* spectrum_;
    int index_, kx_, ky_, kz_;
    Memory own_;
};

/*! \brief 1/2 X* (d kappa / d strain) X of a representative with its copies; a block each.
 *
 *  X of a copy has the signs of its reflections, which are those of the strain components too.
 *  \param[in]  scale    1/4 over the cells, and the units
 *  \param[out] partial  [blocks][StrainCount] */
template<class Real, int Columns, bool Staged>
__global__ void __launch_bounds__(c_virialThreads)
        virialKernel(const __grid_constant__ WaveGrid waves,
                     const __grid_constant__ VirialView<Real> table,
                     const __grid_constant__ StrainView<Real> strain,
                     const Complex<Real>* __restrict__ spectrum,
                     double scale,
                     double* __restrict__ partial)
{
    extern __shared__ __align__(16) unsigned char s_virial[];
    using Terms      = VirialTerms<Real, Columns, Staged>;
    const int thread = threadIdx.x;
    const Terms terms(s_virial, waves, table, strain, spectrum, static_cast<int>(blockIdx.x));
    terms.stage(thread);
    double total[StrainCount] = {};
    for (int part = 0; part < Terms::Memory::c_parts; part += Terms::Memory::c_atOnce)
    {
        __syncthreads();
        terms.setCoefficients(part, thread);
        __syncthreads();
        terms.add(part, thread, total);
    }

    constexpr int c_warps = c_virialThreads / 32;
    __shared__ double s_sums[c_warps][StrainCount];
#pragma unroll
    for (int c = 0; c < StrainCount; c++)
    {
        double sum = total[c];
        for (int offset = 16; offset > 0; offset /= 2)
        {
            sum += __shfl_down_sync(0xffffffffU, sum, offset);
        }
        if (thread % 32 == 0)
        {
            s_sums[thread / 32][c] = sum;
        }
    }
    __syncthreads();
    if (thread < StrainCount)
    {
        double sum = 0;
        for (int warp = 0; warp < c_warps; warp++)
        {
            sum += s_sums[warp][thread];
        }
        partial[static_cast<size_t>(blockIdx.x) * StrainCount + thread] =
                scale * terms.multiplicity() * sum;
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
