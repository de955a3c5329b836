/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Cells of a periodic box of any shape.
 *
 *  The box vectors are B = H G with an integer, lower-triangular H; the rows of G are the edges of
 *  a cell. A cell is an integer triple c, with centre (c + 1/2) G; cells that differ by a row of H
 *  are images of each other, so the cells of a box form the finite group Z^3 / H Z^3.
 */
#ifndef FARFIELD_CELLS_GRID_H
#define FARFIELD_CELLS_GRID_H

#include <array>
#include <vector>

#include "base/vectors.h"
#include "cells/cell_index.h"
#include "cells/cyclic_groups.h"

namespace farfield
{

//! Displacements D of the near field: |D_k| <= ws. The first is 0, then a forward half, then its
//! mirror images.
std::vector<Int3> nearDisplacements(int ws);

//! Integer floor division and remainder of the pair's first member.
inline int floorDivide(int a, int b)
{
    const int q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

//! Parent of a cell.
inline Int3 parentOf(const Int3& c)
{
    return { floorDivide(c[0], 2), floorDivide(c[1], 2), floorDivide(c[2], 2) };
}
//! Which of the eight children of its parent a cell is.
inline int octantOf(const Int3& c)
{
    return (c[0] & 1) | ((c[1] & 1) << 1) | ((c[2] & 1) << 2);
}
//! The child of a cell that is in an octant.
inline Int3 childOf(const Int3& c, int octant)
{
    return { 2 * c[0] + (octant & 1), 2 * c[1] + (octant >> 1 & 1), 2 * c[2] + (octant >> 2) };
}

/*! \brief How many of n cells a particle may be apart from another along an axis without images.
 *
 *  Each displacement then stands for one of the cells, and those of opposite sign have their own. */
inline int mostApart(int n)
{
    return (n - 1) / 2;
}

//! The cells of a box.
class Grid
{
public:
    Grid() = default;
    //! The cells of a box with vectors box (rows, nm) and the integer matrix H.
    Grid(const IntMat& H, const Mat3& box);

    const IntMat& H() const { return H_; }
    const Mat3& box() const { return box_; }
    //! Rows: the edges of a cell, nm.
    const Mat3& edges() const { return G_; }
    //! Maps a position (row vector, nm) to cell coordinates.
    const Mat3& inverseEdges() const { return GInverse_; }
    //! Cube root of the volume of a cell, nm: the unit of length of expansions.
    double unit() const { return unit_; }
    //! Edges in units of unit(): determinant 1.
    Mat3 scaledEdges() const { return G_ / unit_; }
    //! Number of cells in the box.
    long long count() const { return static_cast<long long>(H_[0][0]) * H_[1][1] * H_[2][2]; }

    //! The cells for code that is compiled for the device as well.
    const CellGrid& plain() const { return plain_; }
    //! Brings a cell to its image in the range of index().
    Int3 reduce(const Int3& c) const
    {
        Int3 reduced = c;
        plain_.reduceDistant(reduced.data());
        return reduced;
    }
    //! Position of a reduced cell in storage order, the first component fastest.
    int index(const Int3& c) const { return plain_.index(c.data()); }
    //! The same of a cell that need not be reduced; quick inside the box.
    int indexOfImage(const Int3& c) const
    {
        const bool inside = c[0] >= 0 && c[0] < H_[0][0] && c[1] >= 0 && c[1] < H_[1][1]
                            && c[2] >= 0 && c[2] < H_[2][2];
        return index(inside ? c : reduce(c));
    }
    //! The reduced cell at a position.
    Int3 cell(int index) const
    {
        Int3 c;
        plain_.cell(index, c.data());
        return c;
    }
    //! Displacement D G of cell centres, nm.
    Vec3 displacement(const Int3& D) const { return G_.transpose() * Vec3(D[0], D[1], D[2]); }

    //! The same shape with every cell split in 2 x 2 x 2.
    Grid refined() const;

    //! The group as a product of cyclic groups, see cyclic_groups.h.
    const Int3& lengths() const { return lengths_; }
    //! Position of a cell in a row-major array of lengths().
    int slot(const Int3& c) const;
    //! Number of wave vectors of a real transform, the last dimension halved.
    int waveVectors() const { return lengths_[0] * lengths_[1] * (lengths_[2] / 2 + 1); }
    //! Phases per unit step along each cell index of a wave vector.
    Vec3 phases(int waveVector) const;
    //! 1 or 2: how often a wave vector counts in a sum over all of them.
    int multiplicity(int waveVector) const;

private:
    IntMat H_       = {};
    CellGrid plain_ = {};
    Mat3 box_       = Mat3::Zero();
    Mat3 G_         = Mat3::Zero();
    Mat3 GInverse_  = Mat3::Zero();
    double unit_    = 0;
    IntMat V_       = {};
    Int3 lengths_   = { 0, 0, 0 };
};

/*! \brief Reciprocal powers of g, g^4 = g + 1: their multiples modulo 1 cover a cell evenly, with
 *         consecutive ones far apart (the additive recurrence of Kronecker). */
constexpr std::array<double, 3> c_offsetSteps = { 0.8191725133961644,
                                                  0.671043606703789,
                                                  0.5497004779019701 };

} // namespace farfield

#endif
