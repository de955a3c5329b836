/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The near field on the device: its forces, excluded pairs, and the cells to visit.
 */
#ifndef FARFIELD_KERNELS_NEAR_FIELD_H
#define FARFIELD_KERNELS_NEAR_FIELD_H

#include "near/near.h"
#include "sort/cell_list.h"

namespace farfield
{

//! The grid that particles are sorted into.
struct NearGrid
{
    CellGrid grid;
    Mat3 edges; //!< rows: from the frame of positions in a cell to that in the next one, nm
    int ws;
    Mat3 box;             //!< rows, lower triangular, nm
    double closeDistance; //!< nm: excluded pairs nearer than this are left out, not subtracted
};

template<class Real>
class DeviceNearField
{
public:
    explicit DeviceNearField(bool reproducible) : reproducible_(reproducible) {}

    //! Room for the forces of n particles.
    void resize(int n) { forces_.resize(n); }
    /*! \brief How full cells are is to be found out anew.
     *  \param[in] usual      particles of a cell until then
     *  \param[in] hasGhosts  a list of the cells is visited in any case, see listOccupied() */
    void forgetOccupancy(int cells, int usual, bool hasGhosts);
    DeviceNearFunctions<Real>& functions() { return functions_; }
    const DeviceNearFunctions<Real>& functions() const { return functions_; }
    DeviceExclusions<Real>& exclusions() { return exclusions_; }
    const DeviceExclusions<Real>& exclusions() const { return exclusions_; }

    /*! \brief Finds out after a sort how full the cells are, where that is not known; waits.
     *
     *  Where the order of summation is fixed it does not follow from the first positions, which are
     *  others after a restart. */
    void findOccupancy(DeviceCells<Real>* particles, cudaStream_t stream);

    //! Lists the cells to visit after a sort, if many are empty.
    void list(DeviceCells<Real>* particles, const NearGrid& where, cudaStream_t stream) const;
    //! The near field of the particles that have just been sorted, after list().
    DeviceNearTask<Real> task(const DeviceCells<Real>& particles,
                              const NearGrid& where,
                              const NearResults& results) const;
    //! [n] of sorted particles, in the frame of the cells; zero before the near field is added.
    Real4<Real>* forces() { return forces_.data(); }

private:
    bool reproducible_;
    DeviceExclusions<Real> exclusions_;
    DeviceNearFunctions<Real> functions_;
    DeviceBuffer<Real4<Real>> forces_;
    //! All cells, and the mean of them, unless a list is visited.
    typename DeviceCells<Real>::Occupancy occupancy_ = { 0, 0 };
    bool occupancyKnown_                             = false;
    bool lists_                                      = false; //!< whether a list is visited
};

} // namespace farfield

#endif
