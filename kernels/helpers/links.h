/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What travels between the GPU of a solver and its helpers, and who has which part of the
 *         near field.
 */
#ifndef FARFIELD_KERNELS_HELPERS_LINKS_H
#define FARFIELD_KERNELS_HELPERS_LINKS_H

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
//! Does followTimes() in device memory.
void adjustShares(ShareState* state, int helpers, cudaStream_t stream);

//! What a helper gets for an evaluation; its device memory.
template<class Real>
struct HelperInput
{
    Real* x;            //!< [n][3]
    int* bounds;        //!< [2] as CellShare::bounds
    NearTotals* totals; //!< [1] set to zero
};
//! For all helpers.
template<class Real>
struct HelperInputs
{
    HelperInput<Real> of[c_maxHelperDevices];
    int count;
};
//! Writes what helpers need into their memory. \param[in] x  [values] of positions
template<class Real>
void sendToHelpers(const Real* x,
                   size_t values,
                   const int* bounds,
                   const HelperInputs<Real>& to,
                   cudaStream_t stream);

//! What a helper gives back; device memory of the solver's GPU.
template<class Real>
struct HelperOutput
{
    Real4<Real>*
            forces; //!< [n] in the frame of the cells, in the order of the caller; see deliver()
    NearTotals* totals; //!< [1]
};

/*! \brief Writes what a helper has computed into the memory of the solver's GPU.
 *
 *  Forces of particles that no pair of its share can have met are not written.
 *  \param[in] order   [particles.n] those that were sorted, ascending
 *  \param[in] forces  of sorted particles
 *  \param[in] share   cells of the helper */
template<class Real>
void deliver(const SortedParticles<Real>& particles,
             const int* order,
             const Real4<Real>* forces,
             const NearTotals* totals,
             const CellGrid& grid,
             int ws,
             const OccupiedCells& share,
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
/*! \brief Adds what helpers have delivered, in their order.
 *  \param[in,out] forces  of sorted particles
 *  \param[in,out] totals  or null */
template<class Real>
void addDelivered(const SortedParticles<Real>& particles,
                  const CellGrid& grid,
                  int ws,
                  const HelperOutputs<Real>& from,
                  Real4<Real>* forces,
                  NearTotals* totals,
                  cudaStream_t stream);

} // namespace farfield

#endif
