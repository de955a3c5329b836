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
void DeviceNearField<Real>::adoptOccupancy(const DeviceNearField& other,
                                           DeviceCells<Real>* particles)
{
    if (occupancyKnown_)
    {
        return;
    }
    if (other.lists_)
    {
        particles->makeRoomForList();
    }
    occupancyKnown_ = other.occupancyKnown_;
    occupancy_      = other.occupancy_;
    lists_          = other.lists_;
}

template<class Real>
OccupiedCells DeviceNearField<Real>::visited(const DeviceCells<Real>& particles,
                                             const CellGrid& grid,
                                             const CellShare& share) const
{
    return { lists_ ? particles.occupied() : nullptr,
             lists_ ? particles.occupiedCount() : nullptr,
             grid.cells,
             occupancy_.cells,
             occupancy_.usual,
             share };
}

template<class Real>
void DeviceNearField<Real>::p2p(const DeviceCells<Real>& particles,
                                const NearGrid& where,
                                const NearResults& results,
                                const CellShare& share,
                                cudaStream_t stream)
{
    DeviceNearTask<Real> task;
    task.particles     = particles.particles();
    task.grid          = where.grid;
    task.frame         = where.frame;
    task.ws            = where.ws;
    task.occupied      = visited(particles, where.grid, share);
    task.exclusions    = exclusions_.view();
    task.closeDistance = where.closeDistance;
    task.reproducible  = reproducible_;
    task.results       = results;
    farfield::p2p(task, forces_.data(), stream);
}

template class DeviceNearField<float>;
template class DeviceNearField<double>;

} // namespace farfield
