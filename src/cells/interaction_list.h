/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The displacements over which cells of a tree exchange expansions.
 */
#ifndef FARFIELD_CELLS_INTERACTION_LIST_H
#define FARFIELD_CELLS_INTERACTION_LIST_H

#include <vector>

#include "base/vectors.h"

namespace farfield
{

//! A displacement between cells whose parents are near each other and that are not near themselves.
struct ListDisplacement
{
    Int3 D;       //!< target minus source
    bool from[8]; //!< octants of targets that it applies to
};

//! All of them. \param[in] ws  cells are near up to this displacement in each dimension
std::vector<ListDisplacement> interactionList(int ws);

//! A displacement with the axes mirrored whose bits are set: 1 x, 2 y, 4 z.
inline Int3 mirrored(const Int3& D, int axes)
{
    return { (axes & 1) ? -D[0] : D[0], (axes & 2) ? -D[1] : D[1], (axes & 4) ? -D[2] : D[2] };
}

//! Whether edges are those of a rectangular cell: off-diagonal elements below this are rounding.
inline bool areRectangular(const Mat3& edges)
{
    constexpr double c_diagonal = 1e-10; // relative to the diagonal
    return edges.isDiagonal(c_diagonal);
}

} // namespace farfield

#endif
