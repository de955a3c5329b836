/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Excluded pairs as rows that name each pair at both of its particles.
 */
#ifndef FARFIELD_KERNELS_NEAR_EXCLUSION_ROWS_H
#define FARFIELD_KERNELS_NEAR_EXCLUSION_ROWS_H

#include <vector>

namespace farfield
{

struct ExclusionRows
{
    std::vector<int> offsets;  //!< [n + 1]
    std::vector<int> partners; //!< ascending in each row, without the particle itself
    int longest = 0;           //!< most partners of a particle
};

/*! \brief Makes rows of pairs that are given in either or both directions, perhaps repeatedly.
 *  \throws Error  Unsupported: there are more than a billion */
ExclusionRows exclusionRows(const int* offsets, const int* partners, int n, int threads);

} // namespace farfield

#endif
