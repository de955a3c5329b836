/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which cells of a tree hold particles: lists made on the device every step.
 */
#ifndef FARFIELD_KERNELS_TREE_FAMILIES_H
#define FARFIELD_KERNELS_TREE_FAMILIES_H

#include <vector>

#include "runtime/device.h"
#include "runtime/layout.h"
#include "tree/family_tree.h"

namespace farfield
{

template<class Real>
class FamilyLists
{
public:
    /*! \brief Makes room.
     *  \param[in] grids      cells of every level, coarsest first
     *  \param[in] capacities families of every level (element 0 unused), multiples of c_warp
     *  \param[in] slotOf0    [cells of level 0] slots of level 0, device memory
     *  \param[in] stream     of the first build() */
    void resize(const std::vector<CellGrid>& grids,
                int ws,
                const std::vector<int>& capacities,
                const int* slotOf0,
                cudaStream_t stream);
    /*! \brief Finds the occupied cells of all levels; nothing waits for the host.
     *
     *  Families for which there is no room are dropped; poison() and overflow() tell. */
    void build(const SortedParticles<Real>& particles, cudaStream_t stream);
    //! Families of a level > 0 for which there is room.
    int capacity(int level) const { return tree_.capacity[level]; }
    //! [1] device memory, to be added to all forces: zero, or not a number if families were
    //! dropped.
    const Real* poison() const { return poison_.data(); }
    //! Whether families were dropped in any step since this was asked last; does not wait.
    bool overflow();
    //! The same, and still so when asked again.
    bool hasOverflow() const;

    //! Lists of a level > 0.
    Families families(int level) const;
    const int* cellOf(int level) const; //!< [8 capacity], level > 0
    const int* slotOf(int level) const; //!< [cells], level > 0

private:
    FamilyTree tree_ = {};
    DeviceBuffer<int> lists_; //!< what is -1 where there is nothing
    DeviceBuffer<int> marks_; //!< marks, counts: zero at first
    DeviceBuffer<int> ranks_;
    DeviceBuffer<unsigned char> scanSpace_;
    DeviceBuffer<Real> poison_;
    PinnedBuffer<int> overflow_;
};

} // namespace farfield

#endif
