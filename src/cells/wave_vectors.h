/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The wave vectors of the cells of a box, those that reflections relate together.
 *
 *  In a rectangular box the reflections of y and z map wave vectors on each other and only change
 *  signs of coefficients; the transform of real fields has already paired those related by
 *  inversion. So one operator serves up to four wave vectors: a representative and its copies.
 */
#ifndef FARFIELD_CELLS_WAVE_VECTORS_H
#define FARFIELD_CELLS_WAVE_VECTORS_H

#include <array>
#include <vector>

#include "cells/grid.h"

namespace farfield
{

//! Whether a copy is the reflection of z and of y: bits of its number.
constexpr int c_copyReflectsZ = 1;
constexpr int c_copyReflectsY = 2;

//! The axes that a copy mirrors, as reflectionSigns() takes them.
constexpr int axesOfCopy(int copy)
{
    return ((copy & c_copyReflectsZ) ? 4 : 0) | ((copy & c_copyReflectsY) ? 2 : 0);
}

class WaveVectors
{
public:
    WaveVectors() = default;
    //! \param[in] grid  cells, slots in the order of Grid::slot()
    explicit WaveVectors(const Grid& grid);

    //! 4 in a rectangular box, otherwise 1.
    int copies() const { return copies_; }
    //! Representatives: row-major, of the z, y and x (last) component of their wave vectors.
    int representatives() const { return static_cast<int>(waves_.size()); }
    //! Extent of the representatives, in the order of Grid::lengths().
    const Int3& ranges() const { return ranges_; }
    //! The wave vector of a copy (0: the representative itself), -1 if it repeats another copy.
    int wave(int representative, int copy) const { return waves_[representative][copy]; }

private:
    int copies_  = 1;
    Int3 ranges_ = { 0, 0, 0 };
    std::vector<std::array<int, 4>> waves_;
};

} // namespace farfield

#endif
