/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near_field.h"

namespace farfield
{
namespace
{

//! A list of the cells that hold particles is visited if they are fewer than this part.
constexpr double c_sparse = 0.5;

} // namespace

template<class Real>
void DeviceNearField<Real>::forgetOccupancy(int cells, int usual, bool hasGhosts)
{
    occupancyKnown_ = false;
    occupancy_      = { cells, usual };
    lists_          = hasGhosts;
}

template<class Real>
void DeviceNearField<Real>::findOccupancy(DeviceCells<Real>* particles, cudaStream_t stream)
{
    if (occupancyKnown_)
    {
        return;
    }
    const auto now  = particles->occupancy(stream);
    occupancyKnown_ = true;
    if (lists_ || now.cells < c_sparse * occupancy_.cells)
    {
        lists_     = true;
        occupancy_ = { now.cells, reproducible_ ? occupancy_.usual : now.usual };
        particles->makeRoomForList();
    }
}

template<class Real>
void DeviceNearField<Real>::list(DeviceCells<Real>* particles,
                                 const NearGrid& where,
                                 cudaStream_t stream) const
{
    if (lists_)
    {
        particles->listOccupied(where.grid, where.ws, stream);
    }
}

template<class Real>
DeviceNearTask<Real> DeviceNearField<Real>::task(const DeviceCells<Real>& particles,
                                                 const NearGrid& where,
                                                 const NearResults& results) const
{
    // which warp adds what to a sum must not follow from the first positions; forces never do
    const bool listed = lists_ && !(reproducible_ && results.wanted != NearSums::None);
    DeviceNearTask<Real> task;
    task.particles = particles.ofPairs();
    task.grid      = where.grid;
    task.edges     = where.edges;
    task.ws        = where.ws;
    task.occupied  = { listed ? particles.occupied() : nullptr,
                      listed ? particles.occupiedCount() : nullptr,
                      where.grid.cells,
                      occupancy_.cells,
                      occupancy_.usual,
                      {} };
    task.exclusions    = exclusions_.view();
    task.functions     = functions_.sorted();
    task.closeDistance = where.closeDistance;
    task.reproducible  = reproducible_;
    task.results       = results;
    return task;
}

template class DeviceNearField<float>;
template class DeviceNearField<double>;

} // namespace farfield
