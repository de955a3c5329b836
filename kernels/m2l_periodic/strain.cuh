/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Strain derivatives of the operators of the periodic M2L, and operators that follow a
 *         strain.
 *
 *  An element of an operator is a combination of two lattice sums, so that its derivative follows
 *  from those of the sums (see lattice_sums.h).
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_STRAIN_CUH
#define FARFIELD_KERNELS_M2L_PERIODIC_STRAIN_CUH

#include "m2l_periodic/index.h"
#include "runtime/device.h"

#include "operators/lattice_sums.h"

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

/*! \brief out = unstrained + along * (strained - unstrained), [size]: derivatives at a strain. */
template<class Real>
__global__ void __launch_bounds__(256) interpolateKernel(size_t size,
                                                         Real along,
                                                         const Real* __restrict__ unstrained,
                                                         const Real* __restrict__ strained,
                                                         Real* __restrict__ out)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size)
    {
        out[i] = unstrained[i] + along * (strained[i] - unstrained[i]);
    }
}

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

} // namespace farfield

#endif
