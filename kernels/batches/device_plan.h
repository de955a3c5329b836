/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Kernels that check, list and plan the systems of a batch.
 *
 *  The host reads a status of fixed size: how much memory and how many blocks the sums have, and
 *  whether something is refused. So its work does not grow with the number of systems. Sums are
 *  launched before it has: they are computed where nothing is refused and the room of earlier calls
 *  is enough.
 */
#ifndef FARFIELD_KERNELS_BATCHES_DEVICE_PLAN_H
#define FARFIELD_KERNELS_BATCHES_DEVICE_PLAN_H

#include "batch/compact_box.h"
#include "batch/system_plan.h"
#include "batches/device_systems.h"

namespace farfield
{

//! A pair within the cut-off takes as long as so many waves of half space at a particle: of counted
//! operations, the search for pairs of some hundred particles included.
template<class Real>
constexpr double c_pairCostOfGpus = sizeof(Real) == 4 ? 20 : 16;

//! So much of everything systems have.
struct BatchSizes
{
    long long tiles, columns, phases, factors;
    int blocks[BlockKinds];
};

//! What the host reads. Systems are the first ones with that property; c_noSystem: there is none.
struct BatchStatus
{
    int particles;   //!< of the call
    int largest;     //!< particles of a system
    int neutral;     //!< systems whose particles have no charge
    int badInput;    //!< its offsets or its box are refused
    int badParticle; //!< one of its particles is refused
    int badError;
    int tooHigh;      //!< is a slab that is
    int tooLong;      //!< its sums are
    int contact;      //!< particles are at one place
    int left;         //!< systems whose sums are still to be computed
    int listed;       //!< systems in the list, none if something is refused
    int computed;     //!< the first ones of them, that there was room for
    int phases;       //!< of a particle in one of them, along all axes
    BatchSizes sizes; //!< of the systems in the list
    double error;     //!< the largest one that was measured
};
constexpr int c_noSystem = 0x7fffffff;

//! Whether something is refused before sums: nothing is to be computed then.
FARFIELD_HD bool isRefused(const BatchStatus& status)
{
    return status.badInput != c_noSystem || status.badParticle != c_noSystem
           || status.badError != c_noSystem || status.tooHigh != c_noSystem
           || status.tooLong != c_noSystem;
}
//! Whether all sums of a call are there. \param[in] tangents  those of neutral systems have more sums
FARFIELD_HD bool isComplete(const BatchStatus& status, bool tangents)
{
    return !isRefused(status) && status.contact == c_noSystem && status.left == 0
           && !(tangents && status.neutral > 0);
}

//! Arrays over all systems of a call, in device memory.
struct SystemArrays
{
    int count;
    bool hasImages;
    const int* offsets;       //!< [count + 1]
    const double* given;      //!< boxes of the caller, [count][9]
    SystemInBox* inBox;       //!< [count]
    CompactBox* boxes;        //!< [count]
    SlabBox* slabs;           //!< [count]; null: there are none
    SystemFindings* findings; //!< [count]
    SystemTraits* traits;     //!< [count]
    char* isCharged;          //!< [count]
    char* isLeft;             //!< [count] whether sums are still to be computed
    ForceAim* aims;           //!< [count]
    double* errors;           //!< RMS errors that sums are cut for, kJ/mol/nm, [count]
    double* contacts; //!< squared distance of particles at one place, nm^2, [count]; < 0: none are
    BatchStatus* status;
};

/*! \brief Checks offsets and boxes, and lays out cells, but those of slabs.
 *
 *  Systems whose offsets are not legal have no particles.
 *  \param[in] particles  the last offset, or -1: any */
void takeSystems(const SystemArrays& systems, int particles, cudaStream_t stream);
//! Puts slabs into boxes, and lays out their cells. \param[in] accuracy  see BatchOptions
template<class Real>
void boxSlabs(const SystemArrays& systems,
              const BatchParticles<Real>& particles,
              double accuracy,
              cudaStream_t stream);
/*! \brief Fractional coordinates, findings and traits, and the order before sorting.
 *  \param[out] keys    cells of particles, [n]
 *  \param[in] refuses  whether the status names systems with what is not finite; a direction may be so */
template<class Real>
void lookAt(const SystemArrays& systems,
            const BatchParticles<Real>& particles,
            double smearing,
            unsigned int* keys,
            bool refuses,
            cudaStream_t stream);
//! Strains of a direction. \param[in] changes  of the boxes, [count][9]
void takeStrains(const SystemArrays& systems, const double* changes, cudaStream_t stream);
/*! \brief Marks systems as left, and aims at errors.
 *  \param[in] before    systems that are charged there do not count, [count]; null: all charged ones do
 *  \param[in] aims      whether errors are computed; if not, those that are there are checked
 *  \param[in] realSize  bytes of a number of the forces */
void beginSums(const SystemArrays& systems,
               const BatchOptions& options,
               const char* before,
               bool aims,
               double tightening,
               int realSize,
               cudaStream_t stream);
/*! \brief Lists the systems that are left, plans them and lays out their sums.
 *  \param[in] measured  systems that are listed once more, with another splitting
 *  \param[in] most      an upper bound of the length of the list
 *  \param[in] tables    sets of structure factors, times channels
 *  \param[out] list     [BatchStatus::listed]
 *  \param[out] sums     [listed] */
template<class Real>
void planSystems(const SystemArrays& systems,
                 const BatchOptions& options,
                 const MeasuredSystems& measured,
                 int most,
                 int tables,
                 int* list,
                 SystemSums* sums,
                 cudaStream_t stream);
/*! \brief Writes columns of waves and parts of blocks, of the first systems, as far as there is room.
 *
 *  Blocks that have no part get c_noPart.
 *  \param[in] tables      as planSystems()
 *  \param[in,out] status  BatchStatus::computed is written
 *  \param[in] most        as planSystems()
 *  \param[in] room        of all arrays
 *  \param[out] blocks     of each kind */
void fillPlans(const SystemSums* sums,
               int tables,
               BatchStatus* status,
               int most,
               const BatchSizes& room,
               WaveColumn* columns,
               BlockPart* const (&blocks)[BlockKinds],
               cudaStream_t stream);
/*! \brief Keeps totals, contacts, and whether sums suffice.
 *  \param[in] most       an upper bound of BatchStatus::computed
 *  \param[in] aims       whether forces decide on that
 *  \param[out] energies  kJ/mol, [count]
 *  \param[out] virials   kJ/mol, [count][9] */
void keepTotals(const SystemArrays& systems,
                const SystemSums* sums,
                const SystemTotals* totals,
                int most,
                bool aims,
                double* energies,
                double* virials,
                cudaStream_t stream);
/*! \brief BatchStatus::error of computed systems whose sums suffice.
 *  \param[in] most            as keepTotals()
 *  \param[in] forces, others  [n][3], kJ/mol/nm */
void measureErrors(const SystemArrays& systems,
                   const SystemSums* sums,
                   int most,
                   const double* forces,
                   const double* others,
                   double smearing,
                   cudaStream_t stream);
/*! \brief to[i] = from[i].
 *  \param[in] status    results of a call that is not complete are not a number; null: it is
 *  \param[in] tangents  see isComplete() */
template<class Real>
void narrow(const double* from,
            Real* to,
            size_t count,
            const BatchStatus* status,
            bool tangents,
            cudaStream_t stream);
//! Forces and virials of charged systems are zero that are not charged in \p before, [count].
void clearNeutral(const SystemArrays& systems,
                  const char* before,
                  double* forces,
                  double* virials,
                  cudaStream_t stream);

} // namespace farfield

#endif
