/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Forces on their way to the caller's array, and how strong the fields are.
 */
#ifndef FARFIELD_KERNELS_EXPANSIONS_FORCE_OUTPUT_CUH
#define FARFIELD_KERNELS_EXPANSIONS_FORCE_OUTPUT_CUH

#include <cub/warp/warp_reduce.cuh>

#include "expansions/expansions.h"

namespace farfield
{

//! A component of a row vector times a matrix.
template<class Real>
__device__ Real turned(const Real4<Real>& v, const Real (&matrix)[3][3], int k)
{
    return v.x * matrix[0][k] + v.y * matrix[1][k] + v.z * matrix[2][k];
}

//! The force on a particle.
template<class Real>
class ForceOutput
{
public:
    /*! \brief Adds all but the far field; early, so that loads are under way.
     *  \param[in] atom  index of the caller
     *  \param[in] near  in the frame of the cells */
    __device__ __forceinline__ void begin(const ForceArrays<Real>& out,
                                          int atom,
                                          const Real4<Real>& near)
    {
        const size_t at = 3 * static_cast<size_t>(atom);
        to_             = out.all + at;
        for (int k = 0; k < 3; k++)
        {
            const Real excluded = (out.excluded != nullptr) ? out.excluded[at + k] : Real(0);
            sum_[k]             = excluded + turned(near, out.rotation, k);
        }
    }
    /*! \brief Adds the far field and writes the sum.
     *  \param[in] far  in the frame of the cells
     *  \returns the square of the field, in units of the cap */
    __device__ __forceinline__ Real finish(const ForceArrays<Real>& out,
                                           Real charge,
                                           const Real4<Real>& far) const
    {
        Real square           = 0;
        const Real poison     = (out.poison != nullptr) ? *out.poison : Real(0);
        const bool acts       = charge > out.largestIdle || charge < -out.largestIdle;
        const Real forceToCap = acts ? out.chargePerCap / charge : Real(0);
        for (int k = 0; k < 3; k++)
        {
            const Real force = sum_[k] + turned(far, out.rotation, k) + poison;
            const Real field = forceToCap * force;
            square += field * field;
            to_[k] = out.replace ? force : to_[k] + force;
        }
        return square;
    }

private:
    Real* to_    = nullptr;
    Real sum_[3] = { 0, 0, 0 };
};

/*! \brief Adds the squares of fields of a warp, all of whose lanes call this.
 *  \param[in] square   in units of the cap; what is not a number counts as beyond it
 *  \param[in] isFirst  whether the thread is the one that counts the evaluation */
template<class Real>
__device__ __forceinline__ void addField(Real square, bool isFirst, FieldSums* fields)
{
    using Sum = cub::WarpReduce<unsigned int>;
    typename Sum::TempStorage nothing; // it takes no memory for a whole warp
    const unsigned int own    = static_cast<unsigned int>(static_cast<Real>(FieldSums::c_one)
                                                       * (square < 1 ? square : Real(1)));
    const unsigned int capped = Sum(nothing).Sum(own);
    if (threadIdx.x % c_warp == 0)
    {
        atomicAdd(&fields->capped, static_cast<unsigned long long>(capped));
    }
    if (isFirst)
    {
        atomicAdd(&fields->evaluations, 1ULL);
    }
}

} // namespace farfield

#endif
