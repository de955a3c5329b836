/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How far apart particles without images are.
 */
#ifndef FARFIELD_KERNELS_SORT_EXTENT_H
#define FARFIELD_KERNELS_SORT_EXTENT_H

#include "base/vectors.h"
#include "runtime/device.h"

namespace farfield
{

//! Smallest and largest coordinates.
struct Bounds
{
    double least[3], most[3];
};

//! Finds the extent of particles in device memory.
template<class Real>
class DeviceExtent
{
public:
    /*! \brief Waits for the stream.
     *  \param[in] x      positions, nm, [][3], device memory
     *  \param[in] which  [n] particles that count, device memory
     *  \param[in] n      at least 1
     *  \returns largest differences of coordinates, nm; infinite where a position is not finite */
    Vec3 find(const Real* x, const int* which, int n, cudaStream_t stream);

private:
    DeviceBuffer<char> space_;
    DeviceBuffer<Bounds> bounds_;
};

} // namespace farfield

#endif
