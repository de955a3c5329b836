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

//! That there are not too many. \throws Error  Unsupported, of the device: there are more than a billion
void checkExcludedPairs(long long pairs);

//! Rows in host memory.
class ExclusionRows
{
public:
    /*! \brief Takes pairs that are given in either or both directions, perhaps repeatedly.
     *  \param[in] offsets   [n + 1]
     *  \param[in] partners  of particle i from offsets[i] on
     *  \param[in] n         particles
     *  \param[in] threads   of OpenMP
     *  \throws Error  as checkExcludedPairs() */
    void set(const int* offsets, const int* partners, int n, int threads);

    const std::vector<int>& offsets() const { return offsets_; } //!< [n + 1]
    //! Ascending in each row, without the particle itself.
    const std::vector<int>& partners() const { return partners_; }
    int longest() const { return longest_; } //!< most partners of a particle

private:
    std::vector<int> offsets_, partners_;
    int longest_ = 0;
    std::vector<int> first_, next_, all_; //!< rows with what is repeated, and where the next goes
};

} // namespace farfield

#endif
