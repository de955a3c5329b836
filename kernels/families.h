/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which cells of a tree hold particles: lists made on the device every step.
 */
#ifndef FARFIELD_KERNELS_FAMILIES_H
#define FARFIELD_KERNELS_FAMILIES_H

#include <vector>

#include "device.h"
#include "family_tree.h"
#include "layout.h"

namespace farfield
{

template<class Real>
class FamilyLists
{
public:
    /*! \brief Makes room.
     *  \param[in] grids      cells of every level, coarsest first
     *  \param[in] capacities families of every level (element 0 unused), multiples of c_warp
     *  \param[in] slotOf0    [cells of level 0] slots of level 0, device memory */
    void resize(const std::vector<CellGrid>& grids,
                int ws,
                const std::vector<int>& capacities,
                const int* slotOf0);
    /*! \brief Finds the occupied cells of all levels; nothing waits for the host.
     *
     *  More families than there is room for are dropped, and needed() tells. */
    void build(const SortedParticles<Real>& particles, cudaStream_t stream);

    //! Lists of a level > 0.
    Families families(int level) const;
    const int* cellOf(int level) const; //!< [8 capacity], level > 0
    const int* slotOf(int level) const; //!< [cells], level > 0
    //! [levels] device memory: families that each level needs (element 0 unused). Compare with the
    //! capacities to see whether any were dropped.
    const int* needed() const;

private:
    FamilyTree tree_ = {};
    DeviceBuffer<int> lists_; //!< what is -1 where there is nothing
    DeviceBuffer<int> marks_; //!< marks, counts: zero at first
    DeviceBuffer<int> ranks_;
    DeviceBuffer<unsigned char> scanSpace_;
};

} // namespace farfield

#endif
