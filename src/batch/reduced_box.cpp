/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/reduced_box.h"

namespace farfield
{
namespace
{

using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

CompactBox compact(const Rows& box)
{
    return compactBox(box.data());
}

} // namespace

ReducedBox::ReducedBox(const Mat3& box) :
    plain(compact(box)), vectors(Eigen::Map<const Rows>(plain.vectors)),
    inverse(Eigen::Map<const Rows>(plain.inverse)), heights(plain.heights), volume(plain.volume),
    isRectangular(plain.isRectangular)
{
}

} // namespace farfield
