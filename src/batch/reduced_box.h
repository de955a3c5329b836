/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A box of any shape as the most compact one of the same lattice.
 */
#ifndef FARFIELD_BATCH_REDUCED_BOX_H
#define FARFIELD_BATCH_REDUCED_BOX_H

#include "base/vectors.h"
#include "batch/compact_box.h"

namespace farfield
{

//! CompactBox as matrices.
struct ReducedBox
{
    CompactBox plain;
    Mat3 vectors;       //!< rows, nm
    Mat3 inverse;       //!< columns are reciprocal vectors, 1/nm
    Vec3 heights;       //!< distances of opposite faces, nm
    double volume;      //!< nm^3
    bool isRectangular; //!< vectors are at right angles

    //! \param[in] box  rows, nm, with a volume
    explicit ReducedBox(const Mat3& box);
};

} // namespace farfield

#endif
