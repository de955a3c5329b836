/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Near field (P2P) and excluded pairs on the device.
 */
#ifndef FARFIELD_KERNELS_NEAR_NEAR_H
#define FARFIELD_KERNELS_NEAR_NEAR_H

#include <vector>

#include "base/vectors.h"
#include "near/near_functions.h"
#include "plan/near_field_shares.h"
#include "ranks/device_plan.h"
#include "runtime/device.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

//! Sums of the near field and of excluded pairs, in device memory.
struct NearTotals
{
    double energy;
    double virial[6];         //!< -1/2 sum r (x) f in the frame of the cells: xx yy zz xy xz yz
    double excludedVirial[6]; //!< the same of excluded pairs, in the frame of the positions
    double excess;            //!< trace of the virial beyond -1/2 energy, of near functions
};

//! What is wanted besides forces.
enum class NearSums
{
    None,
    Energy,
    EnergyAndVirial
};

//! Where sums are added up.
struct NearResults
{
    NearSums wanted;
    NearTotals* totals;   //!< device memory, added to in an order that does not depend on the run
    OrderedSums* scratch; //!< needed if sums are wanted
};

class ExclusionRows;

//! Excluded pairs on the device, as symmetric compressed rows.
template<class Real>
class DeviceExclusions
{
public:
    //! Makes room for rows of n particles with so many partners in all; those before may be lost.
    void reserve(int n, size_t partners);
    //! Takes rows of n particles.
    void set(const ExclusionRows& rows, int n, cudaStream_t stream);
    //! Takes those of a plan of ranks.
    void set(const DevicePlan<Real>& plan, cudaStream_t stream);

    /*! \brief Computes what excluded pairs contribute to the forces: minus their interaction.
     *
     *  Pairs nearer than closeDistance are noted instead, and the near field leaves them out
     *  (compare Exclusions<Real>). Needs no sorted particles, so it can run beside the sorting.
     *  \param[in] box   rows, lower triangular, nm
     *  \param[in] functions  in the order of the positions
     *  \param[in] x, q  [n][3] positions, any image, and [n] scaled charges; device memory
     *  \param[in] own   those from here on are ghosts: sums leave their half of a pair out */
    void subtract(const Mat3& box,
                  double closeDistance,
                  const NearFunctionView<Real>& functions,
                  const Real* x,
                  const Real* q,
                  int n,
                  int own,
                  const NearResults& results,
                  cudaStream_t stream);

    //! Finds out where the close partners of sorted particles are, if there are any.
    void findClose(const SortedParticles<Real>& particles, cudaStream_t stream);

    //! [n][3] forces of the last call, in the order and the frame of the positions; null if there
    //! are no excluded pairs.
    const Real* forces() const { return length_ > 0 ? forces_.data() : nullptr; }

    //! Whether there are excluded pairs.
    bool any() const { return length_ > 0; }

    //! What the near field leaves out; device memory.
    struct View
    {
        const int* offsets;         //!< [n + 1], original indices
        const int* partners;        //!< original indices
        const unsigned char* close; //!< per partner: left out by the near field
        const int* anyClose;        //!< [1] whether there are any; null: never
        /*! \brief [n] of sorted particles, set by findClose() if there are any.
         *
         *  Close partners, sorted, c_none for none; if they are more than four, the first, the
         *  last, and c_more in w. */
        const int4* closeOf;
    };
    static constexpr int c_none = -1, c_more = -2;
    View view() const;

private:
    //! Takes rows in host or device memory; waits.
    void setRows(const int* offsets,
                 const int* partners,
                 int n,
                 size_t length,
                 int longest,
                 cudaStream_t stream);

    size_t length_ = 0;
    int longest_   = 0; //!< most partners of a particle
    DeviceBuffer<int> offsets_, partners_;
    DeviceBuffer<Real> forces_;
    DeviceBuffer<int4> closeOf_;
    DeviceBuffer<unsigned char> close_;
    DeviceBuffer<int>
            anyClose_; //!< of the last step; of the running one; blocks that have finished
};

/*! \brief The part of the cells that a device visits, where several share the near field.
 *
 *  Where it begins and ends lies in device memory, so that it may change between replays of a graph. */
struct CellShare
{
    const int* bounds =
            nullptr; //!< [2] in 1/c_wholeOfShares of the cells, device memory; null: all
    int parts = 1;   //!< the cells are divided into about so many such parts

    //! So many of the cells lie before a bound.
    FARFIELD_HD static int cellsBefore(int bound, int cells)
    {
        return static_cast<int>(static_cast<long long>(cells) * bound / c_wholeOfShares);
    }
};

//! Cells that P2P has to visit.
struct OccupiedCells
{
    const int* cells; //!< in storage order, device memory; null: all cells of the grid
    const int* count; //!< [1] length of the list, device memory
    int all;          //!< cells of the grid
    int expected;     //!< about so many cells of all hold particles
    int usual;        //!< about so many particles share the cell of a particle
    CellShare share;

    //! Entries of the list, or cells, that the share has, to be asked for on the device.
    FARFIELD_HD void findShare(int* first, int* last) const
    {
        const int entries = cells != nullptr ? *count : all;
        *first = share.bounds != nullptr ? CellShare::cellsBefore(share.bounds[0], entries) : 0;
        *last  = share.bounds != nullptr ? CellShare::cellsBefore(share.bounds[1], entries)
                                         : entries;
    }
};

//! What a near-field pass needs.
template<class Real>
struct DeviceNearTask
{
    SortedParticles<Real> particles;
    CellGrid grid;
    Mat3 edges; //!< see NearGrid
    int ws;
    OccupiedCells occupied;
    typename DeviceExclusions<Real>::View exclusions;
    NearFunctionView<Real> functions; //!< in the order of the particles
    double closeDistance; //!< pairs nearer than this look up whether they are excluded, nm
    bool reproducible;    //!< a fixed order of summation, at up to twice the cost
    NearResults results;
};

/*! \brief Near-field forces on sorted particles, added to forces, [n]; what ghosts get has no meaning.
 *
 *  Energies and virials are added up in a fixed order; forces are if that is asked for and the
 *  particles are sorted reproducibly. */
template<class Real>
void p2p(const DeviceNearTask<Real>& task, Real4<Real>* forces, cudaStream_t stream);

} // namespace farfield

#endif
