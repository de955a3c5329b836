/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Names of the small vectors and matrices that all parts use.
 */
#ifndef FARFIELD_BASE_VECTORS_H
#define FARFIELD_BASE_VECTORS_H

#include <array>

#include <Eigen/Dense>

namespace farfield
{

using Int3   = std::array<int, 3>;
using IntMat = std::array<Int3, 3>;
using Vec3   = Eigen::Vector3d;
using Mat3   = Eigen::Matrix3d; //!< vectors of a box are its rows
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

} // namespace farfield

#endif
