/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many cells and pairs there are in a division of some points, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_COUNTED_LEVELS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_COUNTED_LEVELS_H

#include <vector>

#include "pair_kernels/kernel_plan.h"
#include "pair_kernels/points_in_leaves.h"

namespace farfield
{

class CountedLevels
{
public:
    /*! \brief As countLevels() of the host. The host waits.
     *  \param[in] x  [n][3] device memory */
    std::vector<LevelCount> count(const Region& region,
                                  const KernelPlan& plan,
                                  const double* x,
                                  int n,
                                  cudaStream_t stream);

private:
    CubRoom room_;
    PointsInLeaves<float> points_;
    CellHashOnDevice hash_;
    DeviceBuffer<std::uint64_t> keys_;
    DeviceBuffer<int> starts_, finerStarts_;
    DeviceBuffer<double> sums_;
};

} // namespace farfield

#endif
