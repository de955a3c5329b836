/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the kernels of M2M and L2L share.
 *
 *  Both are products of small dense operators with many columns, the families. A warp computes Rows
 *  coefficients of 32 Columns families: lanes are neighbouring families, operators are the same for
 *  all lanes. Shifts of opposite octants o and 7 - o are opposite, so that their operators differ
 *  in signs (-1)^(l_i + l_j) alone: sums and differences of the two octants do for both, which
 *  halves the work. What couples degrees the wrong way round is zero and left out.
 */
#ifndef FARFIELD_KERNELS_EXPANSIONS_TRANSLATIONS_CUH
#define FARFIELD_KERNELS_EXPANSIONS_TRANSLATIONS_CUH

#include "expansions/expansions.h"

namespace farfield
{

//! From this many families on throughput counts, below it the time of a single block.
constexpr int c_manyFamilies = 8192;

//! Shapes of the launches for few and for many families.
struct FewFamilies
{
    static constexpr int c_rows = 4, c_columns = 1, c_upGroups = 2, c_downWarps = 4, c_unroll = 8;
};
template<class Real>
struct ManyFamilies
{
    // bounded by shared memory in double precision
    static constexpr int c_rows = 8, c_columns = 2, c_upGroups = 16 / sizeof(Real), c_downWarps = 8,
                         c_unroll = 4;
};

//! Calls launch() with the shape for a number of families.
template<class Real, class Launch>
void launchFor(int families, const Launch& launch)
{
    if (families < c_manyFamilies)
    {
        launch(FewFamilies());
    }
    else
    {
        launch(ManyFamilies<Real>());
    }
}

//! Reads neighbouring elements of an operator.
template<int Rows, class Real>
__device__ __forceinline__ void loadRows(const Real* from, Real (&to)[Rows])
{
    constexpr int c_pack = 16 / sizeof(Real);
    struct alignas(16) Pack
    {
        Real v[c_pack];
    };
#pragma unroll
    for (int k = 0; k < Rows / c_pack; k++)
    {
        const Pack pack = reinterpret_cast<const Pack*>(from)[k];
#pragma unroll
        for (int e = 0; e < c_pack; e++)
        {
            to[k * c_pack + e] = pack.v[e];
        }
    }
}

} // namespace farfield

#endif
