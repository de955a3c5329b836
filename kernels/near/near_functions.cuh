/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Near functions of pairs in kernels.
 */
#ifndef FARFIELD_KERNELS_NEAR_NEAR_FUNCTIONS_CUH
#define FARFIELD_KERNELS_NEAR_NEAR_FUNCTIONS_CUH

#include "near/near_functions.h"
#include "near/p2p_warp.h"
#include "operators/near_function.h"

namespace farfield
{

//! 1/b of a pair, 1/nm. \param[in] a, b  see NearFunctionView::terms
template<class Real>
__device__ __forceinline__ Real inverseWidth(WidthRule rule, Real a, Real b)
{
    return rule == WidthRule::RootSumSquare   ? p2pDetail::inverseRoot(a + b)
           : rule == WidthRule::GeometricMean ? a * b
                                              : min(a, b);
}

//! The potential of a charge, and what else is needed of a pair.
template<class Real>
struct PairPotential
{
    Real slope;  //!< see SmoothTerms
    Real value;  //!< f, 1/nm
    Real excess; //!< see SmoothTerms
};

/*! \brief Those of a pair, which may have 1/r.
 *  \param[in] r2       squared distance, nm^2, not 0
 *  \param[in] inverse  1/r
 *  \param[in] a, b     see NearFunctionView::terms */
template<class Real>
__device__ __forceinline__ PairPotential<Real>
potentialOf(const NearFunctionView<Real>& functions, Real r2, Real inverse, Real a, Real b)
{
    if (r2 < functions.range2 && functions.isOfPair(functions.isWide(a), functions.isWide(b)))
    {
        const auto terms =
                smoothTerms(functions.function, r2, inverse, inverseWidth(functions.rule, a, b));
        return { terms.slope, terms.excess + r2 * terms.slope, terms.excess };
    }
    return { inverse * (inverse * inverse), inverse, 0 };
}

/*! \brief What a pair of farther cells has beyond 1/r: nothing beyond the range.
 *  \param[in] a, b  see NearFunctionView::terms */
template<class Real>
__device__ __forceinline__ PairPotential<Real>
correctionOf(const NearFunctionView<Real>& functions, Real r2, Real a, Real b)
{
    if (r2 < functions.range2 && functions.isOfPair(functions.isWide(a), functions.isWide(b)))
    {
        const auto terms =
                pairCorrection(functions.function, r2, 1 / inverseWidth(functions.rule, a, b));
        return { terms.slope, terms.value, terms.value - r2 * terms.slope };
    }
    return { 0, 0, 0 };
}

/*! \brief Calls visit(source, x, y, z) for sorted particles of farther cells, with the displacement of
 *         their cell, nm.
 *  \param[in] edges        as those of the near field: 0 where positions are not relative to cells
 *  \param[in] cell         of the target
 *  \param[in] lane, lanes  the part of the cells that this thread takes */
template<class Real, class Visit>
__device__ __forceinline__ void forFarther(const FartherCells& cells,
                                           const SortedParticles<Real>& particles,
                                           const Real (&edges)[3][3],
                                           int cell,
                                           int lane,
                                           int lanes,
                                           const Visit& visit)
{
    int from[3];
    cells.grid.cell(cell, from);
    for (int number = lane; number < cells.count(); number += lanes)
    {
        int D[3];
        if (!cells.displacement(number, D))
        {
            continue;
        }
        Real shift[3];
        int to[3];
        for (int k = 0; k < 3; k++)
        {
            to[k]    = from[k] + D[k];
            shift[k] = static_cast<Real>(D[0]) * edges[0][k] + static_cast<Real>(D[1]) * edges[1][k]
                       + static_cast<Real>(D[2]) * edges[2][k];
        }
        cells.grid.reduce(to);
        const int* bins = particles.bins(cells.grid.index(to));
        const int end   = particles.endOf(bins);
        for (int j = bins[0]; j < end; j++)
        {
            visit(j, shift[0], shift[1], shift[2]);
        }
    }
}

} // namespace farfield

#endif
