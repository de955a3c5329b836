/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Two bounds of the time of M2L on a GPU: products without memory, memory without products.
 *
 *  The reference microkernels of Kohnke et al., Int. J. High Perform. Comput. Appl. 35, 97 (2021),
 *  doi:10.1177/1094342020964857. They only queue work; the caller takes the time.
 */
#ifndef FARFIELD_BENCH_MICROKERNELS_H
#define FARFIELD_BENCH_MICROKERNELS_H

#include <cstddef>

#include <cuda_runtime_api.h>

namespace farfield
{
namespace bench
{

//! M2L of one level.
struct M2lWork
{
    int order;
    int ws;          //!< direct range
    long long cells; //!< all of them full
};

//! Sources of a target cell: 189 for ws = 1.
int sourcesPerCell(int ws);
//! Multiply-adds with one dense operator for each source.
double classicalMultiplyAdds(const M2lWork& work);
/*! \brief Multiply-adds if displacements that reflections relate share their products, as the
 *         symmetric engine does in a rectangular box.
 *  \param[in] skipZeros  leave out operator elements that vanish by symmetry */
double symmetricMultiplyAdds(const M2lWork& work, bool skipZeros);

/*! \brief Compute-bound: so many multiply-adds, on registers only.
 *  \param[in] sink  device memory, one number; never written to
 *  \returns the number done: that asked for, rounded to whole rounds of all threads, at least one
 */
template<class Real>
double computeBound(double multiplyAdds, Real* sink, cudaStream_t stream);

//! Numbers that memoryBound() reads as operators.
size_t memoryBoundOperators(const M2lWork& work);
//! Numbers that memoryBound() reads as expansions.
size_t memoryBoundExpansions(const M2lWork& work);
//! Bytes that memoryBound() reads through the caches.
template<class Real>
double memoryBoundBytes(const M2lWork& work);
/*! \brief Memory-bound: for each target and source the operator and the multipole expansion are
 *         read once, with a multiply-add per operator element and no reuse.
 *  \param[in] operators   [memoryBoundOperators()] device memory, aligned to 16 bytes
 *  \param[in] expansions  [memoryBoundExpansions()] device memory
 *  \param[in] sink        device memory, one number; never written to with finite input */
template<class Real>
void memoryBound(const M2lWork& work,
                 const Real* operators,
                 const Real* expansions,
                 Real* sink,
                 cudaStream_t stream);

} // namespace bench
} // namespace farfield

#endif
