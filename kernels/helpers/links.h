/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What travels between the GPU of a solver and its helpers, and who has which part of the
 *         near field.
 */
#ifndef FARFIELD_KERNELS_HELPERS_LINKS_H
#define FARFIELD_KERNELS_HELPERS_LINKS_H

#include "expansions/expansions.h"
#include "near/near.h"
#include "plan/near_field_shares.h"

namespace farfield
{

/*! \brief Connects two devices.
 *
 *  A pattern is written and read both ways, as a machine may say that it can and not do it.
 *  \throws Error  Unsupported: they do not reach each other's memory */
void connectDevices(int home, int helper);

//! Puts the time at which a stream comes here into device memory.
void stamp(unsigned long long* time, cudaStream_t stream);
//! Begins an evaluation that shares are to follow: the bounds in use become those of the state.
void beginShares(ShareState* state, int* inUse, cudaStream_t stream);
//! Does followTimes() in device memory.
void adjustShares(ShareState* state, int helpers, cudaStream_t stream);

//! What a helper gets for an evaluation, in its memory. Indices are those of the solver's GPU.
template<class Real>
struct HelperInput
{
    Real4<Real>* xq;     //!< [n] as SortedParticles
    Real4<Real>* forces; //!< [n] set to zero
    int* start;          //!< [cells + 1] as SortedParticles
    int *listed, *count; //!< [cells], [1] as OccupiedCells
    int* bounds;         //!< [2] as CellShare::bounds
    NearTotals* totals;  //!< [1] set to zero
};

/*! \brief Fetches what the pairs of a share are made of: its cells, and the layers of cells around them.
 *
 *  The current device is the helper, which reads the memory of the solver's GPU.
 *  \param[in] home  sorted particles, list and share of the solver's GPU */
template<class Real>
void fetchCells(const DeviceNearTask<Real>& home, const HelperInput<Real>& to, cudaStream_t stream);
/*! \brief Fetches which pairs of these cells are left out, likewise.
 *  \param[in]  cells     what fetchCells() has brought
 *  \param[out] anyClose  [1] and closeOf, [n]: as DeviceExclusions::View */
template<class Real>
void fetchClose(const DeviceNearTask<Real>& cells,
                const typename DeviceExclusions<Real>::View& home,
                int* anyClose,
                int4* closeOf,
                cudaStream_t stream);

/*! \brief Fetches the widths of these particles, likewise.
 *  \param[in]  cells  what fetchCells() has brought
 *  \param[in]  home   NearFunctionView::terms of the solver's GPU, [n], and what it becomes here */
template<class Real>
void fetchTerms(const DeviceNearTask<Real>& cells,
                const Real* home,
                Real* terms,
                cudaStream_t stream);

//! What a helper gives back; device memory of the solver's GPU.
template<class Real>
struct HelperOutput
{
    Real4<Real>* forces; //!< [n] of sorted particles, in the frame of the cells; see deliver()
    NearTotals* totals;  //!< [1]
};

/*! \brief Writes what a helper has computed into the memory of the solver's GPU.
 *
 *  Forces of particles that no pair of its share can have met are not written.
 *  \param[in] done    the task of the helper
 *  \param[in] forces  [n] of sorted particles */
template<class Real>
void deliver(const DeviceNearTask<Real>& done,
             const Real4<Real>* forces,
             const HelperOutput<Real>& to,
             cudaStream_t stream);

//! What has come from all helpers.
template<class Real>
struct HelperOutputs
{
    HelperOutput<Real> of[c_maxHelperDevices];
    OccupiedCells shares[c_maxHelperDevices];
    int count;
};
/*! \brief Adds up the parts of the near field, in the order of the helpers, and the far field.
 *  \param[in] all  the task of the solver's GPU, to whose totals those of helpers are added
 *  \param[in] out  near: the part of the solver's GPU; far: read */
template<class Real>
void combineForces(const DeviceNearTask<Real>& all,
                   const HelperOutputs<Real>& from,
                   const ForceArrays<Real>& out,
                   cudaStream_t stream);

} // namespace farfield

#endif
