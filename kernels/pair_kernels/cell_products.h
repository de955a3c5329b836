/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2M, M2L and L2L as products of matrices with the expansions of many cells, on the device.
 *
 *  A block takes cells of one octant, to which the same operators apply. It goes through these operators, and gathers
 *  for each the expansions of the sources. Sums stay in registers: nothing is written twice, and the order is always
 *  the same. Operators that no cell of a block has a source for are left out.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_CELL_PRODUCTS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_CELL_PRODUCTS_H

#include <array>
#include <vector>

#include "pair_kernels/cells_of_levels.h"

namespace farfield
{

//! How coefficients lie in memory.
struct ProductShape
{
    int coefficients;
    int stride;     //!< coefficients of a cell, padded with zeros
    int depth;      //!< of these in shared memory at a time
    int tile;       //!< rows that a block has
    int rows;       //!< of operators, padded
    bool isRounded; //!< to 11 significant bits, on tensor cores

    //! \param[in] isSingle  in single precision \param[in] mayRound  such rounding does not matter
    ProductShape(int coefficients, bool isSingle, bool mayRound);
    //! Numbers of an operator.
    FARFIELD_HD size_t size() const { return static_cast<size_t>(stride) * rows; }
};

//! Which sources the operators of a level have, and where they are.
class StepsOfLists
{
public:
    //! Those of interactionList().
    void set(int ws, cudaStream_t stream);
    const int* steps() const { return steps_.data(); }
    //! The first step of each octant, and the end.
    const std::array<int, 9>& start() const { return start_; }

private:
    DeviceBuffer<int> steps_; //!< operator, displacement of the parents, octant of the source
    std::array<int, 9> start_ = {};
};

//! What one of the launches below needs of a level.
template<class Real>
struct ProductOfLevel
{
    CellsOfLevel cells;   //!< of the targets
    CellsOfLevel coarser; //!< where there is one
    const Real* T;
    const Real* from;
    Real* to;
};

//! Room for the sums of several blocks that share the steps of some cells.
template<class Real>
using PartialSums = DeviceBuffer<Real>;

//! M of cells of a level from M of their children; T: those of the octants.
template<class Real>
void toParents(const ProductShape& shape, const ProductOfLevel<Real>& level, cudaStream_t stream);
//! L of all cells of some levels from M of the cells in their interaction lists.
template<class Real>
void overLists(const ProductShape& shape,
               const StepsOfLists& steps,
               int ws,
               const std::vector<ProductOfLevel<Real>>& levels,
               PartialSums<Real>* partial,
               cudaStream_t stream);
//! Adds to L of cells of a level what their parents have; T: those of the octants.
template<class Real>
void toChildren(const ProductShape& shape, const ProductOfLevel<Real>& level, cudaStream_t stream);

} // namespace farfield

#endif
