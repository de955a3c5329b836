/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Launches of the far field beside those of expansions: cells of sources and targets, level 0 of a periodic box,
 *         virials, strained operators.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_FAR_FIELD_KERNELS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_FAR_FIELD_KERNELS_H

#include "pair_kernels/cells_of_levels.h"
#include "pair_kernels/kernel_operators.h"

namespace farfield
{

//! Sorts keys. \param[out] sorted  [count]
void sortKeys(const std::uint64_t* keys,
              int count,
              std::uint64_t* sorted,
              CubRoom* room,
              cudaStream_t stream);
//! Takes the keys at some places. \param[in] shift  bits that are left out: three for each level
void selectKeys(const std::uint64_t* keys,
                const int* places,
                int count,
                int shift,
                std::uint64_t* selected,
                cudaStream_t stream);
//! Where keys are among others, which are sorted and include them. \param[out] slots  [count]
void findSlots(const std::uint64_t* keys,
               int count,
               const std::uint64_t* all,
               int allCount,
               int* slots,
               cudaStream_t stream);

//! Expansions of the cells that hold points, and fields of all cells of a periodic level 0.
template<class Real>
struct Level0Fields
{
    CellsOfLevel cells;
    CellsOfBox box;
    const int* slotOfCell; //!< of all cells, the first component fastest
    int coefficients;
    Real* expansions; //!< [cells][stride]
    int stride;
    Real* fields; //!< [coefficients][fieldStride]
    int fieldStride;
};
template<class Real>
void expansionsToFields(const Level0Fields<Real>& level, cudaStream_t stream);
template<class Real>
void fieldsToExpansions(const Level0Fields<Real>& level, cudaStream_t stream);

//! Parts of the scalar product of two arrays. \param[out] sums  [c_dotParts]
constexpr int c_dotParts = 256;
template<class Real>
void dotParts(const Real* a, const Real* b, size_t count, double* sums, cudaStream_t stream);

//! A sum of operators and their derivatives with weights.
template<class Real>
struct Mixture
{
    const Real* from[c_derivatives];
    Real weights[c_derivatives];
};
template<class Real>
void mix(const Mixture<Real>& mixture, size_t count, Real* to, cudaStream_t stream);

} // namespace farfield

#endif
